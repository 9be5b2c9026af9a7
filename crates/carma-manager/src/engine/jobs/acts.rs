//! What users and operators do to jobs.

use carma_core::{Event, JobId, State};

use crate::api::{Act, Acted, JobChange, NotDone, Problem, ProblemKind};
use crate::engine::decide::Reply;
use crate::engine::refusal::refused;
use crate::engine::run::Running;
use crate::event::{ByUser, JobEvent};

impl Running {
    pub(crate) fn act_for(&mut self, jobs: Vec<JobId>, act: &Act, by: &str, reply: Reply<Acted>) {
        let mut acted = Acted::default();
        for job in jobs {
            match self.act_on_job(job, act, by) {
                Ok(()) => acted.done.push(job),
                Err(problem) => acted.not_done.push(NotDone { job, reason: problem.message }),
            }
        }
        self.decisions.answer(reply, acted);
    }

    fn act_on_job(&mut self, job: JobId, act: &Act, by: &str) -> Result<(), Problem> {
        let user = ByUser { by: by.to_owned() };
        let (logged, event) = match act {
            Act::Cancel => (JobEvent::Cancelled(user), Event::JobCancelled { job }),
            Act::Hold => (JobEvent::Held(user), Event::JobHeld { job }),
            Act::Release => (JobEvent::Released(user), Event::JobReleased { job }),
            Act::Requeue => (JobEvent::RequeueAsked(user), Event::JobRequeued { job }),
            Act::Change(change) => {
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
