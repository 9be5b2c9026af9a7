//! Checkpoints that jobs write, noticed in the folder that each has for them.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use carma_core::{AttemptId, Event};

use super::run::Running;
use crate::launch::checkpoint_folder;
use crate::supervise::{AttemptFolder, Supervised};

/// Things in a folder that are looked at: jobs keep a few checkpoints, not thousands.
const MOST: usize = 256;

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
    fn look(&mut self, changed: Option<SystemTime>, ended: bool) -> bool {
        let rests = self.seen == changed || ended;
        self.seen = changed;
        let new = rests && changed > self.known;
        if new {
            self.known = changed;
        }
        new
    }
}

impl Running {
    /// Whether an attempt has written a checkpoint since the last look, if it can; it may have ended.
    pub(super) fn look_for_checkpoint(&mut self, attempt: AttemptId, ended: bool) {
        let Some(job) = self.core.scheduler().job(attempt.job).filter(|job| job.spec.may_checkpoint) else { return };
        let told = job.state.active().is_some_and(|active| job.checkpointed_at >= Some(active.launched_at));
        let Some(underway) = self.attempts.get_mut(&attempt) else { return };
        let Some(folder) = underway.supervised.as_ref().map(Supervised::folder) else { return };
        let changed = last_change(&checkpoint_folder(folder));
        // What lies there from earlier attempts is known, and so is what a manager before us has told.
        let known = || if told { changed } else { launched(folder) };
        let watch = underway.checkpoints.get_or_insert_with(|| CheckpointWatch { seen: None, known: known() });
        if watch.look(changed, ended) && self.try_tell(Event::Checkpointed { attempt }).is_ok() {
            self.batch.changed.insert(attempt.job);
        }
    }
}

/// When an attempt was launched, by the clock that files have.
fn launched(folder: &AttemptFolder) -> Option<SystemTime> {
    fs::symlink_metadata(folder.order_file()).and_then(|data| data.modified()).ok()
}

/// When something in a folder was last written, if there is anything. Links are not followed.
fn last_change(folder: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(folder).ok()?.take(MOST).flatten();
    let newest = entries.filter_map(|entry| entry.metadata().ok()?.modified().ok()).max()?;
    // A file that takes the place of another one changes the folder.
    let own = fs::symlink_metadata(folder).and_then(|data| data.modified()).ok();
    own.max(Some(newest))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_checkpoint_is_there_once_when_it_is_written() {
        let at = |second| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(second));
        let mut watch = CheckpointWatch { seen: None, known: at(10) };
        let mut look = |changed| watch.look(changed, false);
        assert_eq!([look(at(9)), look(at(9))], [false, false], "one of an earlier attempt");
        assert_eq!([look(at(11)), look(at(12))], [false, false], "it is being written");
        assert_eq!([look(at(12)), look(at(12))], [true, false]);
        assert_eq!([watch.look(at(20), true), watch.look(at(20), true)], [true, false], "the last before it ended");
    }

    #[test]
    fn a_folder_changes_with_what_lies_in_it() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(last_change(folder.path()), None, "there is nothing");
        let file = folder.path().join("state");
        fs::write(&file, "1").unwrap();
        let later = SystemTime::now() + Duration::from_secs(60);
        fs::File::options().write(true).open(&file).unwrap().set_modified(later).unwrap();
        assert_eq!(last_change(folder.path()), Some(later));
    }
}
