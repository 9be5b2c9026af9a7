//! The doctor's findings about a manager's state: its store against the folders of attempts.

use std::path::Path;
use std::thread;
use std::time::Duration;

use carma_format::count;
use carma_manager::inspection::{Inspection, Mismatch};
use carma_manager::places::Places;
use carma_manager::store::StoreError;
use carma_manager::supervise::FolderState;

use super::findings::{Finding, Health, finding};

/// A running manager is ahead of its store for less than this.
const SETTLED: Duration = Duration::from_secs(2);
/// Most of many mismatches have the same cause.
const MAX_SHOWN: usize = 20;

/// What does not fit together in a state folder; nothing if no manager of this version has used it.
pub(super) fn findings(state: &Path) -> Vec<Finding> {
    let inspected = Inspection::of(state).and_then(|first| match first {
        Some(first) if !first.mismatches.is_empty() => {
            thread::sleep(SETTLED);
            Ok(Inspection::of(state)?.map(|second| second.confirmed_by(&first)))
        }
        consistent => Ok(consistent),
    });
    match inspected {
        Ok(None) => Vec::new(),
        Ok(Some(inspection)) => about(&inspection, state),
        Err(error) => vec![unreadable(&error, state)],
    }
}

fn unreadable(error: &StoreError, state: &Path) -> Finding {
    let fix = match error {
        StoreError::Damaged { .. } => Some(restore(state)),
        // The others name their remedy.
        _ => None,
    };
    finding(Health::Error, format!("the manager's store cannot be read: {}", chain(error)), fix.as_deref())
}

fn chain(error: &StoreError) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

fn restore(state: &Path) -> String {
    format!("carma restore FILE --state {}, with a file of carma backup", state.display())
}

fn about(inspection: &Inspection, state: &Path) -> Vec<Finding> {
    let Inspection { unfinished, running, mismatches } = inspection;
    if mismatches.is_empty() {
        let says = format!(
            "the store {} and the folders of attempts agree: {}, {running} running",
            Places::at(state).database().display(),
            count(*unfinished, "unfinished job")
        );
        return vec![finding(Health::Ok, says, None)];
    }
    let mut all: Vec<Finding> = mismatches.iter().take(MAX_SHOWN).map(|mismatch| about_mismatch(mismatch, state)).collect();
    if let Some(more) = mismatches.len().checked_sub(MAX_SHOWN).filter(|more| *more > 0) {
        all.push(finding(Health::Note, format!("{more} more of this kind in {}", state.display()), None));
    }
    all
}

fn about_mismatch(mismatch: &Mismatch, state: &Path) -> Finding {
    match mismatch {
        Mismatch::Store { problem } => finding(Health::Error, format!("the manager's store is damaged: {problem}"), Some(&restore(state))),
        Mismatch::Job { job, reason } => {
            let says = format!("{job} in the store cannot be read, so the manager leaves it alone: {reason}");
            finding(Health::Error, says, Some(&restore(state)))
        }
        Mismatch::Attempt { attempt, found } => {
            let (says, fix) = match found {
                FolderState::Missing => {
                    ("it has no folder", "restart the manager: it launches the attempt again; carma cancel prevents that")
                }
                FolderState::NeverStarted => ("it never started", "restart the manager: it launches the attempt"),
                FolderState::Ended => ("it has ended", "start the manager, or restart it: it records the end"),
                FolderState::Lost => ("its supervisors are gone", "start the manager, or restart it: it records that the attempt is lost"),
                FolderState::Supervised => ("it runs", "no action is needed"),
            };
            finding(Health::Note, format!("{attempt} runs according to the store, but {says}"), Some(fix))
        }
        Mismatch::File { attempt, problem, damaged } => {
            let lost = "keep the logs beside the file, then restart the manager: it records that the attempt is lost";
            let fix = if *damaged { lost } else { "be the manager's user, and check the permissions of the folder" };
            finding(Health::Error, format!("{attempt} runs according to the store, but {problem}"), Some(fix))
        }
        Mismatch::UnknownJob { folder, runs } => {
            let (says, fix) = if *runs {
                (
                    "belongs to no job in the store, but an attempt runs in it",
                    "wait for its end and keep its files: a manager ends it and removes the folder",
                )
            } else {
                ("belongs to no job in the store", "keep the files that you need: a manager removes the folder within an hour")
            };
            finding(Health::Note, format!("{} {says}", folder.display()), Some(fix))
        }
    }
}
