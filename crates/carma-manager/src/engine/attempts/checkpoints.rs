//! Checkpoints that jobs write, noticed in the folder that each has for them.

use std::time::SystemTime;

use carma_core::{AttemptId, Event};

use super::Attempts;
use crate::engine::decide::Decisions;
use crate::executor::CheckpointTimes;

/// What was seen of a folder for checkpoints.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CheckpointWatch {
    /// The last change at the look before.
    seen: Option<SystemTime>,
    /// The last change that is known of.
    known: Option<SystemTime>,
}

impl CheckpointWatch {
    /// Whether there is a checkpoint more, given the folder's last change. One that is being written is not yet there: nothing may have changed
    /// from one look to the next, unless its writer has ended.
    fn check(&mut self, changed: Option<SystemTime>, ended: bool) -> bool {
        let rests = self.seen == changed || ended;
        self.seen = changed;
        let new = rests && changed > self.known;
        if new {
            self.known = changed;
        }
        new
    }
}

impl Attempts {
    /// Tells the core when an attempt has written a checkpoint since the last look. It may have ended.
    pub(super) fn check_for_checkpoint(&mut self, decisions: &mut Decisions, attempt: AttemptId, ended: bool) {
        let Some(job) = decisions.job(attempt.job).filter(|job| job.spec.may_checkpoint) else { return };
        let reported = job.state.active().is_some_and(|active| job.checkpointed_at >= Some(active.launched_at));
        // Before an attempt is started, its files do not say when that was.
        let Some(active) = self.active.get_mut(&attempt).filter(|active| active.started || ended) else { return };
        let CheckpointTimes { launched, changed } = self.executor.checkpoint(attempt);
        // Checkpoints of earlier attempts are known, and so is one that an earlier manager has reported to the core.
        let known = || if reported { changed } else { launched };
        let watch = active.checkpoints.get_or_insert_with(|| CheckpointWatch { seen: None, known: known() });
        if watch.check(changed, ended) && decisions.tell(Event::Checkpointed { attempt }).is_ok() {
            decisions.batch.changed.insert(attempt.job);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_checkpoint_is_there_once_when_it_is_written() {
        let at = |second| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(second));
        let mut watch = CheckpointWatch { seen: None, known: at(10) };
        let mut check = |changed| watch.check(changed, false);
        assert_eq!([check(at(9)), check(at(9))], [false, false], "one of an earlier attempt");
        assert_eq!([check(at(11)), check(at(12))], [false, false], "it is being written");
        assert_eq!([check(at(12)), check(at(12))], [true, false]);
        assert_eq!([watch.check(at(20), true), watch.check(at(20), true)], [true, false], "the last before it ended");
    }
}
