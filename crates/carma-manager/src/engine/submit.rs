//! Submissions: from the request of a user to the job of the core.

use std::sync::Arc;
use std::time::Instant;

use carma_core::{
    ArrayId, ArrayMember, Condition, Dependency, Event, GroupId, JobId, JobLabel, JobSpec, MemoryNeed, OnHang, PerRank, UserId,
};

use super::begin_times;
use super::decide::Reply;
use super::decide::batch::AcceptedJob;
use super::estimates::{EstimateOrder, Estimated, Method, Place, Purpose};
use super::refusal::refused;
use super::state::EngineState;
use crate::api::{Problem, ProblemKind, Submitted};
use crate::configuration::DryRunHost;
use crate::event::JobEvent;
use crate::request::{After, JobRequest, Owner};
use crate::store::{JobMeta, UnixMillis};
use crate::submission::ValidJobs;
use crate::submission_key::SubmissionKey;
use crate::tally::Tally;

/// The most lines of notes in an answer: a sweep may have as many different ones as jobs.
const MAX_NOTES: usize = 10;

/// A job that passed the manager's checks, with its estimate.
struct CheckedJob {
    spec: JobSpec,
    request: JobRequest,
    /// The estimate from earlier runs.
    recalled: Option<Estimated>,
    /// How it is estimated otherwise.
    method: Option<Method>,
    /// A note for its user.
    note: Option<String>,
}

impl EngineState {
    /// Accepts jobs, all or none. Answered after the commit.
    pub(crate) fn submit(&mut self, owner: &Owner, jobs: ValidJobs, key: Option<SubmissionKey>, reply: Reply<Submitted>) {
        match self.accept_once(owner, jobs, key) {
            Ok(accepted) => self.decisions.answer(reply, accepted),
            Err(problem) => drop(reply.send(Err(problem))),
        }
    }

    /// Accepts jobs, unless this user has submitted them before under the same key.
    fn accept_once(&mut self, owner: &Owner, jobs: ValidJobs, key: Option<SubmissionKey>) -> Result<Submitted, Problem> {
        let Some(key) = key else { return self.accept(owner, jobs) };
        if let Some(earlier) = self.keyed.earlier(&self.reader, owner.uid, &key)? {
            return Ok(earlier);
        }
        let accepted = self.accept(owner, jobs)?;
        self.keyed.keep(&mut self.decisions, owner.uid, key, &accepted);
        Ok(accepted)
    }

    fn accept(&mut self, owner: &Owner, jobs: ValidJobs) -> Result<Submitted, Problem> {
        if self.draining {
            return Err(ProblemKind::Unavailable.because("the manager is draining, and takes no more jobs"));
        }
        let jobs = jobs.into_requests();
        self.check_limits(owner, &jobs)?;
        let first = self.writer.store().next_jobs(jobs.len() as u64);
        let ids = (first.0..).map(JobId);
        let checked = ids.zip(jobs).map(|(id, request)| self.check(id, first, request, owner)).collect::<Result<Vec<_>, _>>()?;
        // The core checks all of them before it accepts the first: a job of a refused array must not have run.
        let specs = checked.iter().map(|job| job.spec.clone()).collect();
        self.decisions.tell(Event::JobsSubmitted { jobs: specs }).map_err(|error| refused(&error))?;
        let accepted = Submitted { jobs: checked.iter().map(|job| job.spec.id).collect(), notes: notes(&checked) };
        let submitted = self.decisions.wall();
        for job in checked {
            self.record(job, owner, submitted);
        }
        Ok(accepted)
    }

    /// Checks a request, and adds what earlier runs show.
    fn check(&self, id: JobId, first: JobId, mut request: JobRequest, owner: &Owner) -> Result<CheckedJob, Problem> {
        request.array.iter_mut().for_each(|element| element.array = Some(ArrayId(first.0)));
        let mut spec = self.spec(id, first, &request, owner)?;
        let recalled = self.estimates.recall(&request, spec.user);
        let note = self.estimates.add_to(&mut spec, &request, recalled.as_ref());
        spec.validate().map_err(|error| ProblemKind::Invalid.because(error.to_string()))?;
        if let Some(problem) = recalled.as_ref().and_then(|recalled| self.over_limit(recalled)) {
            return Err(problem);
        }
        let method = if recalled.is_some() { None } else { self.estimates.method(&request) };
        spec.awaits_estimate = method.is_some();
        Ok(CheckedJob { spec, request, recalled, method, note })
    }

    /// Records an accepted job, and starts its estimate if it needs one.
    fn record(&mut self, job: CheckedJob, owner: &Owner, submitted: UnixMillis) {
        let CheckedJob { spec, request, recalled, method, note } = job;
        let (id, label) = (spec.id, spec.label());
        self.estimates.lengths.add(id, &request, spec.user);
        self.predictions.submitted(&self.decisions, &self.estimates.lengths, &spec);
        self.jobs.add(id, JobMeta { name: request.name.clone(), owner: owner.clone(), submitted });
        if let Some(method) = method {
            self.order_estimate(Purpose::Job(id), request.clone(), owner.clone(), method);
        }
        self.decisions.batch.tallies.count(Tally::Submitted);
        self.decisions.batch.accepted.push(AcceptedJob { job: id, request, owner: owner.clone(), submitted });
        self.decisions.note(id, JobEvent::Submitted { user: owner.name.clone() }, "is submitted");
        if method.is_some() {
            self.decisions.batch.log(submitted, label, JobEvent::Estimating {});
        }
        if recalled.is_some() || note.is_some() {
            let mut estimated = recalled.unwrap_or_default();
            estimated.notes.extend(note);
            self.decisions.batch.log(submitted, label, JobEvent::Estimated(Box::new(estimated)));
        }
    }

    /// Checks the limits of the configuration.
    pub(crate) fn check_limits(&self, owner: &Owner, jobs: &[JobRequest]) -> Result<(), Problem> {
        let limits = &self.setup.configuration.manager.limits;
        let limit = |text: String| Err(ProblemKind::Limit.because(text));
        let has = self.jobs.count_of(owner.uid);
        if let Some(most) = limits.jobs_per_user.filter(|most| has + jobs.len() as u64 > *most) {
            return limit(format!("{} has {has} jobs that are not over, and may have {most}", owner.name));
        }
        for request in jobs {
            let resources = &request.resources;
            if let Some(most) = limits.gpus_per_job.filter(|most| resources.gpus > *most) {
                return limit(format!("a job may have {most} GPUs here, and it asks for {}", resources.gpus));
            }
            if let Some(most) = self.most_gpus_of_a_pilot().filter(|most| resources.gpus > *most) {
                let text = format!("the job needs {} GPUs, and no server or pilot has more than {most}", resources.gpus);
                return limit(format!("{text}: a job over several nodes needs sbatch"));
            }
            if let Some((most, memory)) = limits.memory_per_job.zip(resources.memory).filter(|(most, memory)| memory > most) {
                return limit(format!("a job may have {most} on a GPU here, and it asks for {memory}"));
            }
            if let Some((most, time)) = limits.seconds_per_job.zip(resources.time_limit).filter(|(most, time)| time > most) {
                return limit(format!("a job may take {most} here, and it asks for {time}"));
            }
        }
        Ok(())
    }

    /// Why nothing here, with all pools, could ever run such a job.
    pub(crate) fn never_runs(&self, owner: &Owner, request: &JobRequest) -> Result<Option<String>, Problem> {
        let id = JobId(u64::MAX / 2);
        // What it waits for does not matter here.
        let mut request = request.clone();
        request.schedule.after.clear();
        let spec = self.spec(id, id, &request, owner)?;
        let Some(reason) = self.decisions.scheduler().never_runs(&spec).filter(|_| !self.a_pilot_could_run(&spec)) else { return Ok(None) };
        Ok(Some(format!("the job {reason}")))
    }

    /// The problem of a job whose estimate exceeds the limit.
    fn over_limit(&self, estimated: &Estimated) -> Option<Problem> {
        let limit = self.setup.configuration.manager.limits.memory_per_job?;
        let expected = estimated.estimate.memory.as_ref()?.get(0)?.expected;
        (expected > limit)
            .then(|| ProblemKind::Limit.because(format!("a job may have {limit} on a GPU here, and it is expected to need {expected}")))
    }

    /// The core's view of a request.
    pub(crate) fn spec(&self, id: JobId, first: JobId, request: &JobRequest, owner: &Owner) -> Result<JobSpec, Problem> {
        let (resources, schedule) = (&request.resources, &request.schedule);
        let longest = self.setup.configuration.manager.limits.seconds_per_job;
        let array =
            request.array.as_ref().map(|element| ArrayMember { array: ArrayId(first.0), index: element.index, at_most: schedule.at_most });
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
            begin: schedule.begin.map(|seconds| begin_times::in_core_time(&self.decisions.clock, seconds)),
            hold: schedule.hold,
            exclusive: resources.exclusive,
            mode: resources.mode,
            may_checkpoint: request.may_checkpoint,
            retries: request.retries,
            on_hang: if request.interactive { OnHang::Ignore } else { request.on_hang },
            ..JobSpec::new(id)
        })
    }

    /// A dependency; none if that job is over and meets the condition.
    fn dependency(&self, after: &After) -> Result<Option<Dependency>, Problem> {
        let unknown = || ProblemKind::Invalid.because(format!("it is to come after job {}, which is not known", after.job));
        let job = after.job.parse().map(JobId).map_err(|_| unknown())?;
        if self.decisions.job(job).is_some() {
            return Ok(Some(Dependency { job, condition: after.condition }));
        }
        // It is over, and no longer in the core.
        let history = self.reader.job(job).map_err(|error| ProblemKind::Internal.because(error.to_string()))?.ok_or_else(unknown)?;
        match (after.condition, history.job.job.state.outcome()) {
            (Condition::Any, _) => Ok(None),
            (Condition::Ok, Some(outcome)) if outcome.succeeded() => Ok(None),
            (Condition::Ok, outcome) => {
                let how = outcome.map_or_else(|| "is not known any more".to_owned(), ToString::to_string);
                Err(ProblemKind::Conflict
                    .because(format!("it is to come after {} has succeeded, and that {how}", history.job.job.spec.label())))
            }
        }
    }

    /// An estimate is ready or has failed. The job is queued now, unless its user holds it.
    pub(crate) fn estimated(&mut self, job: JobId, request: &JobRequest, mut estimated: Estimated) {
        self.estimates.is_ready(job);
        let Some(known) = self.decisions.job(job).filter(|job| job.state.outcome().is_none()) else { return };
        let mut spec = known.spec.clone();
        let note = self.estimates.add_to(&mut spec, request, Some(&estimated));
        // A raised estimate replaces the declaration, which the core already knows to be too low.
        estimated.estimate.memory = spec.memory.estimated;
        estimated.notes.extend(note);
        let over = self.over_limit(&estimated);
        // A job over a limit must not be queued before it is cancelled.
        if over.is_none() {
            let _ = self.decisions.tell(Event::EstimateReady { job, estimate: Box::new(estimated.estimate.clone()) });
        }
        self.decisions.note(job, JobEvent::Estimated(Box::new(estimated)), "is estimated");
        if let Some(problem) = over {
            let text = format!("is over a limit: {}", problem.message);
            self.decisions.note(job, JobEvent::OverLimit { text: problem.message }, text);
            let _ = self.decisions.tell(Event::JobCancelled { job });
        }
    }

    /// Has a job estimated, here or by an agent.
    pub(crate) fn order_estimate(&mut self, purpose: Purpose, request: JobRequest, owner: Owner, method: Method) {
        let (gpu, place) = (self.gpus.only_kind().map(str::to_owned), self.place_of_estimate(method));
        self.estimates.order(EstimateOrder {
            purpose,
            request,
            owner,
            method,
            gpu,
            place,
            ordered: Instant::now(),
            stopped: Arc::default(),
        });
    }

    /// A host without GPUs may lack the environments of jobs, or forbid such work. Descriptions are read in milliseconds anywhere.
    fn place_of_estimate(&self, method: Method) -> Place {
        let has_agents = !self.servers.is_empty() || !self.pools.is_empty();
        let on_agents = match self.setup.configuration.manager.estimates.dry_run_on {
            DryRunHost::Auto => !self.gpus.has_local(),
            DryRunHost::Manager => false,
            DryRunHost::Agents => true,
        };
        if method == Method::DryRun && has_agents && on_agents { Place::Agents } else { Place::Here }
    }

    /// Estimates a waiting job again, or queues it if it gets no estimate any more.
    pub(crate) fn estimate_again(&mut self, job: JobId, request: JobRequest, owner: Owner) {
        if let Some(method) = self.estimates.method(&request) {
            self.order_estimate(Purpose::Job(job), request, owner, method);
        } else {
            let _ = self.decisions.tell(Event::EstimateReady { job, estimate: Box::default() });
            self.decisions.batch.changed.insert(job);
        }
    }
}

/// The notes of a submission: jobs with the same note share a line.
fn notes(checked: &[CheckedJob]) -> Vec<String> {
    let mut lines: Vec<(JobLabel, usize, &str)> = Vec::new();
    for (id, note) in checked.iter().filter_map(|job| Some((job.spec.label(), job.note.as_ref()?))) {
        match lines.iter().position(|(_, _, text)| text == note) {
            Some(line) => lines[line].1 += 1,
            None if lines.len() < MAX_NOTES => lines.push((id, 0, note)),
            None => {}
        }
    }
    let line = |(first, more, note): (JobLabel, usize, &str)| match more {
        0 => format!("{first}: {note}"),
        more => format!("{first} and {more} more: {note}"),
    };
    lines.into_iter().map(line).collect()
}
