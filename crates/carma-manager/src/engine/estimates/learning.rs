//! Learning from an attempt for later runs of the same job.

use carma_core::{AttemptId, Job, MiB, Seconds, Time, Verdict};
use carma_estimate::history::{Measured, RunEnd};

use super::Estimates;
use crate::engine::decide::Decisions;
use crate::judge::Judgement;
use crate::measure::Measurement;
use crate::store::Reader;

impl Estimates {
    /// Records what was measured of an attempt for later estimates.
    pub(crate) fn learn(&mut self, decisions: &Decisions, reader: &Reader, lesson: &LearnedRun<'_>) {
        let LearnedRun { attempt, measurement, judgement, gpu, alone } = *lesson;
        if let (Verdict::Succeeded, Some(gpu), Ok(Some(estimated))) = (&judgement.verdict, gpu, reader.estimate(attempt.job)) {
            self.calibrated.learn(&estimated, gpu, measurement.peak_memory());
        }
        let run = match judgement.verdict {
            Verdict::Succeeded => completed(decisions, attempt, measurement, alone),
            Verdict::OutOfMemory => {
                let memory = judgement.needed.unwrap_or_default().max(measurement.peak_memory());
                (memory > MiB::ZERO).then(|| Measured { memory, end: RunEnd::OutOfMemory, ..Measured::default() })
            }
            _ => None,
        };
        let user = decisions.job(attempt.job).map(|job| job.spec.user);
        if let (Some(run), Some(user), Ok(Some(request))) = (run, user, reader.request(attempt.job)) {
            if let Some(seconds) = run.seconds {
                self.lengths.learn(&request, user, seconds);
            }
            self.memory.learn(&request, user, run);
        }
    }
}

/// The result of an attempt, for later estimates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LearnedRun<'a> {
    pub(crate) attempt: AttemptId,
    pub(crate) measurement: &'a Measurement,
    pub(crate) judgement: &'a Judgement,
    /// The kind of GPU that it ran on.
    pub(crate) gpu: Option<&'a str>,
    /// How long it would have taken without the jobs beside it, as predicted.
    pub(crate) alone: Option<Seconds>,
}

fn completed(decisions: &Decisions, attempt: AttemptId, measurement: &Measurement, alone: Option<Seconds>) -> Option<Measured> {
    let job = decisions.job(attempt.job);
    let took = job.and_then(|job| took(job, alone, decisions.now()));
    let interference = job.map(|job| job.spec.interference).filter(|seen| !seen.is_as_predicted());
    let learned = measurement.learned(took, interference)?;
    // Activity and duration on a MIG instance say little about a whole GPU.
    let on_instances = measurement.gpus.keys().any(|device| device.instance.is_some());
    Some(if on_instances { Measured { memory: learned.memory, ..Measured::default() } } else { learned })
}

/// How long a job that ends now took in all, alone where that is known. One that went on from a checkpoint has run before, as the core counts it.
fn took(job: &Job, alone: Option<Seconds>, now: Time) -> Option<Seconds> {
    let ran = now - job.state.active()?.launched_at;
    let ran = alone.unwrap_or(ran).min(ran);
    let earlier = job.checkpointed_at.map(|_| job.attained.times(1.0 / f64::from(job.spec.gpus.max(1))));
    Some(earlier.unwrap_or_default() + ran)
}

#[cfg(test)]
mod tests {
    use carma_core::{Config, Event, JobId, JobSpec, Scheduler, ServerId, ServerSpec};

    use super::*;

    #[test]
    fn the_length_of_a_resumed_job_includes_all_its_time_slices() {
        let mut scheduler = Scheduler::new(Config::default());
        let spec = JobSpec { gpus: 0, ..JobSpec::new(JobId(1)) };
        for event in [Event::ServerAttached(ServerSpec::new(ServerId(0))), Event::JobSubmitted(Box::new(spec))] {
            scheduler.handle(event, Time::from_secs(100)).unwrap();
        }
        let mut job = scheduler.job(JobId(1)).unwrap().clone();
        (job.spec.gpus, job.attained) = (2, Seconds::from_secs(80));
        let took = |job: &Job| took(job, None, Time::from_secs(110));
        assert_eq!(
            super::took(&job, Some(Seconds::from_secs(7)), Time::from_secs(110)),
            Some(Seconds::from_secs(7)),
            "others slowed it down"
        );
        assert_eq!(took(&job), Some(Seconds::from_secs(10)), "it started from the beginning");
        job.checkpointed_at = Some(Time::from_secs(50));
        assert_eq!(took(&job), Some(Seconds::from_secs(50)));
    }
}
