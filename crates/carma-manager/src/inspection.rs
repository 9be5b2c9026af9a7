//! Compares a store with the folders of its attempts. Nothing is changed, and a manager may run meanwhile.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use carma_core::{AttemptId, JobId};

use crate::places::Places;
use crate::store::{Reader, StoreError};
use crate::supervise::{AttemptFolder, FolderError, FolderState, peek};

/// Something that does not fit together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch {
    /// The store is damaged.
    Store {
        /// The first problem.
        problem: String,
    },
    /// A job in the store cannot be read.
    Job {
        /// The job.
        job: JobId,
        /// Why not.
        reason: String,
    },
    /// An attempt that the store lists as running is in another state.
    Attempt {
        /// The attempt.
        attempt: AttemptId,
        /// Its state, by its folder.
        found: FolderState,
    },
    /// A file of an attempt that the store lists as running cannot be used.
    File {
        /// The attempt.
        attempt: AttemptId,
        /// The error, with the file.
        problem: String,
        /// It is damaged, not only unreadable for this user.
        damaged: bool,
    },
    /// A folder of a job that the store does not know.
    UnknownJob {
        /// The folder.
        folder: PathBuf,
        /// An attempt in it runs.
        runs: bool,
    },
}

/// What was compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// Unfinished jobs.
    pub unfinished: usize,
    /// Attempts that run according to the store.
    pub running: usize,
    /// What does not fit.
    pub mismatches: Vec<Mismatch>,
}

impl Inspection {
    /// Inspects a state folder; none if no manager of this version has used it.
    pub fn of(state: &Path) -> Result<Option<Self>, StoreError> {
        let store = Places::at(state).database();
        if !store.exists() {
            return Ok(None);
        }
        let Some(reader) = Reader::of_this_version(&store)? else { return Ok(None) };
        if let Some(problem) = reader.damage()?.into_iter().next() {
            return Ok(Some(Self { unfinished: 0, running: 0, mismatches: vec![Mismatch::Store { problem }] }));
        }
        let loaded = reader.load()?;
        let mut mismatches: Vec<Mismatch> = loaded.unreadable.into_iter().map(|(job, reason)| Mismatch::Job { job, reason }).collect();
        mismatches.extend(loaded.running.iter().filter_map(|running| attempt(state, running.attempt)));
        // Jobs that cannot be read are known too.
        let unknown = |job: &JobId| matches!(reader.summary(*job), Ok(None));
        mismatches.extend(jobs_with_folders(state).into_iter().filter(unknown).map(|job| unknown_job(state, job)));
        Ok(Some(Self { unfinished: loaded.jobs.len(), running: loaded.running.len(), mismatches }))
    }

    /// Keeps what another inspection found too: a running manager is ahead of its store for a moment.
    #[must_use]
    pub fn confirmed_by(mut self, other: &Self) -> Self {
        self.mismatches.retain(|mismatch| other.mismatches.contains(mismatch));
        self
    }
}

fn attempt(state: &Path, attempt: AttemptId) -> Option<Mismatch> {
    match peek(&AttemptFolder::of(state, attempt)) {
        Ok(FolderState::Supervised) => None,
        Ok(found) => Some(Mismatch::Attempt { attempt, found }),
        Err(error) => Some(Mismatch::File { attempt, damaged: matches!(error, FolderError::Damaged { .. }), problem: error.to_string() }),
    }
}

fn numbers<T: std::str::FromStr + Ord>(folder: &Path) -> BTreeSet<T> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn jobs_with_folders(state: &Path) -> Vec<JobId> {
    numbers(&state.join("attempts")).into_iter().map(JobId).collect()
}

fn unknown_job(state: &Path, job: JobId) -> Mismatch {
    let folder = state.join("attempts").join(job.0.to_string());
    let attempts = numbers::<u32>(&folder).into_iter().map(|number| AttemptFolder::of(state, AttemptId { job, number }));
    let runs = attempts.into_iter().any(|folder| matches!(peek(&folder), Ok(FolderState::Supervised)));
    Mismatch::UnknownJob { folder, runs }
}
