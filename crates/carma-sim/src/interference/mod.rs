//! How jobs on one GPU slow each other down.
//!
//! A job has a *pressure* (what it does to others) and a *sensitivity* (what others do to it). A co-runner `j` adds
//! `sensitivity_i * pressure_j` to the slowdown of `i`; several at once add more than their sum:
//!
//! ```text
//! slowdown_i = 1 + mode * (sum of s_i p_j) * n^crowd      n = (sum p_j)^2 / sum p_j^2, the number of co-runners that count
//! ```
//!
//! Both come from counters (SMACT, GPU utilisation, memory as a stand-in for the size of kernels) and are refined by effects of
//! the family and the workload where pairs were observed.

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
pub use model::{Character, Effect, InterferenceModel, ModelError, Neighbours, PressureExponents, SensitivityExponents};
pub use observations::{CrowdTrial, Observations, PairRun, read_crowds, read_pairs};
pub use partition::slice_slowdown;
pub use score::{Scored, mean_absolute_error};
pub(crate) use together::START_UP;
