//! The verdict on an attempt that is over.

use carma_core::{Granted, State, Verdict};

use super::Attempts;
use crate::engine::decide::Decisions;
use crate::engine::gpus::Gpus;
use crate::executor::Leftovers;
use crate::judge::{Evidence, HostFacts, Judgement, verdict};

/// Judges an attempt by its leftovers and its GPUs; none if it was judged before.
pub(crate) fn judge(decisions: &Decisions, gpus: &Gpus, attempts: &Attempts, leftovers: &Leftovers) -> Option<Judgement> {
    let attempt = leftovers.attempt;
    let pids = attempts.get(attempt)?.pids.clone();
    let Some(State::Starting(active) | State::Running(active)) = decisions.job(attempt.job).map(|job| &job.state) else { return None };
    let facts = |granted: &Granted| gpus.facts(decisions, granted, attempt, active.launched_at);
    let evidence = Evidence {
        exit: leftovers.ended.as_ref().map(|ended| ended.exit.clone()),
        launched_at: active.launched_at,
        stopped: active.stopping,
        stdout: &leftovers.stdout,
        stderr: &leftovers.stderr,
        pids,
        devices: active.placement.devices.iter().map(facts).collect(),
        host: HostFacts {
            oom_kills: leftovers.ended.as_ref().and_then(|ended| ended.oom_kills),
            at_memory_limit: leftovers.ended.as_ref().is_some_and(|ended| ended.at_memory_limit),
            kernel_log: leftovers.kernel_log.as_deref(),
        },
    };
    Some(verdict(&evidence))
}

/// The verdict on an attempt that could not be started.
pub(crate) fn not_started(reason: &str) -> Judgement {
    Judgement { verdict: Verdict::CouldNotStart { reason: reason.to_owned() }, reason: reason.to_owned(), blame: None, needed: None }
}
