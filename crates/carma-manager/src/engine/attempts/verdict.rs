//! The verdict on an attempt that is over.

use carma_core::{Granted, State, Verdict};

use super::Attempts;
use crate::engine::decide::Decisions;
use crate::engine::gpus::Gpus;
use crate::executor::Remains;
use crate::judge::{Evidence, HostFacts, Judgement, verdict};

/// Judges an attempt by what is left of it and by what was seen of its GPUs; none where it was judged before.
pub(crate) fn judge(decisions: &Decisions, gpus: &Gpus, attempts: &Attempts, remains: &Remains) -> Option<Judgement> {
    let attempt = remains.attempt;
    let underway = attempts.get(attempt)?;
    let Some(State::Starting(active) | State::Running(active)) = decisions.job(attempt.job).map(|job| &job.state) else { return None };
    let facts = |granted: &Granted| gpus.facts(decisions, granted.device, attempt, active.launched_at);
    let evidence = Evidence {
        exit: remains.ended.as_ref().map(|ended| ended.exit.clone()),
        launched_at: active.launched_at,
        stopped: active.stopping,
        stdout: &remains.stdout,
        stderr: &remains.stderr,
        pids: underway.pids.clone(),
        devices: active.placement.devices.iter().map(facts).collect(),
        host: HostFacts {
            oom_kills: remains.ended.as_ref().and_then(|ended| ended.oom_kills),
            at_memory_limit: remains.ended.as_ref().is_some_and(|ended| ended.at_memory_limit),
            kernel_log: remains.kernel_log.as_deref(),
        },
    };
    Some(verdict(&evidence))
}

/// The verdict on an attempt that could not be started.
pub(crate) fn not_started(reason: &str) -> Judgement {
    Judgement { verdict: Verdict::CouldNotStart { reason: reason.to_owned() }, reason: reason.to_owned(), blame: None, needed: None }
}
