//! From what a user asked for and where it is to run, to a shim at work.

mod activation;
mod aside;
mod checkpoints;
mod container;
mod plan;
mod snapshot;
mod start;
mod surroundings;

pub(crate) use aside::AsideFolders;
pub use aside::{Aside, AsideError, remove_container, run_aside};
pub use checkpoints::CheckpointTerms;
pub(crate) use checkpoints::{CHECKPOINT_SIGNAL, checkpoint_folder};
pub use plan::{Assignment, Plan, PlanError, plan};
pub use snapshot::{Snapshot, SnapshotError, snapshot};
pub use start::{LaunchError, Prepared};
pub use surroundings::{CondaPrefix, Surroundings};
