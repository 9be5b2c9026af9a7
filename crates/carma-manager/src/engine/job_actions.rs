//! Actions of users and operators on jobs.

use std::collections::BTreeSet;

use carma_core::{Event, JobId, Signal, State};

use super::cancellations::Cancellations;
use super::decide::{Effect, Reply};
use super::refusal::{cause, refused, unavailable};
use super::state::EngineState;
use crate::api::{ActionFailure, ActionResult, JobAction, JobChange, Problem, ProblemKind};
use crate::event::{ByUser, JobEvent};

impl EngineState {
    pub(crate) fn act_on_jobs(&mut self, jobs: Vec<JobId>, action: &JobAction, by: &str, reply: Reply<ActionResult>) {
        let (mut acted, mut signalled) = (ActionResult::default(), BTreeSet::new());
        for job in jobs {
            match self.act_on_job(job, action, by) {
                Ok(()) => {
                    if *action == JobAction::Cancel && self.is_active(job) {
                        self.cancellations.add(job, by);
                        signalled.insert(job);
                    }
                    acted.done.push(job);
                }
                Err(problem) => acted.not_done.push(ActionFailure { job, reason: problem.message }),
            }
        }
        if signalled.is_empty() {
            return self.decisions.answer(reply, acted);
        }
        let answer = move |written: Result<(), Problem>| {
            let not_written =
                |problem: Problem| Cancellations::not_recorded(acted.clone(), |job| signalled.contains(&job), cause(&problem));
            drop(reply.send(Ok(written.map_or_else(not_written, |()| acted.clone()))));
        };
        self.decisions.batch.effects.push(Effect::Answer(Box::new(answer)));
    }

    /// Signals running jobs while nothing can be written. A second cancellation kills.
    pub(crate) fn cancel_unrecorded(&mut self, jobs: Vec<JobId>, by: &str, reason: &str, reply: Reply<ActionResult>) {
        let mut signalled = BTreeSet::new();
        for attempt in jobs.iter().filter_map(|job| self.attempts.of_job(*job)) {
            let signal = if self.cancellations.add(attempt.job, by) { Signal::Terminate } else { Signal::Kill };
            self.attempts.signal(attempt, signal);
            signalled.insert(attempt.job);
        }
        let answer = if signalled.is_empty() {
            Err(unavailable(reason))
        } else {
            let acted = ActionResult { done: jobs, not_done: Vec::new() };
            Ok(Cancellations::not_recorded(acted, |job| signalled.contains(&job), reason))
        };
        drop(reply.send(answer));
    }

    fn is_active(&self, job: JobId) -> bool {
        self.decisions.job(job).is_some_and(|job| job.state.active().is_some())
    }

    /// Records cancellations that could not be written before.
    pub(crate) fn record_cancellations(&mut self) {
        for (job, by) in self.cancellations.all() {
            if self.act_on_job(job, &JobAction::Cancel, &by).is_err() {
                // It is over.
                self.cancellations.remove(job);
            }
        }
        self.act();
        self.flush();
    }

    fn act_on_job(&mut self, job: JobId, action: &JobAction, by: &str) -> Result<(), Problem> {
        let user = ByUser { by: by.to_owned() };
        let (logged, event) = match action {
            JobAction::Cancel => (JobEvent::Cancelled(user), Event::JobCancelled { job }),
            JobAction::Hold => (JobEvent::Held(user), Event::JobHeld { job }),
            JobAction::Release => (JobEvent::Released(user), Event::JobReleased { job }),
            JobAction::Requeue => (JobEvent::RequeueRequested(user), Event::JobRequeued { job }),
            JobAction::Change(change) => {
                let JobChange { priority, time_limit } = *change;
                (JobEvent::Changed { by: user.by, change: change.clone() }, Event::JobChanged { job, priority, time_limit })
            }
        };
        let over = matches!(self.decisions.job(job).map(|job| &job.state), Some(State::Done { .. }) | None);
        if over {
            return Err(ProblemKind::Conflict.because(format!("{job} is over")));
        }
        self.decisions.tell(event).map_err(|error| refused(&error))?;
        let text = format!("{job} is {}", logged.kind().replace('_', " "));
        self.decisions.note(job, logged, text);
        Ok(())
    }
}
