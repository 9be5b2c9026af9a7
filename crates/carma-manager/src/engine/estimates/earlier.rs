//! What earlier runs of a job needed, without a manager.

use std::fs::File;
use std::path::Path;

use carma_core::{MemoryEstimate, UserId};
use carma_estimate::history::History;

use super::memory::{EarlierRuns, signature};
use crate::request::JobRequest;

/// Looks a job up in the history that a manager keeps in its folder. A missing or unreadable history knows nothing.
pub fn earlier_need(state: &Path, request: &JobRequest, user: UserId) -> Option<MemoryEstimate> {
    let history = History::read(File::open(state.join("history.csv")).ok()?).ok()?;
    let shared = signature(request);
    // Managers of root keep users apart.
    [shared, shared.of_user(user.0)].iter().find_map(|signature| EarlierRuns::of(&history, signature)).map(EarlierRuns::need)
}
