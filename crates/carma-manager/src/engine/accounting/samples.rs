//! Samples of the GPUs: passed to the core, metered, and kept.

use std::time::SystemTime;

use carma_core::{DeviceId, Event, JobId, Owner, ProcessUse, State};
use carma_gpu::Reading;

use super::Accounting;
use super::recent::RecentSample;
use crate::engine::attempts::Attempts;
use crate::engine::decide::Decisions;
use crate::engine::gpus::Gpus;
use crate::engine::gpus::activity::{activity_seen, complete};
use crate::host_gpus::GpuSample;
use crate::measure::UsageSample;
use crate::store::{Change, UnixMillis};
use crate::watch::gpu_sign;

impl Accounting {
    /// Takes the samples of all GPUs.
    pub(crate) fn sampled(&mut self, decisions: &mut Decisions, gpus: &mut Gpus, attempts: &mut Attempts, all: Vec<GpuSample>) {
        let (wall, mut seen) = (decisions.wall(), Vec::new());
        for sampled in all {
            if let Ok(reading) = &sampled.reading {
                seen.push((sampled.device, self.take(decisions, attempts, &sampled, reading, wall)));
            }
            gpus.keep_sample(sampled);
        }
        self.note_steps(decisions, attempts, &seen, wall);
        self.sampled = Some(SystemTime::now());
        if self.save.is_due() {
            self.save();
        }
        self.recent.take(wall, seen);
        decisions.batch.changes.extend(self.minutes.over().into_iter().map(Change::SampleStored));
    }

    fn take(
        &mut self,
        decisions: &mut Decisions,
        attempts: &mut Attempts,
        sampled: &GpuSample,
        reading: &Reading,
        wall: UnixMillis,
    ) -> RecentSample {
        let (device, sample) = (sampled.device, reading.sample(sampled.at, sampled.counters.as_ref()));
        let pids: Vec<u32> = reading.processes.iter().map(|process| process.pid).collect();
        let owners = sampled.owners.clone().unwrap_or_else(|| attempts.owners(&pids));
        attempts.seen(&owners);
        let activity = sampled.activity.as_ref().map(|activity| complete(activity, reading, sampled.mps_server));
        let does = |pid| activity.and_then(|activity| activity.of(pid));
        let usage = UsageSample::new(sampled.at, reading, sampled.counters.as_ref(), |pid| owners.get(&pid).copied(), does);
        // The MPS server is neither a job's process nor a foreign one.
        let counted = reading.processes.iter().filter(|process| Some(process.pid) != sampled.mps_server);
        let owner = |pid| owners.get(&pid).map_or(Owner::Foreign { pid }, |attempt| Owner::Attempt(*attempt));
        let processes: Vec<ProcessUse> = counted.map(|process| ProcessUse { owner: owner(process.pid), memory: process.memory }).collect();
        self.bridge(device, sampled.at, usage.energy);
        self.save.changed |= usage.attempts().any(|(attempt, _)| self.meter.usage(attempt, device).is_none());
        self.meter.add(device, &usage);
        let tenants = decisions.scheduler().fleet().device(device).map_or(&[][..], |device| &device.tenants);
        for tenant in tenants {
            attempts.gpu_seen(tenant.attempt, device, gpu_sign(tenant.attempt, &usage, activity, tenants.len()));
        }
        self.minutes.take(device, wall, &sample);
        let starting = starting(decisions, &processes);
        // The core must know which processes there are before it decides by the sample.
        let _ = decisions.tell(Event::ProcessesSeen { device, processes });
        let _ = decisions.tell(Event::GpuSampled { device, sample });
        if let Some(activity) = activity {
            let event = activity_seen(decisions, device, activity, &usage);
            let _ = decisions.tell(event);
        }
        decisions.batch.changed.extend(starting);
        RecentSample { at: wall, sample, tenants: usage.attempts().collect() }
    }

    fn note_steps(&mut self, decisions: &mut Decisions, attempts: &Attempts, seen: &[(DeviceId, RecentSample)], wall: UnixMillis) {
        for (device, recent) in seen {
            // A process may outlive its attempt for a moment.
            let under_way = recent.tenants.iter().filter(|(attempt, _)| attempts.contains(*attempt));
            for (attempt, memory) in under_way.filter_map(|(attempt, memory)| Some((*attempt, (*memory)?))) {
                let step = self.steps.seen(attempt, *device, wall, memory);
                decisions.batch.changes.extend(step.map(|step| Change::MemoryChanged { attempt, device: *device, step }));
            }
        }
    }
}

/// Jobs that appear on a GPU for the first time.
fn starting(decisions: &Decisions, processes: &[ProcessUse]) -> Vec<JobId> {
    let job = |process: &ProcessUse| match process.owner {
        Owner::Attempt(attempt) => Some(attempt.job),
        Owner::Foreign { .. } => None,
    };
    let starts = |job: &JobId| matches!(decisions.job(*job).map(|job| &job.state), Some(State::Starting(_)));
    processes.iter().filter_map(job).filter(starts).collect()
}
