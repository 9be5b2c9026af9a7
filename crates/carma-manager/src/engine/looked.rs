//! What is seen of the GPUs, told to the core and kept.

use std::collections::HashMap;

use carma_core::{AttemptId, DeviceId, Event, JobId, Owner, ProcessUse, State};
use carma_gpu::Reading;

use super::activity::complete;
use super::looks::Looked;
use super::recent::Seen;
use super::run::Running;
use crate::api::Update;
use crate::measure::Look;
use crate::store::{Change, UnixMillis};
use crate::supervise::Owners;

impl Running {
    pub(super) fn looked(&mut self, all: Vec<Looked>) {
        let (wall, mut seen) = (self.clock.wall(), Vec::new());
        for looked in all {
            if let Ok(reading) = &looked.reading {
                seen.push((looked.device, self.take_reading(&looked, reading, wall)));
            }
            self.latest.insert(looked.device, looked);
        }
        self.note_steps(&seen, wall);
        self.recent.take(wall, seen);
        let minutes = self.minutes.over();
        self.batch.changes.extend(minutes.into_iter().map(Change::SampleKept));
        let attempts: Vec<AttemptId> = self.attempts.keys().copied().collect();
        self.read_progress(attempts.iter().copied());
        for attempt in attempts {
            self.look_for_checkpoint(attempt, false);
        }
        // Many wait for this and none for the disk.
        let _ = self.updates.send((wall, Update::Gpus));
    }

    fn take_reading(&mut self, looked: &Looked, reading: &Reading, wall: UnixMillis) -> Seen {
        let (device, sample) = (looked.device, reading.sample(looked.at, looked.counters.as_ref()));
        let whose = self.whose(reading);
        for (pid, attempt) in &whose {
            if let Some(underway) = self.attempts.get_mut(attempt) {
                underway.pids.insert(*pid);
            }
        }
        let activity = looked.activity.as_ref().map(|activity| complete(activity, reading, looked.mps_server));
        let does = |pid| activity.and_then(|activity| activity.of(pid));
        let look = Look::new(looked.at, reading, looked.counters.as_ref(), |pid| whose.get(&pid).copied(), does);
        let others_or_ours = reading.processes.iter().filter(|process| Some(process.pid) != looked.mps_server);
        let owner = |pid| whose.get(&pid).map_or(Owner::Foreign { pid }, |attempt| Owner::Attempt(*attempt));
        let processes: Vec<ProcessUse> =
            others_or_ours.map(|process| ProcessUse { owner: owner(process.pid), memory: process.memory }).collect();
        self.meter.look(device, &look);
        self.minutes.take(device, wall, &sample);
        let starting = self.starting(&processes);
        // What is seen counts before what it means for others is decided.
        let _ = self.try_tell(Event::ProcessesSeen { device, processes });
        let _ = self.try_tell(Event::GpuSampled { device, sample });
        if let Some(activity) = activity {
            let _ = self.try_tell(self.activity_seen(device, activity, &look));
        }
        self.batch.changed.extend(starting);
        Seen { at: wall, sample, tenants: look.attempts().collect() }
    }

    /// The attempts that processes on a device belong to.
    fn whose(&mut self, reading: &Reading) -> HashMap<u32, AttemptId> {
        // A container has its name a while after its attempt was launched.
        let owners = self.owners.take_if(|owners| owners.is_complete());
        let owners = self.owners.insert(owners.unwrap_or_else(|| {
            Owners::of(self.attempts.iter().filter_map(|(attempt, underway)| Some((*attempt, underway.supervised.as_ref()?))))
        }));
        reading.processes.iter().filter_map(|process| Some((process.pid, owners.owner_of(process.pid)?))).collect()
    }

    fn note_steps(&mut self, seen: &[(DeviceId, Seen)], wall: UnixMillis) {
        for (device, look) in seen {
            // A process may outlive its attempt for a moment.
            let under_way = look.tenants.iter().filter(|(attempt, _)| self.attempts.contains_key(attempt));
            for (attempt, memory) in under_way.filter_map(|(attempt, memory)| Some((*attempt, (*memory)?))) {
                let step = self.steps.seen(attempt, *device, wall, memory);
                self.batch.changes.extend(step.map(|step| Change::MemoryStepped { attempt, device: *device, step }));
            }
        }
    }

    /// Jobs that will be seen on a GPU for the first time.
    fn starting(&self, processes: &[ProcessUse]) -> Vec<JobId> {
        let job = |process: &ProcessUse| match process.owner {
            Owner::Attempt(attempt) => Some(attempt.job),
            Owner::Foreign { .. } => None,
        };
        let starts = |job: &JobId| matches!(self.core.scheduler().job(*job).map(|job| &job.state), Some(State::Starting(_)));
        processes.iter().filter_map(job).filter(starts).collect()
    }
}
