//! The order of the queue: which job may have been launched while another waits.

use std::cmp::Reverse;

use carma_core::*;

/// A job that was launched in its turn.
pub(super) struct Candidate<'a> {
    pub(super) job: &'a Job,
    /// It was to be recovered.
    pub(super) recovering: bool,
}

impl Candidate<'_> {
    /// The one that waits must not have come before.
    pub(super) fn check_after(&self, waiting: &Job, rules: &QueueConfig) {
        let job = self.job;
        let level = |job: &Job, recovering: bool| (!recovering, Reverse(job.spec.priority));
        let recovering = matches!(waiting.state, State::Recovering { .. });
        let (ours, theirs) = (level(job, self.recovering), level(waiting, recovering));
        assert!(theirs >= ours, "{} was launched before {}", job.id(), waiting.id());
        let same_line = !rules.fair_share || recovering || (job.spec.user, job.spec.group) == (waiting.spec.user, waiting.spec.group);
        if theirs > ours || !same_line {
            return;
        }
        if rules.critical > 0.0 && job.turn.length >= waiting.turn.length {
            // The longest may go first, whichever job is next.
            return;
        }
        assert!((waiting.turn.rank, waiting.place()) > (job.turn.rank, job.place()), "{} was launched before {}", job.id(), waiting.id());
        if job.place() > job.sequence || waiting.place() > waiting.sequence {
            // A preempted job queues behind all that waited then.
            return;
        }
        // The bound on waiting: no job that came later than this goes before it.
        let work = match rules.order {
            QueueOrder::Submission => Seconds::ZERO,
            QueueOrder::LeastAttained => waiting.attained,
            QueueOrder::Shortest => waiting.spec.expected_time().unwrap_or(rules.unknown_duration).times(waiting.spec.gpus.into()),
        };
        let bound = waiting.submitted_at + work.times(1.0 / rules.ageing) + Seconds::TICK;
        assert!(job.submitted_at <= bound, "{} went before {}, which waits since {}", job.id(), waiting.id(), waiting.submitted_at);
    }
}
