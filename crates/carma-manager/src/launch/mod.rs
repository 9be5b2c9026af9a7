//! From a job request and a placement to a running shim.

mod activation;
mod assignment;
mod checkpoints;
mod container;
mod error;
mod helper;
mod host_facts;
mod look_up;
mod plan;
mod slurm_variables;
mod snapshot;
mod start;
mod user;
mod user_task;

pub use assignment::Assignment;
pub use checkpoints::CheckpointTerms;
pub(crate) use checkpoints::{CHECKPOINT_SIGNAL, checkpoint_folder};
pub use error::PlanError;
pub(crate) use helper::{HELPER_LIMITS, HelperFolders, removal_folder, run_helper_while};
pub use helper::{HelperError, HelperOutput, remove_container, run_helper};
pub use host_facts::{CondaPrefix, Lookup};
pub use look_up::look_up;
pub use plan::{Plan, plan};
pub use snapshot::{Snapshot, SnapshotError, snapshot};
pub use start::{LaunchError, Prepared};
pub(crate) use user::{NotLaunched, run_as};
pub use user_task::UserTask;
