//! A job and its placement: what a launch is planned from.

use std::path::PathBuf;

use carma_core::{AttemptId, Placement};
use carma_gpu::DeviceUuid;
use carma_gpu::mps::MpsControl;

use super::checkpoints::CheckpointTerms;
use crate::attempt::{HostLimits, RunAs};
use crate::request::JobRequest;
use crate::supervise::AttemptFolder;

/// A job and its placement.
#[derive(Debug, Clone)]
pub struct Assignment<'a> {
    /// The attempt.
    pub attempt: AttemptId,
    /// The request.
    pub request: &'a JobRequest,
    /// The owner's name.
    pub owner: &'a str,
    /// The user to run it as, if not the manager's own.
    pub user: Option<&'a RunAs>,
    /// Its placement.
    pub placement: &'a Placement,
    /// The UUIDs of the devices, in the placement's order.
    pub devices: &'a [DeviceUuid],
    /// The MPS daemon of its device, if it is a client.
    pub mps: Option<&'a MpsControl>,
    /// The folder of the attempt.
    pub folder: &'a AttemptFolder,
    /// The most that is kept of each log, in bytes.
    pub log_limit: u64,
    /// What the kernel enforces.
    pub limits: HostLimits,
    /// When it is asked to checkpoint, if it can.
    pub checkpoints: Option<CheckpointTerms>,
    /// The folder for its checkpoints: the same for all attempts of a job.
    pub checkpoint_folder: PathBuf,
}
