//! Interference between jobs on one GPU.
//!
//! A job has a *pressure* (its effect on others) and a *sensitivity* (the effect of others on it). A co-runner `j` adds
//! `sensitivity_i * pressure_j` to the slowdown of `i`; several at once add more than their sum:
//!
//! ```text
//! slowdown_i = 1 + mode * (sum of s_i p_j) * n^crowd      n = (sum p_j)^2 / sum p_j^2, the number of co-runners that count
//! ```
//!
//! Both come from counters (SMACT, GPU utilisation, memory as a proxy for kernel size), refined by effects of the family and
//! the workload where pairs were measured.

mod calibration;
mod coverage;
mod least_squares;
mod model;
mod observations;
mod partition;
mod score;
mod together;

pub use calibration::{Calibration, HeldOut, calibrate, calibrate_watched};
pub use coverage::Extrapolated;
pub use model::{Effect, InterferenceModel, ModelError, Neighbours, PressureExponents, RankInterference, SensitivityExponents};
pub use observations::{CrowdTrial, Observations, PairRun, read_crowds, read_pairs};
pub use partition::slice_slowdown;
pub use score::{Scored, mean_absolute_error};
pub(crate) use together::START_UP;
