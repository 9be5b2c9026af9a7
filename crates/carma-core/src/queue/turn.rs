//! A job's turn by the order in force: computed when the job begins to wait, and constant while it waits.

use crate::config::{QueueConfig, QueueOrder};
use crate::job::{Job, Turn};
use crate::units::{Seconds, Time};

/// The turn of a job that starts to wait, with this expected time on each of its GPUs.
pub(crate) fn turn_of(job: &Job, config: &QueueConfig, weight: f64) -> Turn {
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
    Turn { rank: rank.max(job.put_back_rank), cost: remaining.times(weight), length: remaining }
}
