//! The checkpoint variables of a job: the signal, the grace time, the folder, and whether it resumes.

use std::path::{Path, PathBuf};

use carma_core::{AttemptId, Seconds};
use serde::{Deserialize, Serialize};

use crate::supervise::AttemptFolder;

/// When a job is asked to checkpoint, in the job's own seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointTerms {
    /// Time from the signal until it is killed.
    pub grace: Seconds,
    /// Length of a time slice, after which it may be asked if other jobs wait; unset: no time slices.
    pub slot: Option<Seconds>,
}

/// SIGTERM, which most programs that save their work handle.
pub(crate) const CHECKPOINT_SIGNAL: i32 = 15;
/// Its name, for `trap` and Python's `signal`.
const SIGNAL_NAME: &str = "TERM";

impl CheckpointTerms {
    /// The same in the time of a job whose GPUs run this much faster.
    #[must_use]
    pub(crate) fn scaled(self, speed: f64) -> Self {
        let cut = |seconds: Seconds| Seconds::new(seconds.get() / speed).unwrap_or(seconds);
        Self { grace: cut(self.grace), slot: self.slot.map(cut) }
    }

    /// The variables.
    pub(super) fn variables(self, attempt: AttemptId, folder: &Path) -> impl Iterator<Item = (&'static str, String)> {
        let seconds = |seconds: Seconds| format!("{}", seconds.get());
        let resumes = (attempt.number > 1).then(|| "1".to_owned());
        [
            ("CARMA_CHECKPOINT_SIGNAL", Some(SIGNAL_NAME.to_owned())),
            ("CARMA_CHECKPOINT_GRACE", Some(seconds(self.grace))),
            ("CARMA_CHECKPOINT_DIR", Some(folder.to_string_lossy().into_owned())),
            ("CARMA_SLOT", self.slot.map(seconds)),
            ("CARMA_RESUME", resumes),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

/// The folder for a job's checkpoints: beside its attempts, and the same for all of them.
pub(crate) fn checkpoint_folder(folder: &AttemptFolder) -> PathBuf {
    folder.path().with_file_name("checkpoint")
}
