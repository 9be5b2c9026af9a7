//! What is kept for the head of the queue.

use crate::job::HostClaim;
use crate::obstacle::Obstacle;
use crate::units::{MiB, Time, Watts};
use crate::{DeviceId, JobId, ServerId};

/// The devices kept for the head of the queue, and from when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadReservation {
    /// The job they are kept for.
    pub head: JobId,
    /// The devices, in order; none where nothing can be kept, because what the head waits for is drained, say.
    pub devices: Vec<DeviceId>,
    /// When the head should be able to start; unset when no time limit is known, and then the devices are kept from now on.
    pub from: Option<Time>,
    /// What the head claims of a host: it is kept on the servers of the devices.
    pub host: HostClaim,
    /// They are kept because they are predicted to be free soon, not because the head has waited for long. Then predictions count for
    /// later jobs too, instead of time limits.
    pub predicted: bool,
    /// Watts that the head adds on each device: under a budget they are kept on the servers of the devices.
    pub power: Watts,
}

/// When a job ends if it starts now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JobEnd {
    /// At the latest, by its time limit.
    pub(crate) limit: Option<Time>,
    /// By prediction.
    pub(crate) predicted: Option<Time>,
}

impl JobEnd {
    /// The same beside others that slow it down.
    pub(crate) fn stretched(self, now: Time, slowdown: f64) -> Self {
        Self { predicted: self.predicted.map(|end| now + (end - now).times(slowdown)), ..self }
    }
}

impl HeadReservation {
    /// Nothing is kept for this head yet.
    pub(crate) const fn nothing(head: JobId) -> Self {
        Self { head, devices: Vec::new(), from: None, host: HostClaim { cores: 0, memory: MiB::ZERO }, predicted: false, power: Watts(0.0) }
    }

    /// The reservation of this head, among those of a decision.
    pub(crate) fn of(head: JobId, kept: &[Self]) -> Option<&Self> {
        kept.iter().find(|kept| kept.head == head)
    }

    /// Whether it keeps GPUs for this head, by time limits.
    pub(crate) fn plans_for(&self, head: JobId) -> bool {
        self.head == head && !self.devices.is_empty() && !self.predicted
    }

    /// What keeps a later job off a device, if anything: it may pass only where it is gone in time.
    pub(crate) fn objection(&self, device: DeviceId, ends: JobEnd) -> Option<Obstacle> {
        // A reserved GPU is reserved with its instances: they are joined when they are free.
        let whole = DeviceId { instance: None, ..device };
        let kept = self.devices.binary_search(&device).is_ok() || device != whole && self.devices.binary_search(&whole).is_ok();
        (kept && !self.gone_in_time(ends)).then_some(Obstacle::ReservedForHead { head: self.head, from: self.from })
    }

    /// The part of a server's host that a later job must leave. The head may get its GPUs sooner than its cores or memory; a job
    /// that is gone by then is gone in time all the same.
    pub(crate) fn kept_of_host(&self, server: ServerId, ends: JobEnd) -> HostClaim {
        let kept = self.devices.iter().any(|device| device.server() == server) && !self.gone_in_time(ends);
        if kept { self.host } else { HostClaim::default() }
    }

    /// The watts that a later job has to leave of a server's power budget.
    pub(crate) fn kept_of_power(&self, server: ServerId, ends: JobEnd) -> Watts {
        let kept = self.devices.iter().filter(|device| device.server() == server).count();
        if self.gone_in_time(ends) { Watts(0.0) } else { Watts(self.power.0 * kept as f64) }
    }

    fn gone_in_time(&self, ends: JobEnd) -> bool {
        let end = if self.predicted { ends.predicted } else { ends.limit };
        matches!((end, self.from), (Some(end), Some(from)) if end <= from)
    }
}
