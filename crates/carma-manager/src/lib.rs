//! The manager: takes jobs, keeps them, runs them under supervision, and judges how they ended.
//!
//! ```text
//!  submission ──► JobRequest ──► store (SQLite) ──► engine (carma-core) ──► launch ──► shim ──► the job
//!  (flags, scripts, files)          ▲                  ▲                                │
//!                                   └──── verdicts ◄───┴── exits, logs, GPUs ◄──────────┘
//! ```

pub mod agent;
mod agents;
pub mod api;
pub mod attempt;
mod batch;
pub mod bridge;
pub mod client;
mod clock;
pub mod cluster;
pub mod configuration;
pub mod contact;
mod credentials;
mod declaration;
pub mod ending;
pub mod engine;
mod estimator;
pub mod event;
mod executor;
pub mod heartbeat;
pub mod host;
mod host_gpus;
pub mod inspection;
pub mod judge;
pub mod last_errors;
mod last_output;
pub mod launch;
pub mod link;
pub mod measure;
pub mod memory_limits;
pub mod metrics;
pub mod network_files;
pub mod notification;
pub mod notifications;
pub mod open_files;
pub mod phase;
pub mod places;
mod pool;
mod progress;
mod reload;
pub mod request;
pub mod rows;
pub mod samples;
mod saved;
pub mod serve;
pub mod slurm;
pub mod store;
pub mod submission;
pub mod submission_key;
pub mod supervise;
pub mod tally;
pub mod terminal;
mod text_bytes;
pub mod token;
mod turns;
pub mod umask;
pub mod units;
mod untrusted;
mod watch;
pub mod watchdog;
pub mod world;

pub use estimator::DRY_RUN_FAILED;
pub use host_gpus::names_gpu;
pub use reload::{differences, reload};
