//! Incidents of GPUs: errors, losses, and deaths of MPS servers.

use std::collections::HashMap;

use carma_core::{AttemptId, DeviceId, Event, Granted, ServerId, Tenant, Time};
use carma_gpu::mps::ServerDied;
use carma_gpu::{Blame, DeviceUuid, GpuEvent, Incident};

use super::{Gpus, is_lost};
use crate::engine::decide::Decisions;
use crate::host_gpus::LOCAL_SERVER;
use crate::judge::{DeviceFacts, XidRecord};
use crate::watch::Fault;

/// Maximum number of errors kept per GPU.
const MAX_XIDS: usize = 64;

/// Incidents, kept for verdicts.
#[derive(Debug, Default)]
pub(crate) struct Incidents {
    /// Errors of each GPU, the latest.
    xids: HashMap<DeviceId, Vec<XidRecord>>,
    /// When the MPS server of a GPU last died.
    mps_deaths: HashMap<DeviceId, Time>,
}

impl Incidents {
    fn add_xid(&mut self, device: DeviceId, seen: XidRecord) {
        let xids = self.xids.entry(device).or_default();
        xids.push(seen);
        let surplus = xids.len().saturating_sub(MAX_XIDS);
        xids.drain(..surplus);
    }
}

impl Incidents {
    /// Whether the driver has reported an error of this GPU itself since then.
    pub(super) fn any_fault(&self, device: DeviceId, since: Time) -> bool {
        let of_gpu = |seen: &XidRecord| seen.at >= since && matches!(seen.xid.blame(), Blame::Gpu | Blame::Lost);
        self.xids.get(&device).is_some_and(|seen| seen.iter().any(of_gpu))
    }
}

impl Gpus {
    pub(crate) fn gpu_event(&mut self, decisions: &mut Decisions, server: ServerId, event: &GpuEvent) {
        let device = event.device.as_ref().and_then(|uuid| self.by_uuid(server, uuid));
        let was_lost = device.is_some_and(|device| is_lost(decisions, device));
        if was_lost && event.incident == Incident::Lost {
            // The driver and a sample report the same loss.
            return;
        }
        if device.is_some_and(|device| self.sampling.hangs_again(device, event.incident)) {
            return;
        }
        let what = device.map_or_else(|| "a GPU".to_owned(), |device| device.to_string());
        let text = format!("{what}: {}", event.incident);
        if event.incident.is_fault() {
            decisions.warn(text);
        } else {
            decisions.announce(text);
        }
        if let (Some(device), Some(fault)) = (device, Fault::of(event.incident)) {
            self.fault_seen(decisions, device, fault);
        }
        let _ = match (event.incident, device) {
            (Incident::Lost, Some(device)) => self.lost(decisions, device),
            (Incident::Xid(xid), Some(device)) => {
                self.incidents.add_xid(device, XidRecord { xid, at: decisions.now(), pid: None });
                if xid.blame() == Blame::Lost { self.lost(decisions, device) } else { Ok(()) }
            }
            (Incident::Back, Some(device)) => {
                let told = decisions.tell(Event::GpuRecovered { device });
                if was_lost && server == LOCAL_SERVER {
                    self.watch_again(decisions);
                }
                told
            }
            (Incident::InstancesChanged, _) => {
                self.rescan_devices();
                Ok(())
            }
            _ => Ok(()),
        };
    }

    fn by_uuid(&self, server: ServerId, uuid: &DeviceUuid) -> Option<DeviceId> {
        let devices = if server == LOCAL_SERVER { &self.devices } else { self.remote(server) };
        devices.by_uuid(uuid).map(|device| device.id)
    }

    pub(super) fn mps_died(&mut self, decisions: &mut Decisions, device: DeviceId, died: &ServerDied) {
        decisions.warn(format!("{device}: its MPS server {} died", died.pid));
        self.incidents.mps_deaths.insert(device, decisions.now());
        let _ = decisions.tell(Event::MpsServerDied { device });
    }

    /// Facts about a device of an attempt since this time, for the verdict.
    pub(crate) fn facts(&self, decisions: &Decisions, granted: &Granted, attempt: AttemptId, since: Time) -> DeviceFacts {
        let device = granted.device;
        let known = decisions.scheduler().fleet().device(device);
        let reading = self.sampling.latest(device).and_then(|sample| sample.reading.as_ref().ok());
        let tenant = known.and_then(|known| known.tenants.iter().find(|tenant| tenant.attempt == attempt));
        DeviceFacts {
            lost: known.is_some_and(|known| known.lost),
            mps_server_died: self.incidents.mps_deaths.get(&device).is_some_and(|died| *died >= since),
            xids: self.incidents.xids.get(&device).cloned().unwrap_or_default(),
            memory_total: reading.map(|reading| reading.memory_total),
            memory_used: reading.map(|reading| reading.memory_used),
            own_memory: tenant.map(Tenant::attributed),
            peak: tenant.map(Tenant::peak),
            reserved: tenant.map(|tenant| tenant.reserved),
            limits: granted.limits,
            ..DeviceFacts::new(device)
        }
    }
}

#[cfg(test)]
mod tests {
    use carma_core::ServerId;
    use carma_gpu::Xid;

    use super::*;

    #[test]
    fn only_the_latest_errors_are_remembered() {
        let (mut incidents, device) = (Incidents::default(), DeviceId::gpu(ServerId(0), 0));
        for second in 0..100 {
            incidents.add_xid(device, XidRecord { xid: Xid(31), at: Time::from_secs(second), pid: None });
        }
        let seen = &incidents.xids[&device];
        assert_eq!((seen.len(), seen[0].at), (MAX_XIDS, Time::from_secs(36)));
    }
}
