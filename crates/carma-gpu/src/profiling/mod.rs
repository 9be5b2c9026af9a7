//! Profiling counters: SMACT, SMOCC, DRAMA and their like, from the best source that offers them.
//!
//! ```text
//!              ┌─ gpm       NVML itself, from Hopper on ───────────── sampled on demand
//!  Profiler ◄──┼─ dcgmi     a DCGM host engine: `dcgmi dmon` ──────── one child kept running, its lines read by a thread
//!  (choice)    ├─ exporter  dcgm-exporter's page ─────────────────── fetched by a thread once a second
//!              └─ else utilisation only
//! ```

mod choice;
mod counters;
pub mod dcgmi;
mod exporter;
mod exposition;
pub mod fields;
mod gpm;
mod latest;
mod problem;
mod profiler;

pub use choice::{Source, SourceReport, SourceState, choose};
pub use counters::{Counters, STALE, Target, Unit};
pub use exporter::Exporter;
pub use exposition::read_counters;
pub use latest::Status;
pub use problem::Problem;
pub use profiler::{Options, Profiler};
