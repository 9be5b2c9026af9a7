//! Whose turn it is, by the order in force: worked out when a job begins to wait, and the same for as long as it does.

use crate::config::{QueueConfig, QueueOrder};
use crate::job::Job;
use crate::units::{Seconds, Time};
use crate::{GroupId, UserId};

/// A job's turn among jobs of its priority.
///
/// Nobody starves: a job that waits with `work` GPU-seconds to its name (those it is expected to need still, or those it has had,
/// by the order) has nobody go before it who was submitted more than `work / ageing` seconds after it. In the order of submission
/// that is nobody at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Turn {
    /// Less is sooner. A second of waiting outweighs `ageing` seconds of work whenever one looks, so it is enough to add when
    /// the job was submitted, and nothing has to be sorted again as time passes.
    pub rank: u64,
    /// GPU time that it should take from its user's share.
    pub cost: Seconds,
    /// How long it should run still.
    pub length: Seconds,
}

impl Turn {
    /// The turn of a job that begins to wait, and that should take so much of each of so many GPUs.
    pub(crate) fn of(job: &Job, config: &QueueConfig, weight: f64) -> Self {
        let remaining = job.expected_remaining(Time::ZERO).unwrap_or(config.unknown_duration);
        let rank = |work: Seconds| {
            let aged = job.submitted_at.milliseconds() as f64 * config.ageing;
            (aged as u64).saturating_add(work.milliseconds())
        };
        let rank = match config.order {
            QueueOrder::Submission => 0,
            QueueOrder::LeastAttained => rank(job.attained),
            QueueOrder::Shortest => rank(remaining.times(f64::from(job.spec.gpus))),
        };
        Self { rank: rank.max(job.put_back_rank), cost: remaining.times(weight), length: remaining }
    }
}

/// Who pays for a job: a user as a member of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Account {
    pub(crate) group: GroupId,
    pub(crate) user: UserId,
}

impl Account {
    /// The one account of all where nobody is told from others.
    pub(crate) const EVERYBODY: Self = Self { group: GroupId(0), user: UserId(0) };

    pub(crate) fn of(job: &Job) -> Self {
        Self { group: job.spec.group, user: job.spec.user }
    }
}
