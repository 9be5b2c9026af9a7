//! Actions of users and operators on jobs.

use std::time::{Duration, Instant};

use carma_core::{Event, EventError, JobId, Signal, State};

use super::jobs_action::JobsAction;
use super::refusal::{refused, unavailable};
use super::state::{Condition, EngineState};
use crate::api::{JobAction, JobChange, Problem, ProblemKind};
use crate::event::{ByUser, JobEvent};

/// The longest piece of an action. Inputs and other users wait for it.
const PIECE: Duration = Duration::from_millis(2);
/// The most jobs of a piece. Other users also wait until they are written.
const MAX_JOBS: usize = 100;

impl EngineState {
    /// Does a piece of an action. Returns the rest; the answer follows the last piece.
    pub(crate) fn act_on_some(&mut self, mut action: Box<JobsAction>) -> Option<Box<JobsAction>> {
        let begin = Instant::now();
        for _ in 0..MAX_JOBS {
            let Some((job, is_last)) = action.next() else { break };
            let cancels_running = action.action == JobAction::Cancel && self.is_active(job);
            if cancels_running && !is_last {
                action.postpone(job);
            } else {
                let result = self.act_on_job(job, &action.action, &action.by);
                if cancels_running && result.is_ok() {
                    self.cancellations.add(job, &action.by);
                    action.signalled(job);
                }
                action.acted_on(job, result);
            }
            if begin.elapsed() >= PIECE {
                break;
            }
        }
        if action.is_done() {
            action.answer(&mut self.decisions.batch);
            return None;
        }
        action.count_written(&mut self.decisions.batch);
        Some(action)
    }

    /// Ends an action while nothing can be written. Running jobs to cancel get their signal all the same; a second cancellation kills.
    pub(crate) fn end_action(&mut self, mut action: JobsAction, reason: &str) {
        if action.action == JobAction::Cancel && self.condition != Condition::Stopping {
            let running: Vec<_> = action.rest().filter_map(|job| self.attempts.of_job(job)).collect();
            for attempt in running {
                let signal = if self.cancellations.add(attempt.job, &action.by) { Signal::Terminate } else { Signal::Kill };
                self.attempts.signal(attempt, signal);
                action.signalled(attempt.job);
            }
        }
        action.answer_unwritten(unavailable(reason));
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
            return Err(ProblemKind::Conflict.because("it is over"));
        }
        self.decisions.tell(event).map_err(|error| match error {
            // The answer names the job.
            EventError::Transition { error, .. } => ProblemKind::Conflict.because(error.to_string()),
            error => refused(&error),
        })?;
        let what = format!("is {}", logged.kind().replace('_', " "));
        self.decisions.note(job, logged, what);
        Ok(())
    }
}
