//! The facts for metrics.

use std::collections::BTreeMap;

use carma_core::{DeviceReport, Job, MiB};

use super::View;
use super::queue::since;
use crate::cluster::Pool;
use crate::metrics::{Facts, GpuFacts, JobFacts, PoolFacts};
use crate::store::{Joules, Phase};

impl View<'_> {
    pub(crate) fn facts(self) -> Facts {
        let (scheduler, now) = (self.decisions.scheduler(), self.decisions.now());
        let mut phases: BTreeMap<Phase, u64> = BTreeMap::new();
        for job in scheduler.jobs() {
            *phases.entry(Phase::from(&job.state)).or_default() += 1;
        }
        Facts {
            status: self.status(),
            writable: self.unavailable.is_none(),
            host: self.host.reading().cloned(),
            host_short: self.host.shortage().is_some(),
            unusable: self.broken_gpus(),
            gpus: scheduler.survey().filter_map(|report| self.gpu_facts(&report)).collect(),
            servers: self.server_details(),
            pools: self.pools.iter().map(|pool| self.pool_facts(pool)).collect(),
            ready: scheduler.queue().count() as u64,
            oldest: scheduler.queue().map(|job| now - since(&job.state)).max(),
            running: scheduler.jobs().filter_map(|job| self.running_job(job)).collect(),
            phases,
        }
    }

    fn gpu_facts(self, report: &DeviceReport) -> Option<GpuFacts> {
        let id = report.device;
        let known = self.decisions.scheduler().fleet().device(id)?;
        let latest = self.gpus.sampling().latest(id);
        let mut detail = self.gpu(id, report)?;
        // Counters must not go back after a crash.
        let saved = self.accounting.saved();
        for tenant in &mut detail.tenants {
            tenant.energy = saved.usage(tenant.attempt, id).map(|usage| Joules(usage.energy.joules()));
        }
        Some(GpuFacts {
            detail,
            unit: self.gpus.device(id)?.target.unit.clone(),
            partitioned: known.partitioned,
            reading: latest.and_then(|sample| sample.reading.as_ref().ok().cloned()),
            counters: latest.and_then(|sample| sample.counters),
            age: self.gpus.sampling().age(id, self.decisions.now()),
            foreign_memory: known.foreign.iter().filter_map(|process| process.memory).fold(MiB::ZERO, |sum, memory| sum + memory),
            energy: saved.energy(id),
        })
    }

    fn pool_facts(self, pool: &Pool) -> PoolFacts {
        PoolFacts { pool: pool.clone(), pilots: self.pools.pilots_of(&pool.name).cloned().collect() }
    }

    fn running_job(self, job: &Job) -> Option<JobFacts> {
        let active = job.state.active()?;
        let known = self.jobs.get(job.id());
        Some(JobFacts {
            attempt: active.attempt,
            name: known.and_then(|known| known.name.clone()),
            user: known.map(|known| known.owner.name.clone()).unwrap_or_default(),
            gpus: job.spec.gpus,
            ran: self.decisions.now() - active.launched_at,
            progress: job.progress,
            stall: active.stall,
        })
    }
}
