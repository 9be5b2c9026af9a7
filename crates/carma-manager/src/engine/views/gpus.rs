//! The GPUs, and the jobs on them.

use carma_core::{DeviceId, DeviceReport, Fraction, TenantMemory, Utilisation};

use super::{View, array_place};
use crate::api::{GpuDetail, GpuTenant};
use crate::host_gpus::GpuSample;
use crate::store::Joules;

impl View<'_> {
    pub(crate) fn gpus(self) -> Vec<GpuDetail> {
        let survey = self.decisions.scheduler().survey();
        survey.filter_map(|report| self.gpu(report.device, &report)).collect()
    }

    pub(super) fn gpu(self, id: DeviceId, report: &DeviceReport) -> Option<GpuDetail> {
        let known = self.decisions.scheduler().fleet().device(id)?;
        let device = self.gpus.device(id)?;
        let latest = self.gpus.sampling().latest(id);
        let reading = latest.and_then(|sample| sample.reading.as_ref().ok());
        let tenants = known.tenants.iter().map(|tenant| {
            let job = self.jobs.get(tenant.attempt.job);
            let usage = self.accounting.usage(tenant.attempt, id);
            GpuTenant {
                attempt: tenant.attempt,
                name: job.and_then(|job| job.name.clone()),
                array: self.decisions.scheduler().job(tenant.attempt.job).and_then(array_place),
                user: job.map(|job| job.owner.name.clone()).unwrap_or_default(),
                promised: tenant.reserved,
                memory: match tenant.memory {
                    TenantMemory::Reading(memory) => Some(memory),
                    TenantMemory::Unseen | TenantMemory::Unreadable => None,
                },
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
            memory: known.spec.memory,
            memory_used: reading.map(|reading| reading.memory_used),
            promised: report.reserved,
            available: report.available,
            utilisation: latest.map_or(Utilisation::NONE, GpuSample::utilisation),
            power: reading.and_then(|reading| reading.power),
            energy: self.accounting.energy(id).map(|energy| Joules(energy.all.joules())),
            temperature: reading.and_then(|reading| reading.temperature),
            tenants: tenants.collect(),
            foreign: known.foreign.len(),
            closed: self.worded(|words| report.obstacles.iter().map(|obstacle| obstacle.text(words)).collect()),
            obstacles: report.obstacles.clone(),
            counters: latest.map(|sample| sample.source.to_string()).unwrap_or_default(),
        })
    }
}
