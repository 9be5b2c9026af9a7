//! Forecasts: where jobs would run if they were submitted now.

use carma_core::{Action, Event, JobId, JobSpec, Placement, UserId, Wording};

use super::decide::Reply;
use super::estimates::{Estimated, Purpose};
use super::refusal::refused;
use super::state::EngineState;
use super::views::moment;
use crate::api::{EstimateDetail, Forecast, Problem, Why};
use crate::host_gpus::LOCAL_SERVER;
use crate::request::{JobRequest, Owner};
use crate::submission::ValidJobs;

impl EngineState {
    /// If the first job has no earlier run, it is estimated first. Other jobs of an array get the same estimate.
    pub(crate) fn forecast_requested(&mut self, owner: Owner, jobs: ValidJobs, reply: Reply<Vec<Forecast>>) {
        let jobs = jobs.into_requests();
        let first = jobs.first().filter(|request| self.estimates.recall(request, UserId(owner.uid)).is_none());
        let order = first.and_then(|request| Some((self.estimates.method(request)?, request.clone())));
        match order {
            Some((method, request)) => self.order_estimate(Purpose::Forecast { jobs, reply }, request.into(), owner, method),
            None => drop(reply.send(self.forecast(&owner, jobs, None))),
        }
    }

    /// Where jobs would run if they were submitted now. It asks a copy of the core, so nothing changes.
    pub(crate) fn forecast(&self, owner: &Owner, jobs: Vec<JobRequest>, estimated: Option<&Estimated>) -> Result<Vec<Forecast>, Problem> {
        const MAX_FORECASTS: usize = 16;
        self.check_limits(owner, jobs.len(), &jobs)?;
        let mut scheduler = self.decisions.scheduler().clone();
        let now = self.decisions.now();
        let mut actions = Vec::new();
        if self.setup.observes || self.draining {
            actions = scheduler.handle(Event::HostRecovered { server: LOCAL_SERVER }, now).unwrap_or_default();
        }
        let first = JobId(u64::MAX / 2);
        let mut forecasts = Vec::new();
        for (id, request) in (first.0..).map(JobId).zip(jobs.into_iter().take(MAX_FORECASTS)) {
            let mut spec = self.spec(id, first, &request, owner)?;
            let recalled = self.estimates.recall(&request, spec.user).or_else(|| estimated.cloned());
            let groups = self.estimates.lengths.groups(&request, spec.user);
            let note = self.estimates.add_to(&mut spec, &request, &groups, recalled.as_ref());
            actions.extend(scheduler.handle(Event::JobSubmitted(Box::new(spec.clone())), now).map_err(|error| refused(&error))?);
            let placement = actions.iter().find_map(|action| launched(action, id)).cloned();
            let why = placement.is_none().then(|| scheduler.explain(id)).transpose().map_err(|error| refused(&error))?.map(|explanation| {
                // It has no number yet.
                let name = |job| if job == id { "it".to_owned() } else { scheduler.label(job).to_string() };
                Why::new(explanation, Wording { moment: &|time| moment(time, now), job: &name })
            });
            let mut estimate = detail(&spec, recalled.as_ref());
            estimate.declared = request.resources.memory;
            estimate.notes.extend(note);
            forecasts.push(Forecast { estimate, placement, why });
        }
        Ok(forecasts)
    }
}

fn launched(action: &Action, job: JobId) -> Option<&Placement> {
    match action {
        Action::Launch { attempt, placement, .. } if attempt.job == job => Some(placement),
        _ => None,
    }
}

fn detail(spec: &JobSpec, recalled: Option<&Estimated>) -> EstimateDetail {
    let declared = spec.memory.known.as_ref().and_then(|known| known.get(0)).copied();
    let estimate = spec.memory.estimated.as_ref().and_then(|estimated| estimated.get(0));
    EstimateDetail {
        declared,
        expected: estimate.map(|estimate| estimate.expected),
        upper: estimate.map(|estimate| estimate.upper),
        utilisation: recalled.and_then(|recalled| recalled.estimate.utilisation).unwrap_or_default(),
        duration: recalled.and_then(|recalled| recalled.estimate.duration),
        source: recalled.and_then(|recalled| recalled.source.clone()).or_else(|| declared.map(|_| "declared".to_owned())),
        notes: recalled.map(|recalled| recalled.notes.clone()).unwrap_or_default(),
        parts: recalled.map(|recalled| recalled.parts.clone()).unwrap_or_default(),
    }
}
