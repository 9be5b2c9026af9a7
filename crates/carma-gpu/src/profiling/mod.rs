//! Profiling counters: SMACT, SMOCC, DRAMA and their like, from whoever offers them.
//!
//! ```text
//!              ┌─ gpm       NVML itself, from Hopper on ───────────── asked when wanted, nothing kept running
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

pub use choice::{Source, SourceReport, Standing, choose};
pub use counters::{BytesPerSecond, Counters, STALE, Target, Unit};
pub use exporter::Exporter;
pub use exposition::read_counters;
pub use latest::Status;
pub use problem::Problem;
pub use profiler::{Options, Profiler};
