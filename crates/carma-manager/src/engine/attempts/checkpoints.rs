//! Detects checkpoints of jobs by changes in their checkpoint folder.

use std::time::SystemTime;

use carma_core::{AttemptId, Event};

use super::Attempts;
use crate::engine::decide::Decisions;
use crate::executor::CheckpointTimes;

/// The known changes of a checkpoint folder.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CheckpointWatch {
    /// The last change, at the previous check.
    seen: Option<SystemTime>,
    /// The last reported change.
    known: Option<SystemTime>,
}

impl CheckpointWatch {
    /// Checkpoints of earlier attempts are known, and so is one that an earlier manager has reported to the core.
    fn new(times: &CheckpointTimes, reported: bool) -> Self {
        let is_known = reported || times.changed <= times.launched;
        Self { seen: None, known: times.changed.filter(|_| is_known) }
    }

    /// Whether there is a new checkpoint, given the folder's last change. It is complete when the folder did not change between two checks, or when
    /// its writer has ended.
    fn check(&mut self, changed: Option<SystemTime>, ended: bool) -> bool {
        let rests = self.seen == changed || ended;
        self.seen = changed;
        // Another time, not a later one: the clock of files may have been set back.
        let new = rests && changed.is_some() && changed != self.known;
        if new {
            self.known = changed;
        }
        new
    }
}

impl Attempts {
    /// Tells the core if an attempt has written a checkpoint since the last check. `ended`: the attempt is over.
    pub(super) fn check_for_checkpoint(&mut self, decisions: &mut Decisions, attempt: AttemptId, ended: bool) {
        let Some(job) = decisions.job(attempt.job).filter(|job| job.spec.may_checkpoint) else { return };
        let reported = job.state.active().is_some_and(|active| job.checkpointed_at >= Some(active.launched_at));
        // The launch time is known only after the start.
        let Some(active) = self.active.get_mut(&attempt).filter(|active| active.started || ended) else { return };
        let Some(times) = self.executor.checkpoint(attempt) else { return };
        let watch = active.checkpoints.get_or_insert_with(|| CheckpointWatch::new(&times, reported));
        if watch.check(times.changed, ended) && decisions.tell(Event::Checkpointed { attempt }).is_ok() {
            decisions.batch.changed.insert(attempt.job);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_checkpoint_is_reported_once() {
        let at = |second| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(second));
        let mut watch = CheckpointWatch::new(&CheckpointTimes { launched: at(10), changed: at(9) }, false);
        let mut check = |changed| watch.check(changed, false);
        assert_eq!([check(at(9)), check(at(9))], [false, false], "one of an earlier attempt");
        assert_eq!([check(at(11)), check(at(12))], [false, false], "it is being written");
        assert_eq!([check(at(12)), check(at(12))], [true, false]);
        assert_eq!([watch.check(at(20), true), watch.check(at(20), true)], [true, false], "the last before it ended");
        assert_eq!([watch.check(at(5), true), watch.check(at(5), true)], [true, false], "the clock was set back meanwhile");
    }

    #[test]
    fn old_and_reported_checkpoints_are_not_new() {
        let at = |second| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(second));
        let is_new =
            |changed, reported| CheckpointWatch::new(&CheckpointTimes { launched: at(10), changed }, reported).check(changed, true);
        assert_eq!([is_new(None, false), is_new(at(9), false), is_new(at(11), true), is_new(at(11), false)], [false, false, false, true]);
    }
}
