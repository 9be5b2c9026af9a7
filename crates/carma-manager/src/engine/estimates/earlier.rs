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

#[cfg(test)]
mod tests {
    use carma_core::MiB;
    use carma_estimate::history::Measured;

    use super::super::memory::Memory;
    use super::*;
    use crate::request::JobCommand;

    #[test]
    fn a_history_is_found_whether_or_not_users_share_it() {
        let request = JobRequest::new(JobCommand::Program(vec!["train".to_owned()]), "/project");
        for shared in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            assert_eq!(earlier_need(folder.path(), &request, UserId(1)), None);
            let run = Measured { memory: MiB(9_000), ..Measured::default() };
            Memory::open(folder.path().join("history.csv"), shared).learn(&request, UserId(1), run);
            let need = earlier_need(folder.path(), &request, UserId(1)).unwrap();
            assert!(need.expected == MiB(9_000) && need.upper > MiB(9_000));
            assert_eq!(earlier_need(folder.path(), &request, UserId(2)).is_some(), shared);
        }
    }
}
