//! What a job that can checkpoint is told: by which signal, how long it has, where to, and whether it goes on from there.

use std::path::PathBuf;

use carma_core::{AttemptId, Seconds};

use crate::supervise::AttemptFolder;

/// How a job is asked to checkpoint, in seconds as the job counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointTerms {
    /// After being asked, it has this long before it is killed.
    pub grace: Seconds,
    /// It may be asked after so long if others wait; unset: slots have no end.
    pub slot: Option<Seconds>,
}

/// SIGTERM, which most programs that can save their work listen to.
pub(crate) const CHECKPOINT_SIGNAL: i32 = 15;
/// The same by name, as `trap` and Python's `signal` know it.
const SIGNAL_NAME: &str = "TERM";

impl CheckpointTerms {
    /// The same for a job whose time passes so much more slowly than that of its GPUs.
    #[must_use]
    pub(crate) fn faster(self, speed: f64) -> Self {
        let cut = |seconds: Seconds| Seconds::new(seconds.get() / speed).unwrap_or(seconds);
        Self { grace: cut(self.grace), slot: self.slot.map(cut) }
    }

    /// The variables that tell.
    pub(super) fn variables(self, attempt: AttemptId, folder: &AttemptFolder) -> impl Iterator<Item = (&'static str, String)> {
        let seconds = |seconds: Seconds| format!("{}", seconds.get());
        let resumes = (attempt.number > 1).then(|| "1".to_owned());
        [
            ("CARMA_CHECKPOINT_SIGNAL", Some(SIGNAL_NAME.to_owned())),
            ("CARMA_CHECKPOINT_GRACE", Some(seconds(self.grace))),
            ("CARMA_CHECKPOINT_DIR", Some(checkpoint_folder(folder).to_string_lossy().into_owned())),
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
