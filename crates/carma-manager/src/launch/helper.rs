//! Runs helper processes under a shim like a job: everything they start ends with them, and they cannot block the manager.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use carma_core::Signal;
use thiserror::Error;

use super::plan::Plan;
use super::start::{LaunchError, Prepared};
use crate::attempt::{Exit, HostLimits, Order};
use crate::supervise::{AttemptFolder, AttemptState, CLEANUP_TIMEOUT, FolderError, LaunchServer, find};
use crate::untrusted::{open_file, remove_tree};

/// Timeout for a killed helper to end. One that is stuck in the kernel takes longer.
const GRACE: Duration = Duration::from_secs(10);
/// How often a running helper is checked for whether it is still needed.
const CHECK_PERIOD: Duration = Duration::from_millis(200);

/// A helper runs code of its user: an import of a dry run may start threads, but not thousands of processes.
pub(crate) const HELPER_LIMITS: HostLimits = HostLimits { memory: None, cpus: None, processes: Some(4096), gpus: None };

/// The output of a helper that ended by itself.
#[derive(Debug)]
pub struct HelperOutput {
    /// Standard output.
    pub output: Vec<u8>,
    /// Standard error.
    pub errors: Vec<u8>,
}

/// Why a helper did not run to its end.
#[derive(Debug, Error)]
pub enum HelperError {
    /// It could not be handed to a shim.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Its folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Its shim could not start it.
    #[error("{0}")]
    NotStarted(String),
    /// It exceeded its time limit and was killed.
    #[error("it did not finish within {} s", .0.as_secs())]
    Late(Duration),
    /// No client waits for its result any more.
    #[error("it was stopped because its result is no longer needed")]
    NotNeeded,
    /// How it ended is unknown.
    #[error("its supervisor was killed")]
    Lost,
    /// Its logs cannot be read.
    #[error("cannot read its output: {0}")]
    Unreadable(#[from] io::Error),
}

/// The folders of helpers, one for each while it runs.
#[derive(Debug)]
pub(crate) struct HelperFolders {
    within: PathBuf,
    next: AtomicU64,
}

impl HelperFolders {
    /// Kills helpers that an earlier manager left there.
    pub(crate) fn new(within: PathBuf) -> Self {
        for entry in fs::read_dir(&within).into_iter().flatten().flatten() {
            if let Ok(AttemptState::Running(supervised)) = find(&AttemptFolder::at(entry.path())) {
                let _ = supervised.signal(Signal::Kill);
            }
            let _ = remove_tree(&entry.path());
        }
        Self { within, next: AtomicU64::new(0) }
    }

    /// Calls this with an unused folder.
    pub(crate) fn with_new<T>(&self, act: impl FnOnce(&AttemptFolder) -> T) -> T {
        let folder = AttemptFolder::at(self.within.join(self.next.fetch_add(1, Ordering::Relaxed).to_string()));
        let done = act(&folder);
        let _ = remove_tree(folder.path());
        done
    }
}

/// Runs a helper in a new folder to its end, or kills it at its time limit. The caller removes the folder.
pub fn run_helper(folder: &AttemptFolder, plan: Plan, server: &LaunchServer, limit: Duration) -> Result<HelperOutput, HelperError> {
    run_helper_while(folder, plan, server, limit, || true)
}

/// The same, as long as its result is needed. All of its processes are killed otherwise.
pub(crate) fn run_helper_while(
    folder: &AttemptFolder,
    plan: Plan,
    server: &LaunchServer,
    limit: Duration,
    is_needed: impl Fn() -> bool,
) -> Result<HelperOutput, HelperError> {
    let log_limit = plan.order.log_limit;
    Prepared::new(folder.clone())?.launch(plan, server)?;
    match wait(folder, limit, &is_needed)? {
        AttemptState::Ended(ended) => {
            if let Exit::NotStarted(reason) = ended.exit {
                return Err(HelperError::NotStarted(reason));
            }
            // One that printed nothing has no log.
            let read = |path: &Path| match open_file(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
                file => {
                    let mut bytes = Vec::new();
                    file?.take(log_limit).read_to_end(&mut bytes).map(|_| bytes)
                }
            };
            Ok(HelperOutput { output: read(&folder.output())?, errors: read(&folder.errors())? })
        }
        AttemptState::Running(supervised) => {
            let _ = supervised.signal(Signal::Kill);
            // No part of it may run beside the next helper.
            wait(folder, GRACE, || true)?;
            Err(if is_needed() { HelperError::Late(limit) } else { HelperError::NotNeeded })
        }
        AttemptState::Starting | AttemptState::NeverStarted | AttemptState::Lost => Err(HelperError::Lost),
    }
}

/// Its state when it has ended, the time is up, or it is no longer needed.
fn wait(folder: &AttemptFolder, limit: Duration, is_needed: impl Fn() -> bool) -> Result<AttemptState, FolderError> {
    let until = Instant::now() + limit;
    loop {
        let standing = find(folder)?;
        let left = until.saturating_duration_since(Instant::now());
        match &standing {
            AttemptState::Running(supervised) if !left.is_zero() && is_needed() => supervised.wait(left.min(CHECK_PERIOD)),
            _ => return Ok(standing),
        }
    }
}

/// The folder of the helper that removes the container of an attempt.
pub(crate) fn removal_folder(folder: &AttemptFolder) -> AttemptFolder {
    AttemptFolder::at(folder.path().join("removal"))
}

/// Removes the container of an attempt whose supervisors are gone, as its user, from its own thread: a daemon may be slow.
pub fn remove_container(folder: &AttemptFolder, server: &Arc<LaunchServer>) {
    let Ok(Some(order)) = folder.order() else { return };
    let Some(command) = order.afterwards else { return };
    let order = Order {
        command,
        directory: "/".into(),
        group: None,
        afterwards: None,
        output: None,
        error: None,
        checkpoint_folder: None,
        terminal: None,
        ..order
    };
    let (folder, server) = (removal_folder(folder), Arc::clone(server));
    let run = move || run_helper(&folder, Plan { order, script: None }, &server, CLEANUP_TIMEOUT);
    // Without a thread the container stays, as when its daemon refuses.
    let _ = thread::Builder::new().name("removal".to_owned()).spawn(run);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helper_folders_are_new_and_removed_after_use() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("0")).unwrap();
        let folders = HelperFolders::new(folder.path().to_owned());
        let made = |folder: &AttemptFolder| fs::create_dir(folder.path()).map(|()| folder.path().to_owned()).unwrap();
        assert_ne!(folders.with_new(made), folders.with_new(made));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "what was left before is gone too");
    }
}
