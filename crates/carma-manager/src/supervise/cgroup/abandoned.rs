//! Groups that were made for an attempt and never used, because their maker was killed in between.

use std::fs;
use std::path::Path;

use carma_core::{AttemptId, JobId};

use super::hierarchy::Hierarchies;
use super::{PREFIX, members};
use crate::supervise::folder::ProcessIdentity;

/// Removes empty groups of attempts that are not in use, where the process that made them is gone. Their limits go with them.
pub(crate) fn remove_abandoned(in_use: impl Fn(AttemptId) -> bool) {
    for home in Hierarchies::own().homes() {
        for entry in fs::read_dir(home).into_iter().flatten().flatten() {
            let made_for = entry.file_name().to_str().and_then(maker);
            if made_for.is_some_and(|(attempt, maker)| !maker.is_alive() && !in_use(attempt)) && members(&entry.path()).is_empty() {
                remove(&entry.path());
            }
        }
    }
}

fn remove(group: &Path) {
    if let Err(error) = fs::remove_dir(group) {
        tracing::debug!("cannot remove {}: {error}", group.display());
    }
}

/// The attempt that a group was made for, and the process that made it.
fn maker(name: &str) -> Option<(AttemptId, ProcessIdentity)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-').map(str::parse::<u64>);
    let mut next = || parts.next()?.ok();
    let attempt = AttemptId { job: JobId(next()?), number: next()?.try_into().ok()? };
    Some((attempt, ProcessIdentity::new(next()?.try_into().ok()?, next()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_attempt_and_the_maker() {
        let attempt = AttemptId { job: JobId(12), number: 2 };
        assert_eq!(maker("carma-12-2-4711-99"), Some((attempt, ProcessIdentity::new(4711, 99))));
        assert_eq!([maker("carma-probe-4711"), maker("carma-12-2"), maker("other-12-2-4711-99")], [None; 3]);
    }
}
