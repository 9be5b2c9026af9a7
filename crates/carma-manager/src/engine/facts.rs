//! What metrics tell of: everything that is known at this moment, and what is counted for good.

use std::collections::BTreeMap;

use carma_core::{AttemptId, DeviceReport, Job, MiB, PerRank, RequeueReason, Verdict};

use super::listing::since;
use super::run::{Condition, Running};
use crate::measure::Measurement;
use crate::metrics::{Facts, GpuFacts, Histogram, RunningJob, Tally, kind_of};
use crate::store::Phase;

impl Running {
    pub(super) fn facts(&self) -> Facts {
        let (scheduler, now) = (self.core.scheduler(), self.now());
        let mut phases: BTreeMap<Phase, u64> = BTreeMap::new();
        for job in scheduler.jobs() {
            // To people, one that is being estimated waits like others.
            let phase = if self.estimating.contains(&job.id()) { Phase::Queued } else { Phase::from(&job.state) };
            *phases.entry(phase).or_default() += 1;
        }
        let unwritable = match &self.condition {
            Condition::Unwritable { reason, .. } => Some(reason.as_str()),
            Condition::Working | Condition::Stopping => None,
        };
        Facts {
            status: self.status(unwritable),
            writable: unwritable.is_none(),
            host: self.host_reading.clone(),
            host_short: self.host.shortage().is_some(),
            gpus: scheduler.survey().filter_map(|report| self.gpu_facts(&report)).collect(),
            ready: scheduler.queue().count() as u64,
            oldest: scheduler.queue().map(|job| now - since(&job.state)).max(),
            running: scheduler.jobs().filter_map(|job| self.running_job(job)).collect(),
            phases,
        }
    }

    fn gpu_facts(&self, report: &DeviceReport) -> Option<GpuFacts> {
        let id = report.device;
        let known = self.core.scheduler().fleet().device(id)?;
        let latest = self.latest.get(&id);
        Some(GpuFacts {
            detail: self.gpu(id, report)?,
            unit: self.devices.get(id)?.target.unit.clone(),
            partitioned: known.partitioned,
            reading: latest.and_then(|looked| looked.reading.as_ref().ok().cloned()),
            counters: latest.and_then(|looked| looked.counters),
            age: latest.map(|looked| self.now() - looked.at),
            foreign_memory: known.foreign.iter().filter_map(|process| process.memory).fold(MiB::ZERO, |sum, memory| sum + memory),
            energy: self.meter.energy(id),
        })
    }

    fn running_job(&self, job: &Job) -> Option<RunningJob> {
        let active = job.state.active()?;
        let known = self.jobs.get(&job.id());
        Some(RunningJob {
            attempt: active.attempt,
            name: known.and_then(|known| known.name.clone()),
            user: known.map(|known| known.owner.name.clone()).unwrap_or_default(),
            gpus: job.spec.gpus,
            ran: self.now() - active.launched_at,
            progress: job.progress,
        })
    }

    /// An attempt is launched: with the first, its job has waited.
    pub(super) fn count_launch(&mut self, attempt: AttemptId) {
        self.batch.tallies.count(Tally::Decided("launch".to_owned()));
        let job = self.core.scheduler().job(attempt.job).filter(|_| attempt.number == 1);
        if let Some(waited) = job.map(|job| self.now() - job.submitted_at) {
            self.batch.tallies.observe(Histogram::Wait, waited.get());
        }
    }

    pub(super) fn count_requeue(&mut self, reason: &RequeueReason) {
        let reason = match reason {
            RequeueReason::After(verdict) => kind_of(verdict),
            reason => kind_of(reason),
        };
        self.batch.tallies.count(Tally::Decided("requeue".to_owned()));
        self.batch.tallies.count(Tally::Requeued(reason));
    }

    /// An attempt is over, and is still known to the core as running.
    pub(super) fn count_end(&mut self, attempt: AttemptId, measurement: &Measurement, verdict: &Verdict) {
        let tallies = &mut self.batch.tallies;
        tallies.count(Tally::Ended(kind_of(verdict)));
        let Some(job) = self.core.scheduler().job(attempt.job) else { return };
        if let Some(active) = job.state.active() {
            tallies.observe(Histogram::Run, (self.clock.now() - active.launched_at).get());
        }
        if let Some(known) = self.jobs.get(&attempt.job).filter(|_| !measurement.gpus.is_empty()) {
            tallies.add(Tally::Energy(known.owner.name.clone()), measurement.energy().joules());
        }
        let peak = measurement.peak_memory();
        if *verdict != Verdict::Succeeded || peak == MiB::ZERO {
            return;
        }
        let memory = &job.spec.memory;
        let estimated = memory.estimated.as_ref().and_then(|ranks| PerRank::values(ranks).iter().map(|rank| rank.expected).max());
        let declared = memory.known.as_ref().and_then(|ranks| PerRank::values(ranks).iter().copied().max());
        for (histogram, expected) in [(Histogram::PeakOfEstimate, estimated), (Histogram::PeakOfDeclared, declared)] {
            if let Some(expected) = expected.filter(|expected| *expected > MiB::ZERO) {
                tallies.observe(histogram, peak.0 as f64 / expected.0 as f64);
            }
        }
    }
}
