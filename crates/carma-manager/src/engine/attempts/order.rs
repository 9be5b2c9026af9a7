//! The order to start an attempt, from what the core decided.

use carma_core::{AttemptId, Enforcement, Granted, Limits, Placement};

use crate::engine::decide::Decisions;
use crate::engine::gpus::Gpus;
use crate::executor::StartOrder;
use crate::launch::CheckpointTerms;
use crate::request::Owner;

/// The order for an attempt; none if a GPU of its placement is gone.
pub(crate) fn start_order(
    decisions: &Decisions,
    gpus: &Gpus,
    owner: &Owner,
    attempt: AttemptId,
    placement: Placement,
    log_limit: u64,
) -> Option<StartOrder> {
    let uuid = |granted: &Granted| gpus.device(granted.device).map(|device| device.uuid.clone());
    let devices = placement.devices.iter().map(uuid).collect::<Option<Vec<_>>>()?;
    let gpu_files = placement.devices.iter().map(|granted| gpus.device(granted.device)?.file).collect();
    let client = placement.devices.first().filter(|granted| matches!(granted.limits, Limits::Mps { .. }));
    let mps = client.and_then(|granted| gpus.mps_control(granted.device));
    let rules = decisions.scheduler().config();
    let checkpoints = CheckpointTerms { grace: rules.queue.grace, slot: rules.time_slices.length };
    let must_be_limited = rules.enforce.memory == Some(Enforcement::Hard);
    Some(StartOrder { attempt, owner: owner.clone(), placement, devices, gpu_files, mps, log_limit, checkpoints, must_be_limited })
}
