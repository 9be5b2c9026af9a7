//! Jobs that are submitted: from what a user asks for to what the core decides on.

use carma_core::{
    ArrayId, ArrayMember, Condition, Dependency, Event, EventError, GroupId, JobId, JobSpec, MemoryNeed, PerRank, Seconds, UserId,
};

use super::batch::{Accepted, Effect};
use super::estimates::{EstimateOrder, Estimated, Method, Purpose, method};
use super::handle::Reply;
use super::run::{Known, Running};
use crate::api::{Problem, ProblemKind};
use crate::event::JobEvent;
use crate::metrics::Tally;
use crate::request::{After, JobRequest, Owner};
use crate::store::UnixMillis;

/// The most lines of notes in an answer: a sweep may have as many different ones as jobs.
const MOST_NOTES: usize = 10;

/// A job that passed the manager's checks, with all that is known about it.
struct Checked {
    spec: JobSpec,
    request: JobRequest,
    /// What earlier runs showed.
    recalled: Option<Estimated>,
    /// How the rest is estimated.
    method: Option<Method>,
    /// What its user should know.
    note: Option<String>,
}

/// Jobs that were accepted, and what their user should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedJobs {
    /// The jobs, in the order of the submission.
    pub jobs: Vec<JobId>,
    /// What their user should know.
    pub notes: Vec<String>,
}

impl Running {
    /// Accepts jobs, all or none. The answer is sent when they are on the disk.
    pub(super) fn submit(&mut self, owner: &Owner, jobs: Vec<JobRequest>, reply: Reply<AcceptedJobs>) {
        match self.accept(owner, jobs) {
            Ok(accepted) => {
                let answer = move |written: Result<(), Problem>| drop(reply.send(written.map(|()| accepted)));
                self.batch.effects.push(Effect::Answer(Box::new(answer)));
            }
            Err(problem) => drop(reply.send(Err(problem))),
        }
    }

    fn accept(&mut self, owner: &Owner, jobs: Vec<JobRequest>) -> Result<AcceptedJobs, Problem> {
        if self.draining {
            return Err(ProblemKind::Unavailable.because("the manager is draining, and takes no more jobs"));
        }
        self.check_limits(owner, &jobs)?;
        let first = self.store.next_jobs(jobs.len() as u64);
        let ids = (first.0..).map(JobId);
        let checked = ids.zip(jobs).map(|(id, request)| self.check(id, first, request, owner)).collect::<Result<Vec<_>, _>>()?;
        // The core checks all of them before it accepts the first: a job of a refused array must not have run.
        let specs = checked.iter().map(|job| job.spec.clone()).collect();
        let actions = self.core.handle(Event::JobsSubmitted { jobs: specs }, self.clock.now()).map_err(|error| refused(&error))?;
        let accepted = AcceptedJobs { jobs: checked.iter().map(|job| job.spec.id).collect(), notes: notes(&checked) };
        let submitted = self.clock.wall();
        for job in checked {
            self.record(job, owner, submitted);
        }
        self.act_on(actions);
        Ok(accepted)
    }

    /// Checks a request by itself, and gathers what is known about it.
    fn check(&self, id: JobId, first: JobId, request: JobRequest, owner: &Owner) -> Result<Checked, Problem> {
        let mut spec = self.spec(id, first, &request, owner)?;
        let recalled = self.memory.recall(&request);
        let note = self.tell_estimate(&mut spec, &request, recalled.as_ref());
        spec.validate().map_err(|error| ProblemKind::Invalid.because(error.to_string()))?;
        if let Some(problem) = recalled.as_ref().and_then(|recalled| self.over_limit(recalled)) {
            return Err(problem);
        }
        let method = if recalled.is_some() { None } else { method(&request, &self.setup.configuration.manager.estimates) };
        // Held while it is estimated: other jobs go on meanwhile.
        spec.hold |= method.is_some();
        Ok(Checked { spec, request, recalled, method, note })
    }

    /// Adds an estimate to what the core knows of a job, and what earlier runs show against it. Answers what to tell the user.
    pub(super) fn tell_estimate(&self, spec: &mut JobSpec, request: &JobRequest, estimated: Option<&Estimated>) -> Option<String> {
        if let Some(Estimated { estimate, .. }) = estimated {
            estimate.clone().tell(spec);
        }
        let raises = self.setup.configuration.manager.estimates.raise_declared && spec.gpus > 0;
        self.memory.earlier_runs(request).filter(|_| raises)?.raise(spec)
    }

    /// Notes that a job was accepted, and starts its estimate where it needs one.
    fn record(&mut self, job: Checked, owner: &Owner, submitted: UnixMillis) {
        let Checked { spec, request, recalled, method, note } = job;
        let id = spec.id;
        self.jobs.insert(id, Known { name: request.name.clone(), owner: owner.clone(), submitted });
        *self.of_user.entry(owner.uid).or_default() += 1;
        if let Some(method) = method {
            // A job that its user holds waits for more than its estimate.
            if !request.schedule.hold {
                self.estimating.insert(id);
            }
            self.estimators.estimate(EstimateOrder { purpose: Purpose::Job(id), request: request.clone(), owner: owner.clone(), method });
        }
        self.batch.tallies.count(Tally::Submitted);
        self.batch.accepted.push(Accepted { job: id, request, owner: owner.clone(), submitted });
        self.note(id, JobEvent::Submitted { user: owner.name.clone() }, format!("{id} is submitted"));
        if method.is_some() {
            self.batch.log(submitted, id, JobEvent::Estimating {});
        }
        if recalled.is_some() || note.is_some() {
            let mut estimated = recalled.unwrap_or_default();
            estimated.notes.extend(note);
            self.batch.log(submitted, id, JobEvent::Estimated(Box::new(estimated)));
        }
    }

    /// Nothing more is kept of a job than the store and the core know.
    pub(super) fn unknow(&mut self, job: JobId) {
        if let Some(known) = self.jobs.remove(&job) {
            self.of_user.entry(known.owner.uid).and_modify(|jobs| *jobs = jobs.saturating_sub(1));
        }
    }

    /// The limits of the configuration.
    pub(super) fn check_limits(&self, owner: &Owner, jobs: &[JobRequest]) -> Result<(), Problem> {
        let limits = &self.setup.configuration.manager.limits;
        let limit = |text: String| Err(ProblemKind::Limit.because(text));
        let has = self.of_user.get(&owner.uid).copied().unwrap_or(0);
        if limits.jobs_per_user > 0 && has + jobs.len() as u64 > limits.jobs_per_user {
            return limit(format!("{} has {has} jobs that are not over, and may have {}", owner.name, limits.jobs_per_user));
        }
        for request in jobs {
            let resources = &request.resources;
            if limits.gpus_per_job > 0 && resources.gpus > limits.gpus_per_job {
                return limit(format!("a job may have {} GPUs here, and it asks for {}", limits.gpus_per_job, resources.gpus));
            }
            if let Some(memory) = resources.memory.filter(|memory| limits.memory_per_job.0 > 0 && *memory > limits.memory_per_job) {
                return limit(format!("a job may have {} on a GPU here, and it asks for {memory}", limits.memory_per_job));
            }
            let most = Seconds::from_secs(limits.seconds_per_job);
            if let Some(time) = resources.time_limit.filter(|time| most > Seconds::ZERO && *time > most) {
                return limit(format!("a job may take {most} here, and it asks for {time}"));
            }
        }
        Ok(())
    }

    /// What a job is expected to need may be more than it may have, as what its user declares may.
    fn over_limit(&self, estimated: &Estimated) -> Option<Problem> {
        let limit = self.setup.configuration.manager.limits.memory_per_job;
        let expected = estimated.estimate.memory.as_ref()?.get(0)?.expected;
        let over = limit.0 > 0 && expected > limit;
        over.then(|| ProblemKind::Limit.because(format!("a job may have {limit} on a GPU here, and it is expected to need {expected}")))
    }

    /// What the core is told of a request.
    pub(super) fn spec(&self, id: JobId, first: JobId, request: &JobRequest, owner: &Owner) -> Result<JobSpec, Problem> {
        let (resources, schedule) = (&request.resources, &request.schedule);
        let longest = Some(self.setup.configuration.manager.limits.seconds_per_job).filter(|seconds| *seconds > 0).map(Seconds::from_secs);
        let array =
            request.array.as_ref().map(|label| ArrayMember { array: ArrayId(first.0), index: label.index, at_most: schedule.at_most });
        let dependencies = schedule.after.iter().filter_map(|after| self.dependency(after).transpose()).collect::<Result<Vec<_>, _>>()?;
        Ok(JobSpec {
            user: UserId(owner.uid),
            group: GroupId(owner.gid),
            gpus: resources.gpus,
            memory: MemoryNeed { known: resources.memory.map(PerRank::Same), estimated: None },
            cpus: resources.cpus,
            host_memory: resources.host_memory,
            time_limit: resources.time_limit.or(longest),
            priority: schedule.priority,
            dependencies,
            array,
            begin: schedule.begin.map(|seconds| self.clock.at(UnixMillis(seconds.saturating_mul(1000)))),
            hold: schedule.hold,
            exclusive: resources.exclusive,
            mode: resources.mode,
            may_checkpoint: request.may_checkpoint,
            retries: request.retries,
            ..JobSpec::new(id)
        })
    }

    /// A job to wait for; none where it is over and ended as it should.
    fn dependency(&self, after: &After) -> Result<Option<Dependency>, Problem> {
        let unknown = || ProblemKind::Invalid.because(format!("it is to come after job {}, which is not known", after.job));
        let job = after.job.parse().map(JobId).map_err(|_| unknown())?;
        if self.core.scheduler().job(job).is_some() {
            return Ok(Some(Dependency { job, condition: after.condition }));
        }
        // It is over, and the core has forgotten it.
        let history = self.reader.job(job).map_err(|error| ProblemKind::Internal.because(error.to_string()))?.ok_or_else(unknown)?;
        match (after.condition, history.job.job.state.outcome()) {
            (Condition::Any, _) => Ok(None),
            (Condition::Ok, Some(outcome)) if outcome.succeeded() => Ok(None),
            (Condition::Ok, outcome) => {
                let how = outcome.map_or_else(|| "is not known any more".to_owned(), ToString::to_string);
                Err(ProblemKind::Conflict.because(format!("it is to come after {job} has succeeded, and that {how}")))
            }
        }
    }

    /// An estimate is ready, or could not be made: the job waits for GPUs now, unless its user holds it.
    pub(super) fn estimated(&mut self, job: JobId, request: &JobRequest, mut estimated: Estimated) {
        let waits = self.estimating.remove(&job);
        let Some(known) = self.core.scheduler().job(job).filter(|job| job.state.outcome().is_none()) else { return };
        let mut spec = known.spec.clone();
        let note = self.tell_estimate(&mut spec, request, Some(&estimated));
        // A raised estimate replaces the declaration, which the core already knows to be too low.
        estimated.estimate.memory = spec.memory.estimated;
        estimated.notes.extend(note);
        let over = self.over_limit(&estimated);
        let _ = self.try_tell(Event::EstimateReady { job, estimate: Box::new(estimated.estimate.clone()) });
        if waits && over.is_none() {
            let _ = self.try_tell(Event::JobReleased { job });
        }
        self.note(job, JobEvent::Estimated(Box::new(estimated)), format!("{job} is estimated"));
        if let Some(problem) = over {
            let text = format!("{job} is over a limit: {}", problem.message);
            self.note(job, JobEvent::OverLimit { text: problem.message }, text);
            let _ = self.try_tell(Event::JobCancelled { job });
        }
    }

    /// A job that was kept back by us and not by its user goes on.
    pub(super) fn estimate_or_release(&mut self, job: JobId, request: JobRequest, owner: Owner) {
        if let Some(method) = method(&request, &self.setup.configuration.manager.estimates) {
            self.estimating.insert(job);
            self.estimators.estimate(EstimateOrder { purpose: Purpose::Job(job), request, owner, method });
        } else {
            let _ = self.try_tell(Event::JobReleased { job });
            self.batch.changed.insert(job);
        }
    }
}

/// The notes of a submission: jobs with the same note share a line.
fn notes(checked: &[Checked]) -> Vec<String> {
    let mut lines: Vec<(JobId, usize, &str)> = Vec::new();
    for (id, note) in checked.iter().filter_map(|job| Some((job.spec.id, job.note.as_ref()?))) {
        match lines.iter().position(|(_, _, text)| text == note) {
            Some(line) => lines[line].1 += 1,
            None if lines.len() < MOST_NOTES => lines.push((id, 0, note)),
            None => {}
        }
    }
    let line = |(first, more, note): (JobId, usize, &str)| match more {
        0 => format!("{first}: {note}"),
        more => format!("{first} and {more} more: {note}"),
    };
    lines.into_iter().map(line).collect()
}

/// What whoever asked is told when the core refuses.
pub(super) fn refused(error: &EventError) -> Problem {
    let kind = match error {
        EventError::UnknownJob(_) | EventError::UnknownDevice(_) | EventError::UnknownServer(_) => ProblemKind::NotFound,
        EventError::Transition { .. } | EventError::NotUnderWay(_) | EventError::InUse(_) | EventError::StillNeeded(_) => {
            ProblemKind::Conflict
        }
        _ => ProblemKind::Invalid,
    };
    kind.because(error.to_string())
}
