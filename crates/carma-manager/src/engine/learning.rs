//! What an attempt that succeeded teaches for later runs of the same job.

use carma_core::{AttemptId, Job, Seconds, Time, Verdict};
use carma_estimate::history::Measured;

use super::run::Running;
use crate::measure::Measurement;

impl Running {
    /// Later estimates of the same job go by what was measured of this attempt.
    pub(super) fn learn(&mut self, attempt: AttemptId, measurement: &Measurement, verdict: &Verdict) {
        let succeeded = *verdict == Verdict::Succeeded;
        // One that ran out of memory needed more than it was seen with.
        if !succeeded || measurement.gpus.is_empty() {
            return;
        }
        let job = self.core.scheduler().job(attempt.job);
        let took = job.and_then(|job| took(job, self.now()));
        let interference = job.map(|job| job.spec.interference).filter(|seen| !seen.is_as_predicted());
        let learned = measurement.learned(took, interference).map(|learned| {
            // What it does to a part of a GPU, and how long it takes there, says little of the whole.
            let on_parts = measurement.gpus.keys().any(|device| device.instance.is_some());
            if on_parts { Measured { memory: learned.memory, ..Measured::default() } } else { learned }
        });
        if let (Some(run), Ok(Some(request))) = (learned, self.reader.request(attempt.job)) {
            self.memory.learn(&request, run);
        }
    }
}

/// How long the whole of a job took that ends now: with what it had before where it went on from a checkpoint, as the core reckons what is left.
fn took(job: &Job, now: Time) -> Option<Seconds> {
    let ran = now - job.state.active()?.launched_at;
    let earlier = job.checkpointed_at.map(|_| job.attained.times(1.0 / f64::from(job.spec.gpus.max(1))));
    Some(earlier.unwrap_or_default() + ran)
}

#[cfg(test)]
mod tests {
    use carma_core::{Config, Event, JobId, JobSpec, Scheduler, ServerId, ServerSpec};

    use super::*;

    #[test]
    fn a_job_that_went_on_from_a_checkpoint_took_all_its_slots() {
        let mut scheduler = Scheduler::new(Config::default());
        let spec = JobSpec { gpus: 0, ..JobSpec::new(JobId(1)) };
        for event in [Event::ServerAttached(ServerSpec::new(ServerId(0))), Event::JobSubmitted(Box::new(spec))] {
            scheduler.handle(event, Time::from_secs(100)).unwrap();
        }
        let mut job = scheduler.job(JobId(1)).unwrap().clone();
        (job.spec.gpus, job.attained) = (2, Seconds::from_secs(80));
        let took = |job: &Job| took(job, Time::from_secs(110));
        assert_eq!(took(&job), Some(Seconds::from_secs(10)), "it began anew");
        job.checkpointed_at = Some(Time::from_secs(50));
        assert_eq!(took(&job), Some(Seconds::from_secs(50)));
    }
}
