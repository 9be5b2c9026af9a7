//! What an event could have changed, so that a decision looks at no more than that.
//!
//! Most events are samples that let nobody in, and submissions behind a head that waits. What a decision must look at:
//! nothing, when no device has become more open and no job has come; the newcomers, when only jobs have come; everything
//! otherwise.

use super::Scheduler;
use super::event::Event;
use crate::JobId;

/// What the next decision has to look at.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Opportunity {
    /// Nobody could start who could not before.
    #[default]
    Nothing,
    /// Only these could.
    Newcomers(Vec<JobId>),
    /// Anybody could.
    Anything,
}

impl Opportunity {
    /// How far an event reaches by itself. Devices that become more open and jobs that enter a queue are noted where that
    /// happens; events of which nothing else can come are named here, and all others may change anything.
    pub(super) fn reach_of(event: &Event) -> Self {
        match event {
            Event::GpuSampled { .. }
            | Event::GpuWindow { .. }
            | Event::ActivitySeen { .. }
            | Event::HostMemory { .. }
            | Event::JobSubmitted(_)
            | Event::JobsSubmitted { .. }
            | Event::JobForgotten { .. }
            | Event::Progress { .. }
            | Event::Checkpointed { .. }
            | Event::MemoryNeeded { .. }
            | Event::Tick => Self::Nothing,
            _ => Self::Anything,
        }
    }

    pub(super) fn add(&mut self, job: JobId) {
        match self {
            Self::Nothing => *self = Self::Newcomers(vec![job]),
            Self::Newcomers(jobs) => jobs.push(job),
            Self::Anything => {}
        }
    }
}

impl Scheduler {
    /// Whoever runs, waits or is kept room for may be another: everything is looked at and planned anew.
    pub(super) fn everything_may_change(&mut self) {
        self.opportunity = Opportunity::Anything;
        self.slots.look_again();
        self.reservation = None;
    }
}
