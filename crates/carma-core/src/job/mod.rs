//! What a job is: its request, what is known about it, and its state.

mod host_claim;
mod interference;
mod memory;
mod outcome;
mod placement;
mod remaining;
mod spec;
mod stall;
mod state;
mod turn;

pub use host_claim::HostClaim;
pub use interference::Interference;
pub(crate) use memory::RankMemory;
pub use memory::{MemoryBasis, MemoryEstimate, MemoryNeed, PerRank};
pub use outcome::{Borrowing, Outcome, StopReason, Verdict};
pub use placement::{Granted, Placement};
pub use spec::{ArrayMember, Condition, Dependency, JobSpec, Priority, RetryBudget, SharingClass, SpecError};
pub use stall::{OnHang, Stall};
pub use state::{Active, Idle, IllegalTransition, Resumes, State, Waiting};
pub use turn::Turn;

use serde::{Deserialize, Serialize};

use crate::recovery::LadderPosition;
use crate::units::{Fraction, Seconds, Time};
use crate::{AttemptId, JobId};

/// A job the scheduler has accepted, with its history so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its request, with later changes and estimates.
    pub spec: JobSpec,
    /// The state of the job.
    pub state: State,
    /// When it was accepted.
    pub submitted_at: Time,
    /// Its place among all accepted jobs; kept through retries, so that a job put back is not at the end of the queue.
    pub sequence: u64,
    /// Its place since it was preempted after its time slice: behind all jobs that waited then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put_back_as: Option<u64>,
    /// The rank of the last job that waited then.
    #[serde(default)]
    pub put_back_rank: u64,
    /// How many attempts were launched.
    pub attempts: u32,
    /// How far it has climbed the recovery ladder.
    pub climb: LadderPosition,
    /// Ordinary failures so far.
    pub failures: u32,
    /// How often it lost its place through no fault of its own: a lost GPU, a dead MPS server.
    pub displacements: u32,
    /// How often it was stopped because it hung.
    #[serde(default)]
    pub hangs: u32,
    /// How long it ran at most on a server that ended before it did; it cannot checkpoint, so a server must last longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outlasted: Option<Seconds>,
    /// The last progress it reported.
    pub progress: Option<Fraction>,
    /// When it last wrote a checkpoint.
    pub checkpointed_at: Option<Time>,
    /// The progress saved in its checkpoint, if it reported any.
    #[serde(default)]
    pub saved_progress: Option<Fraction>,
    /// GPU time of its ended attempts.
    #[serde(default)]
    pub attained: Seconds,
    /// Its turn in a queue, from when it began to wait there; computed again after a restart.
    #[serde(skip)]
    pub turn: Turn,
    /// Jobs that it interfered with too much, and is not placed beside again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apart_from: Vec<JobId>,
    /// Jobs it still waits for; computed again after a restart.
    #[serde(skip)]
    pub(crate) unmet: Vec<Dependency>,
}

impl Job {
    /// The job as it is when just accepted.
    pub(crate) fn accept(spec: JobSpec, unmet: Vec<Dependency>, sequence: u64, now: Time) -> Self {
        let state = match (spec.hold, spec.awaits_estimate) {
            (true, true) => State::Held { since: now, resumes: Resumes::Estimating },
            (true, false) => State::Held { since: now, resumes: Resumes::Queued },
            (false, true) => State::Estimating { since: now },
            (false, false) => State::Queued { since: now },
        };
        Self {
            spec,
            state,
            submitted_at: now,
            sequence,
            put_back_as: None,
            put_back_rank: 0,
            attempts: 0,
            climb: LadderPosition::default(),
            failures: 0,
            displacements: 0,
            hangs: 0,
            outlasted: None,
            progress: None,
            checkpointed_at: None,
            saved_progress: None,
            attained: Seconds::ZERO,
            turn: Turn::default(),
            apart_from: Vec::new(),
            unmet,
        }
    }

    /// Its name.
    pub fn id(&self) -> JobId {
        self.spec.id
    }

    /// Another job of the same array: the same in everything but its place. Numbers and places in the queue are consecutive.
    #[must_use]
    pub fn as_member(&self, id: JobId, index: u32) -> Self {
        let mut member = self.clone();
        member.spec.id = id;
        member.spec.array.iter_mut().for_each(|array| array.index = index);
        member.sequence = self.sequence.wrapping_add(id.0).wrapping_sub(self.id().0);
        member
    }

    /// Whether it equals the result of [`Job::as_member`] of another job of its array. Values that a restart computes again do not count.
    pub fn is_alike(&self, other: &Self) -> bool {
        let (Some(array), Some(others)) = (self.spec.array, other.spec.array) else { return false };
        let same_array = array.array == others.array;
        same_array && *self == Self { turn: self.turn, unmet: self.unmet.clone(), ..other.as_member(self.id(), array.index) }
    }

    /// Its place in the order of submission, or since it was last put back behind others.
    pub fn place(&self) -> u64 {
        self.put_back_as.unwrap_or(self.sequence)
    }

    /// How long a server must last for it to start there; unset: however long, because it can checkpoint, or may take any time.
    pub(crate) fn needs_server_for(&self) -> Option<Seconds> {
        // With a limit it takes no longer than that, whatever it took before.
        let needed = || self.spec.time_limit.or_else(|| Some(self.outlasted? + Seconds::TICK));
        if self.spec.may_checkpoint { None } else { needed() }
    }

    /// Whether little doubt is left about its memory. A job that ran out of memory had a poor estimate.
    pub(crate) fn has_sure_memory(&self) -> bool {
        self.spec.memory.is_sure() && self.climb == LadderPosition::default()
    }

    /// The attempt that its next launch will be.
    pub(crate) fn next_attempt(&self) -> AttemptId {
        AttemptId { job: self.id(), number: self.attempts + 1 }
    }
}
