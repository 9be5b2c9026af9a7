//! Attempts that hang or are slow: noted as the driver reports them, and stopped if their user wants that.
//!
//! ```text
//!             StallSeen(hanging)         on_hang = restart           up to recovery.hangs times
//!   running ─────────────────────► hanging ──────────────► stopped ─────────────────────────────► queued
//!      ▲                              │                       │
//!      └────── StallSeen(none) ───────┘                       └── on_hang = fail, or hung too often ──► over
//! ```

use super::action::{Action, Signal};
use super::attempts::NextStep;
use super::{EventError, Scheduler};
use crate::AttemptId;
use crate::job::{OnHang, Outcome, Stall, StopReason, Waiting};
use crate::units::Time;

impl Scheduler {
    pub(super) fn stall_seen(
        &mut self,
        attempt: AttemptId,
        stall: Option<Stall>,
        now: Time,
        actions: &mut Vec<Action>,
    ) -> Result<(), EventError> {
        let (job, active) = self.under_way(attempt)?;
        let (on_hang, before) = (job.spec.on_hang, active.stall);
        let signal = if job.spec.may_checkpoint { Signal::Checkpoint } else { Signal::Terminate };
        if before == stall {
            return Ok(());
        }
        if let Some(active) = self.jobs.get_mut(&attempt.job).and_then(|job| job.state.active_mut()) {
            active.stall = stall;
        }
        actions.push(Action::Stall { job: attempt.job, stall });
        if stall.is_some_and(Stall::hangs) && matches!(on_hang, OnHang::Restart | OnHang::Fail) {
            self.stop(attempt, StopReason::Hanging, signal, now, actions);
        }
        Ok(())
    }

    /// After an attempt that hung was stopped: the job runs again, up to a limit.
    pub(super) fn after_hang(&mut self, attempt: AttemptId) -> NextStep {
        let most = self.config.recovery.hangs;
        let Some(job) = self.jobs.get_mut(&attempt.job) else { return NextStep::Finish(Outcome::Hung) };
        job.hangs += 1;
        if job.spec.on_hang == OnHang::Restart && job.hangs <= most {
            NextStep::Requeue(Waiting::Preempted)
        } else {
            NextStep::Finish(Outcome::Hung)
        }
    }
}
