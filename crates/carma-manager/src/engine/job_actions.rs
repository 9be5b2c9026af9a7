//! Actions of users and operators on jobs.

use carma_core::{Event, JobId, State};

use super::decide::Reply;
use super::refusal::refused;
use super::state::EngineState;
use crate::api::{ActionFailure, ActionResult, JobAction, JobChange, Problem, ProblemKind};
use crate::event::{ByUser, JobEvent};

impl EngineState {
    pub(crate) fn act_on_jobs(&mut self, jobs: Vec<JobId>, action: &JobAction, by: &str, reply: Reply<ActionResult>) {
        let mut acted = ActionResult::default();
        for job in jobs {
            match self.act_on_job(job, action, by) {
                Ok(()) => acted.done.push(job),
                Err(problem) => acted.not_done.push(ActionFailure { job, reason: problem.message }),
            }
        }
        self.decisions.answer(reply, acted);
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
