//! What a request means to the core, the limits of the configuration, and estimates of jobs that are accepted.

use std::sync::Arc;
use std::time::Instant;

use carma_core::{ArrayId, ArrayMember, Condition, Dependency, Event, GroupId, JobId, JobSpec, MemoryNeed, OnHang, PerRank, UserId};

use super::begin_times;
use super::estimates::{EstimateOrder, Estimated, Method, Place, Purpose};
use super::request_source::RequestSource;
use super::state::EngineState;
use crate::api::{Problem, ProblemKind};
use crate::configuration::DryRunHost;
use crate::event::JobEvent;
use crate::request::{After, JobRequest, Owner};

impl EngineState {
    /// Checks the limits of the configuration: this many jobs of these kinds.
    pub(crate) fn check_limits(&self, owner: &Owner, count: usize, kinds: &[JobRequest]) -> Result<(), Problem> {
        let limits = &self.setup.configuration.manager.limits;
        let limit = |text: String| Err(ProblemKind::Limit.because(text));
        let has = self.jobs.count_of(owner.uid);
        if let Some(most) = limits.jobs_per_user.filter(|most| has + count as u64 > *most) {
            return limit(format!("{} has {has} unfinished jobs; the limit is {most}", owner.name));
        }
        for request in kinds {
            let resources = &request.resources;
            if let Some(most) = limits.gpus_per_job.filter(|most| resources.gpus > *most) {
                return limit(format!("the limit is {most} GPUs per job; the job requests {}", resources.gpus));
            }
            if let Some(most) = self.most_gpus_of_a_pilot().filter(|most| resources.gpus > *most) {
                let text = format!("the job needs {} GPUs; no server or pilot has more than {most}", resources.gpus);
                return limit(format!("{text}: a job over several nodes needs sbatch"));
            }
            if let Some((most, memory)) = limits.memory_per_job.zip(resources.memory).filter(|(most, memory)| memory > most) {
                return limit(format!("the limit is {most} per GPU; the job requests {memory}"));
            }
            if let Some((most, time)) = limits.seconds_per_job.zip(resources.time_limit).filter(|(most, time)| time > most) {
                return limit(format!("the time limit here is at most {most}; the job requests {time}"));
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
    pub(super) fn over_limit(&self, estimated: &Estimated) -> Option<Problem> {
        let limit = self.setup.configuration.manager.limits.memory_per_job?;
        let expected = estimated.estimate.memory.as_ref()?.get(0)?.expected;
        (expected > limit)
            .then(|| ProblemKind::Limit.because(format!("the limit is {limit} per GPU; the estimate of the job is {expected}")))
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
        let unknown = || ProblemKind::Invalid.because(format!("it depends on the unknown job {}", after.job));
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
                Err(ProblemKind::Conflict.because(format!("it depends on the success of {}, which {how}", history.job.job.spec.label())))
            }
        }
    }

    /// An estimate is ready or has failed. The job is queued now, unless its user holds it.
    pub(crate) fn estimated(&mut self, job: JobId, request: &JobRequest, mut estimated: Estimated) {
        self.estimates.is_ready(job);
        let Some(known) = self.decisions.job(job).filter(|job| job.state.outcome().is_none()) else { return };
        let mut spec = known.spec.clone();
        let groups = self.estimates.lengths.groups(request, spec.user);
        let note = self.estimates.add_to(&mut spec, request, &groups, Some(&estimated));
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
    pub(crate) fn order_estimate(&mut self, purpose: Purpose, request: RequestSource, owner: Owner, method: Method) {
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
            self.order_estimate(Purpose::Job(job), request.into(), owner, method);
        } else {
            let _ = self.decisions.tell(Event::EstimateReady { job, estimate: Box::default() });
            self.decisions.batch.changed.insert(job);
        }
    }
}
