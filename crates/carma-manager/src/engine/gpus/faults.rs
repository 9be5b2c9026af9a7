//! GPUs with faults that repeat: drained, and their jobs moved.

use std::collections::btree_map::Entry;

use carma_core::{DeviceId, Event, EventError, Time};

use super::{Gpus, is_lost};
use crate::engine::decide::Decisions;
use crate::store::{Change, DrainCause, Drained};
use crate::watch::Fault;

impl Gpus {
    /// A GPU has a fault. If that kind repeats, the GPU is drained.
    pub(crate) fn fault_seen(&mut self, decisions: &mut Decisions, device: DeviceId, fault: Fault) {
        let Some(report) = self.faults.add(device, fault, decisions.now(), &self.setup.watch) else { return };
        if self.drained.contains_key(&device) || self.setup.observes || decisions.tell(Event::GpuFailing { device }).is_err() {
            return;
        }
        let reason = report.to_string();
        decisions.warn(format!("{device} is drained because of its faults: {reason}. `carma resume {}` uses it again", device.label()));
        self.note_drained(decisions, device, DrainCause::Faults(reason));
    }

    /// A GPU is lost. Reported twice, by the driver and by a sample, that is one fault.
    pub(super) fn lost(&mut self, decisions: &mut Decisions, device: DeviceId) -> Result<(), EventError> {
        let known = is_lost(decisions, device);
        decisions.tell(Event::GpuLost { device })?;
        if !known {
            self.fault_seen(decisions, device, Fault::Lost);
        }
        Ok(())
    }

    /// A job on this GPU alone named broken hardware when it failed. What the driver has reported since then is counted already.
    pub(crate) fn fault_named(&mut self, decisions: &mut Decisions, device: DeviceId, since: Time) {
        let used = decisions.scheduler().fleet().device(device).is_some_and(|device| !device.lost);
        if used && !self.incidents.any_fault(device, since) {
            self.fault_seen(decisions, device, Fault::JobSaysSo);
        }
    }

    /// A device that is drained already keeps its first cause.
    pub(super) fn note_drained(&mut self, decisions: &mut Decisions, device: DeviceId, cause: DrainCause) {
        if let Entry::Vacant(unknown) = self.drained.entry(device) {
            let drained = Drained { device, since: decisions.wall(), cause };
            unknown.insert(drained.clone());
            decisions.batch.changes.push(Change::GpuDrained(drained));
        }
    }

    /// Since when a device is drained, and why. An instance is drained with its GPU.
    pub(crate) fn drained(&self, device: DeviceId) -> Option<&Drained> {
        let whole = DeviceId { instance: None, ..device };
        [device, whole].into_iter().find_map(|device| self.drained.get(&device))
    }
}
