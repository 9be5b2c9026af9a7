//! The setup of an engine.

use std::path::PathBuf;
use std::sync::Arc;

use carma_gpu::Driver;

use crate::configuration::Configuration;
use crate::places::Places;
use crate::supervise::{Enforced, LaunchServer};
use crate::world::World;

/// Everything an engine needs to start.
#[derive(Debug)]
pub struct Setup {
    /// Its folders and files.
    pub places: Places,
    /// The configuration.
    pub configuration: Configuration,
    /// The GPU driver; unset where there are no GPUs, and only CPU jobs run.
    pub driver: Option<Arc<Driver>>,
    /// The kind of GPUs.
    pub world: World,
    /// The program that becomes estimators: this one.
    pub program: PathBuf,
    /// Starts shims.
    pub launch_server: Arc<LaunchServer>,
    /// Jobs run on this host too. Otherwise only on the servers of agents.
    pub local: bool,
    /// Observe and explain, but launch nothing.
    pub observes: bool,
    /// Which limits of jobs the kernel enforces here.
    pub enforced: Enforced,
    /// The file for every event and decision, for replay.
    pub record: Option<PathBuf>,
}
