//! The GPUs, and the jobs on them.

use carma_core::{DeviceId, DeviceReport, Fraction, Granted, Job, Limits, MiB, Tenant, TenantMemory, Utilisation};

use super::{View, array_place};
use crate::api::{GpuDetail, GpuTenant};
use crate::engine::gpus::Silence;
use crate::host_gpus::GpuSample;
use crate::store::Joules;

impl View<'_> {
    pub(crate) fn gpus(self) -> Vec<GpuDetail> {
        let survey = self.decisions.scheduler().survey();
        survey.filter_map(|report| self.gpu(report.device, &report)).collect()
    }

    /// How long a device has not answered, and why; none for one that is lost.
    pub(super) fn silence(&self, id: DeviceId) -> Option<Silence<'_>> {
        let known = self.decisions.scheduler().fleet().device(id).filter(|known| !known.lost)?;
        self.gpus.sampling().silence(known.id(), self.decisions.now())
    }

    /// The memory that is reserved for a running job on each of its devices. It may be less than at the launch, if the job has not used it.
    pub(crate) fn reserved_now(self, job: &Job) -> Vec<(DeviceId, MiB)> {
        let Some(active) = job.state.active() else { return Vec::new() };
        let fleet = self.decisions.scheduler().fleet();
        let tenant = |device| fleet.device(device)?.tenants.iter().find(|tenant| tenant.attempt == active.attempt);
        let now = |granted: &Granted| (granted.device, tenant(granted.device).map_or(granted.reserved, |tenant| tenant.reserved));
        active.placement.devices.iter().map(now).collect()
    }

    /// The most memory that an attempt may have on a device, if it is limited.
    fn memory_limit(self, tenant: &Tenant, device: DeviceId) -> Option<MiB> {
        let active = self.decisions.job(tenant.attempt.job)?.state.active()?;
        match active.placement.devices.iter().find(|granted| granted.device == device)?.limits {
            Limits::Driver { memory } => Some(memory),
            Limits::Mps { memory, .. } => memory,
            Limits::Streams | Limits::Mig { .. } => None,
        }
    }

    pub(super) fn gpu(self, id: DeviceId, report: &DeviceReport) -> Option<GpuDetail> {
        let known = self.decisions.scheduler().fleet().device(id)?;
        let device = self.gpus.device(id)?;
        // The last sample of a lost GPU says nothing about now.
        let latest = self.gpus.sampling().latest(id).filter(|_| !known.lost);
        let silence = self.silence(id);
        let drained = self.gpus.drained(id).filter(|_| known.drained);
        let reading = latest.and_then(|sample| sample.reading.as_ref().ok());
        let tenants = known.tenants.iter().map(|tenant| {
            let job = self.jobs.get(tenant.attempt.job);
            let usage = self.accounting.usage(tenant.attempt, id);
            GpuTenant {
                attempt: tenant.attempt,
                name: job.and_then(|job| job.name.clone()),
                array: self.decisions.scheduler().job(tenant.attempt.job).and_then(array_place),
                user: job.map(|job| job.owner.name.clone()).unwrap_or_default(),
                reserved: tenant.reserved,
                memory: match tenant.memory {
                    TenantMemory::Reading(memory) => Some(memory),
                    TenantMemory::Unseen | TenantMemory::Unreadable => None,
                },
                limit: self.memory_limit(tenant, id),
                borrowed: Some(tenant.borrowed()).filter(|borrowed| *borrowed > MiB::ZERO),
                smact: usage.and_then(|usage| usage.smact_now).map(Fraction::get),
                energy: usage.map(|usage| Joules(usage.energy.joules())),
                launched: self.attempts.get(tenant.attempt).map(|underway| underway.launched).unwrap_or_default(),
            }
        });
        Some(GpuDetail {
            device: id,
            node: self.servers.get(id.server()).map(|server| server.stored.node.clone()),
            uuid: device.uuid.clone(),
            name: device.name.clone(),
            mode: known.spec.mode,
            lost: known.lost,
            drained: known.drained,
            drained_for: drained.and_then(|drained| drained.cause.faults()).map(str::to_owned),
            drained_by: drained.and_then(|drained| drained.cause.user()).map(str::to_owned),
            drained_since: drained.map(|drained| drained.since),
            silent_for: silence.map(|silence| silence.lasted),
            memory: known.spec.memory,
            memory_used: reading.map(|reading| reading.memory_used),
            reserved: report.reserved,
            available: if known.lost { MiB::ZERO } else { report.available },
            utilisation: latest.filter(|sample| sample.reading.is_ok()).map_or(Utilisation::NONE, GpuSample::utilisation),
            power: reading.and_then(|reading| reading.power),
            energy: self.accounting.energy(id).map(|energy| Joules(energy.all.joules())),
            temperature: reading.and_then(|reading| reading.temperature),
            throttling: reading.map(|reading| reading.throttling.clone()).unwrap_or_default(),
            tenants: tenants.collect(),
            foreign: known.foreign.len(),
            closed: self.worded(|words| report.obstacles.iter().map(|obstacle| obstacle.text(words)).collect()),
            obstacles: report.obstacles.clone(),
            counters: latest.map(|sample| sample.source.to_string()).unwrap_or_default(),
        })
    }
}
