//! The progress of a job, saved in a file.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The data that a job needs to resume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The workload.
    pub workload: String,
    /// The epoch it was in, from 1.
    pub epoch: u32,
    /// Training done, in seconds as a catalogue counts them.
    pub done: f64,
    /// The random seed: the amount of work is drawn once per job.
    pub seed: u64,
}

/// Errors of a checkpoint.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// It cannot be read or written.
    #[error("checkpoint {path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is of another workload.
    #[error("checkpoint {path} belongs to {found}, not to {wanted}: give another file")]
    OfAnother {
        /// The file.
        path: PathBuf,
        /// Its workload.
        found: String,
        /// The expected workload.
        wanted: String,
    },
}

/// Refuses a file that is not writable, before there is progress to lose.
pub(super) fn check(file: &Path) -> Result<(), CheckpointError> {
    let beside = beside(file);
    let made = File::create(&beside).and_then(|_| fs::remove_file(&beside));
    made.map_err(|error| CheckpointError::File { path: file.to_owned(), error })
}

/// The temporary file that replaces the checkpoint.
fn beside(file: &Path) -> PathBuf {
    file.with_extension(format!("{}.tmp", std::process::id()))
}

/// The checkpoint in a file, if any; it must be of this workload.
pub(super) fn read(file: &Path, workload: &str) -> Result<Option<Checkpoint>, CheckpointError> {
    let failed = |error| CheckpointError::File { path: file.to_owned(), error };
    let text = match fs::read(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(failed)?,
    };
    let found: Checkpoint = serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
    if found.workload == workload {
        Ok(Some(found))
    } else {
        Err(CheckpointError::OfAnother { path: file.to_owned(), found: found.workload, wanted: workload.to_owned() })
    }
}

/// Replaces the checkpoint in a file. A reader always sees either the old or the new one.
pub(super) fn write(file: &Path, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
    let beside = beside(file);
    let write = || {
        let mut written = File::create(&beside)?;
        serde_json::to_writer(&mut written, checkpoint)?;
        written.write_all(b"\n")?;
        written.sync_all()?;
        fs::rename(&beside, file)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&beside);
        CheckpointError::File { path: file.to_owned(), error }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_reads_back_only_for_its_workload() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("job.json");
        assert_eq!(read(&file, "unet_voc").unwrap(), None);
        let checkpoint = Checkpoint { workload: "unet_voc".to_owned(), epoch: 3, done: 1.0 / 3.0, seed: u64::MAX };
        write(&file, &Checkpoint { epoch: 2, ..checkpoint.clone() }).unwrap();
        write(&file, &checkpoint).unwrap();
        assert_eq!(read(&file, "unet_voc").unwrap(), Some(checkpoint));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        let other = read(&file, "bert").unwrap_err().to_string();
        assert!(other.ends_with("job.json belongs to unet_voc, not to bert: give another file"), "{other}");
        check(&file).unwrap();
        assert!(
            check(&folder.path().join("nowhere/job.json"))
                .unwrap_err()
                .to_string()
                .ends_with("nowhere/job.json: No such file or directory (os error 2)")
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nor is by a check");
        fs::write(&file, "{").unwrap();
        assert!(read(&file, "unet_voc").unwrap_err().to_string().contains("job.json: EOF"));
    }
}
