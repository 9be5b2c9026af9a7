//! Actions of the core. Each is stored; its effects wait for the commit.

use carma_core::{Action, AttemptId, Idle, JobId, Outcome, Placement, State};

use super::accounting::tallies;
use super::attempts::start_order;
use super::decide::Effect;
use super::state::EngineState;
use crate::event::JobEvent;
use crate::store::Change;

impl EngineState {
    /// Acts on all decisions of the core.
    pub(crate) fn act(&mut self) {
        while let Some(action) = self.decisions.next_action() {
            self.act_on(action);
        }
    }

    fn act_on(&mut self, action: Action) {
        let decisions = &mut self.decisions;
        match action {
            Action::Launch { attempt, placement, reason } => {
                let at = decisions.wall();
                self.attempts.add(attempt, placement.server, at);
                tallies::count_launch(decisions, attempt);
                decisions.batch.changes.push(Change::AttemptStarted { attempt, placement: placement.clone(), at });
                let event = JobEvent::Launched { attempt: attempt.number, placement: placement.clone(), reason };
                decisions.note(attempt.job, event, format_args!("attempt {} is launched", attempt.number));
                self.order_start(attempt, placement);
            }
            Action::Signal { attempt, signal, reason } => {
                tallies::count_signal(decisions);
                let event = JobEvent::Signalled { attempt: attempt.number, signal, reason };
                decisions.note(attempt.job, event, format_args!("attempt {} is told to end", attempt.number));
                decisions.batch.effects.push(Effect::Signal(attempt, signal));
            }
            Action::Requeue { job, floor, whole_gpu, reason } => {
                tallies::count_requeue(decisions, &reason);
                decisions.note(job, JobEvent::Requeued { floor: Some(floor), whole_gpu, reason }, "waits again");
            }
            Action::LimitPower { device, limit } => self.gpus.limit_power(device, limit),
            Action::Idle { job, idle } => {
                let unused = matches!(decisions.job(job).map(|job| &job.state), Some(State::Starting(_)));
                let text = idle.map_or("works again", |idle| idle_text(idle, unused));
                decisions.note(job, JobEvent::Idle { idle, text: text.to_owned() }, text);
            }
            Action::Stall { job, stall } => {
                let text = stall.map_or_else(|| "makes progress again".to_owned(), |stall| stall.to_string());
                decisions.note(job, JobEvent::Stall { stall, text: text.clone() }, format!("{job} {text}"));
            }
            Action::Finish { job, outcome } => self.finished(job, &outcome),
            Action::SwitchMode { device, to, reason } => self.gpus.switch_mode(decisions, device, to, &reason),
        }
    }

    /// Orders the start of an attempt that is in the same batch.
    pub(super) fn order_start(&mut self, attempt: AttemptId, placement: Placement) {
        let order = self.jobs.owner(attempt.job).and_then(|owner| {
            let log_limit = self.log_space.reserve(attempt, owner.uid);
            start_order(&self.decisions, &self.gpus, owner, attempt, placement, log_limit)
        });
        match order {
            Some(order) => self.decisions.batch.effects.push(Effect::Start(Box::new(order))),
            None => self.not_started(attempt, "its GPU is no longer available"),
        }
    }

    fn finished(&mut self, job: JobId, outcome: &Outcome) {
        let event = JobEvent::Finished { outcome: outcome.clone(), text: outcome.to_string() };
        self.decisions.note(job, event, outcome);
        tallies::count_finish(&mut self.decisions, outcome);
        self.estimates.stop(job);
        self.decisions.batch.effects.push(Effect::Forget(job));
    }
}

/// The text for a job that holds GPUs without using them, or has not used them at all.
const fn idle_text(idle: Idle, unused: bool) -> &'static str {
    match (idle.lent, unused) {
        (true, true) => "has not used its GPUs since it was started: other jobs may",
        (false, true) => "has not used its GPUs since it was started",
        (true, false) => "holds its GPUs without using them: other jobs may",
        (false, false) => "holds its GPUs without using them",
    }
}
