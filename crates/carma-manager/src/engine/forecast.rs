//! What would become of jobs that were submitted now.

use carma_core::{Action, Event, JobId, JobSpec, Placement};

use super::devices::SERVER;
use super::estimates::{EstimateOrder, Estimated, Purpose, method};
use super::handle::Reply;
use super::run::Running;
use super::submit::refused;
use crate::api::{EstimateDetail, Forecast, Problem, Why};
use crate::request::{JobRequest, Owner};

impl Running {
    /// Where nothing is remembered of the first, it is estimated before the question is answered; others of an array are taken to be alike.
    pub(super) fn asked_for_forecast(&mut self, owner: Owner, jobs: Vec<JobRequest>, reply: Reply<Vec<Forecast>>) {
        let first = jobs.first().filter(|request| self.memory.recall(request).is_none());
        let order = first.and_then(|request| Some((method(request, &self.setup.configuration.manager.estimates)?, request.clone())));
        match order {
            Some((method, request)) => {
                self.estimators.estimate(EstimateOrder { purpose: Purpose::Forecast { jobs, reply }, request, owner, method });
            }
            None => drop(reply.send(self.forecast(&owner, jobs, None))),
        }
    }

    /// What would become of jobs that were submitted now. A core of its own is asked, so that nothing changes.
    pub(super) fn forecast(&self, owner: &Owner, jobs: Vec<JobRequest>, estimated: Option<&Estimated>) -> Result<Vec<Forecast>, Problem> {
        const MOST: usize = 16;
        self.check_limits(owner, &jobs)?;
        let mut scheduler = self.core.scheduler().clone();
        let now = self.clock.now();
        let mut actions = Vec::new();
        if self.setup.observes || self.draining {
            actions = scheduler.handle(Event::HostFine { server: SERVER }, now).map_err(|error| refused(&error))?;
        }
        let first = JobId(u64::MAX / 2);
        let mut forecasts = Vec::new();
        for (id, request) in (first.0..).map(JobId).zip(jobs.into_iter().take(MOST)) {
            let recalled = self.memory.recall(&request).or_else(|| estimated.cloned());
            let mut spec = self.spec(id, first, &request, owner)?;
            let note = self.tell_estimate(&mut spec, &request, recalled.as_ref());
            actions.extend(scheduler.handle(Event::JobSubmitted(Box::new(spec.clone())), now).map_err(|error| refused(&error))?);
            let placement = actions.iter().find_map(|action| launched(action, id)).cloned();
            let why = placement.is_none().then(|| scheduler.explain(id)).transpose().map_err(|error| refused(&error))?.map(|explanation| {
                let why = Why::new(explanation, now);
                // It has no number yet.
                Why { text: why.text.replace(&id.to_string(), "it"), ..why }
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
