//! What an event could have changed, so that a decision considers only that.
//!
//! Most events are samples that open no device, and submissions behind a waiting head. A decision must consider nothing when
//! no device has become more open and no job has come, at the new jobs when only jobs have come, and at everything otherwise.

use super::Scheduler;
use super::event::Event;
use crate::JobId;

/// What the next decision has to consider.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum DirtyScope {
    /// No further job can start.
    #[default]
    Nothing,
    /// Only these jobs can.
    NewJobs(Vec<JobId>),
    /// Any job can.
    Anything,
}

impl DirtyScope {
    /// How far an event reaches by itself. Devices that become more open and jobs that enter a queue are noted where that
    /// happens. Events without other effects are named here; all others may change anything.
    pub(super) fn reach_of(event: &Event) -> Self {
        match event {
            Event::GpuSampled { .. }
            | Event::GpuWindow { .. }
            | Event::ActivitySeen { .. }
            | Event::ProcessesSeen { .. }
            | Event::HostMemory { .. }
            | Event::JobSubmitted(_)
            | Event::JobsSubmitted { .. }
            | Event::JobForgotten { .. }
            | Event::Progress { .. }
            | Event::StallSeen { .. }
            | Event::Checkpointed { .. }
            | Event::MemoryNeeded { .. }
            | Event::EndedAt { .. }
            | Event::NotLimited { .. }
            | Event::Tick => Self::Nothing,
            _ => Self::Anything,
        }
    }

    pub(super) fn add(&mut self, job: JobId) {
        match self {
            Self::Nothing => *self = Self::NewJobs(vec![job]),
            Self::NewJobs(jobs) => jobs.push(job),
            Self::Anything => {}
        }
    }
}

impl Scheduler {
    /// Makes the next decision consider everything, and plans the reservation again.
    pub(super) fn mark_all_dirty(&mut self) {
        self.dirty = DirtyScope::Anything;
        self.time_slices.look_again();
        self.reservation = None;
    }
}
