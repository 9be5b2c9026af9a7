//! Submissions with keys: a repeated one gets the first answer, also while that is being written.

use std::collections::HashMap;

use carma_core::JobId;

use super::decide::{Decisions, Effect};
use crate::api::{Problem, ProblemKind, Submitted};
use crate::store::{Change, KeyedSubmission, Reader};
use crate::submission_key::SubmissionKey;

/// Keyed submissions that are not on the disk yet. The others are in the store.
#[derive(Debug, Default)]
pub(crate) struct KeyedSubmissions(HashMap<(u32, SubmissionKey), Submitted>);

impl KeyedSubmissions {
    /// The answer to an earlier submission of this user with this key.
    pub(crate) fn earlier(&self, reader: &Reader, uid: u32, key: &SubmissionKey) -> Result<Option<Submitted>, Problem> {
        if let Some(pending) = self.0.get(&(uid, key.clone())) {
            return Ok(Some(pending.clone()));
        }
        let stored = reader.submission(uid, key).map_err(|error| ProblemKind::Internal.because(error.to_string()))?;
        Ok(stored.map(Submitted::from))
    }

    /// Keeps the answer to a new submission, in the same batch as its jobs.
    pub(crate) fn keep(&mut self, decisions: &mut Decisions, uid: u32, key: SubmissionKey, accepted: &Submitted) {
        let Some(first) = accepted.jobs.first().copied() else { return };
        self.0.insert((uid, key.clone()), accepted.clone());
        let (jobs, notes) = (accepted.jobs.len() as u64, accepted.notes.clone());
        let submission = Box::new(KeyedSubmission { uid, key: key.clone(), first, jobs, notes });
        decisions.batch.changes.push(Change::SubmissionKept { submission, at: decisions.wall() });
        decisions.batch.effects.push(Effect::KeyStored(uid, key));
    }

    /// The answer is on the disk.
    pub(crate) fn stored(&mut self, uid: u32, key: SubmissionKey) {
        self.0.remove(&(uid, key));
    }

    /// Nothing that was not written counts.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl From<KeyedSubmission> for Submitted {
    fn from(kept: KeyedSubmission) -> Self {
        Self { jobs: (kept.first.0..).map(JobId).take(kept.jobs as usize).collect(), notes: kept.notes }
    }
}
