//! How long a job still takes, as far as it is known.

use super::{Job, JobSpec};
use crate::units::{Seconds, Time};

impl JobSpec {
    /// How long it should take: what was expected, or else the most it may take.
    pub fn expected_time(&self) -> Option<Seconds> {
        self.expected_duration.or(self.time_limit)
    }
}

impl Job {
    /// Expected remaining runtime, from the expected duration and the reported progress; `None`: unknown.
    ///
    /// Work that no checkpoint holds is lost with its attempt, so a waiting job that wrote none begins from the start.
    pub fn expected_remaining(&self, now: Time) -> Option<Seconds> {
        let expected = self.spec.expected_time();
        let kept = self.checkpointed_at.is_some();
        let earlier = if kept { self.attained.times(1.0 / f64::from(self.spec.gpus.max(1))) } else { Seconds::ZERO };
        let running = self.state.active().map(|active| now - active.launched_at);
        let done = if running.is_some() { self.progress } else { self.saved_progress }.map_or(0.0, f64::from);
        match (expected, running) {
            // Reported progress outweighs the expected duration.
            (_, Some(elapsed)) if done > 0.0 => Some((earlier + elapsed).times((1.0 - done) / done)),
            (Some(expected), Some(elapsed)) => Some(expected - earlier - elapsed),
            (Some(expected), None) => Some(expected.times(1.0 - done)),
            (None, None) if done > 0.0 => Some(earlier.times((1.0 - done) / done)),
            (None, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Active, State};
    use crate::units::Fraction;
    use crate::{AttemptId, JobId, Placement, ServerId};

    fn job(expected: Option<u64>, progress: Option<f64>) -> Job {
        let spec = JobSpec { expected_duration: expected.map(Seconds::from_secs), ..JobSpec::new(JobId(1)) };
        let mut job = Job::accept(spec, Vec::new(), 1, Time::ZERO);
        job.progress = progress.map(Fraction::clamped);
        job
    }

    fn running(mut job: Job) -> Job {
        let placement = Placement { server: ServerId(0), devices: Vec::new() };
        let attempt = AttemptId { job: JobId(1), number: 1 };
        job.state = State::Running(Active {
            attempt,
            placement,
            launched_at: Time::from_secs(100),
            stopping: None,
            needed: None,
            idle: None,
            ended_at: None,
            stall: None,
        });
        job
    }

    #[test]
    fn reported_progress_overrides_the_expected_duration() {
        let left = |job: &Job| job.expected_remaining(Time::from_secs(150)).map(Seconds::get);
        assert_eq!(left(&job(None, None)), None);
        assert_eq!(left(&running(job(None, None))), None);
        assert_eq!(left(&job(Some(80), None)), Some(80.0));
        assert_eq!(left(&running(job(Some(80), None))), Some(30.0));
        assert_eq!(left(&running(job(Some(20), None))), Some(0.0));
        assert_eq!(left(&running(job(Some(80), Some(0.25)))), Some(150.0));
        assert_eq!(left(&running(job(None, Some(0.5)))), Some(50.0));
    }

    #[test]
    fn only_checkpointed_work_counts_as_done() {
        let mut waiting = job(Some(80), Some(0.75));
        assert_eq!(waiting.expected_remaining(Time::ZERO), Some(Seconds::from_secs(80)));
        (waiting.checkpointed_at, waiting.saved_progress) = (Some(Time::from_secs(20)), Some(Fraction::clamped(0.25)));
        assert_eq!(waiting.expected_remaining(Time::ZERO), Some(Seconds::from_secs(60)));
        waiting.attained = Seconds::from_secs(30);
        waiting.progress = None;
        assert_eq!(running(waiting).expected_remaining(Time::from_secs(110)), Some(Seconds::from_secs(40)));
    }
}
