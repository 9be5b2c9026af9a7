//! The state of an attempt for people. Unlike [`super::find`], it kills no leftovers of a lost attempt.

use super::folder::{AttemptFolder, FolderError};
use super::state::is_locked;

/// The state of an attempt, as its folder shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderState {
    /// It has no folder.
    Missing,
    /// It has a folder, and never ran.
    NeverStarted,
    /// It has supervisors.
    Supervised,
    /// It ended.
    Ended,
    /// Its supervisors died before it ended.
    Lost,
}

/// Reads the state of the attempt in a folder.
pub fn peek(folder: &AttemptFolder) -> Result<FolderState, FolderError> {
    if !folder.path().exists() {
        return Ok(FolderState::Missing);
    }
    // Read before the exit: supervisors write it before they release the lock.
    let supervised = is_locked(folder)?;
    Ok(match (folder.ended()?, folder.supervisor()?) {
        (Some(_), _) => FolderState::Ended,
        _ if supervised => FolderState::Supervised,
        (None, None) => FolderState::NeverStarted,
        (None, Some(_)) => FolderState::Lost,
    })
}
