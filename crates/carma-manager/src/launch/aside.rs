//! Runs what is no job, but under a shim like one: all that it starts ends with it, and nothing it does keeps us waiting.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use carma_core::Signal;
use thiserror::Error;

use super::plan::Plan;
use super::start::{LaunchError, Prepared};
use crate::attempt::{Exit, Order};
use crate::supervise::{AttemptFolder, CLEARING_LIMIT, FolderError, Standing, find};
use crate::untrusted::{open_file, remove_tree};

/// How long something that was killed may take to go. What is stuck in the kernel goes when that lets it.
const GRACE: Duration = Duration::from_secs(10);

/// What something that ended by itself has said.
#[derive(Debug)]
pub struct Aside {
    /// To its output.
    pub output: Vec<u8>,
    /// To its errors.
    pub errors: Vec<u8>,
}

/// Why something was not run to its end.
#[derive(Debug, Error)]
pub enum AsideError {
    /// It could not be handed to a shim.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Its folder is no good.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Its shim could not start it.
    #[error("{0}")]
    NotStarted(String),
    /// It took longer than it may, and was killed.
    #[error("it was not done within {} s", .0.as_secs())]
    Late(Duration),
    /// Nobody knows how it ended.
    #[error("its supervisor was killed")]
    Lost,
    /// Its logs are gone.
    #[error("cannot read what it said: {0}")]
    Unreadable(#[from] io::Error),
}

/// Where such things are run, each in a folder of its own while it lasts.
#[derive(Debug)]
pub(crate) struct AsideFolders {
    within: PathBuf,
    next: AtomicU64,
}

impl AsideFolders {
    /// Ends what a manager before us has left there: nobody waits for it.
    pub(crate) fn new(within: PathBuf) -> Self {
        for entry in fs::read_dir(&within).into_iter().flatten().flatten() {
            if let Ok(Standing::Running(supervised)) = find(&AttemptFolder::at(entry.path())) {
                let _ = supervised.signal(Signal::Kill);
            }
            let _ = remove_tree(&entry.path());
        }
        Self { within, next: AtomicU64::new(0) }
    }

    /// Has something done with a folder that nobody else uses.
    pub(crate) fn with_new<T>(&self, act: impl FnOnce(&AttemptFolder) -> T) -> T {
        let folder = AttemptFolder::at(self.within.join(self.next.fetch_add(1, Ordering::Relaxed).to_string()));
        let done = act(&folder);
        let _ = remove_tree(folder.path());
        done
    }
}

/// Runs something in a new folder to its end, or kills it when its time is up. The folder is left to the caller.
pub fn run_aside(folder: &AttemptFolder, plan: &Plan, program: &Path, limit: Duration) -> Result<Aside, AsideError> {
    Prepared::new(folder.clone())?.launch(plan, program)?;
    match wait(folder, limit)? {
        Standing::Ended(ended) => {
            if let Exit::NotStarted(reason) = ended.exit {
                return Err(AsideError::NotStarted(reason));
            }
            // The user owns the logs and may have made them larger.
            let read = |path: &Path| {
                let mut bytes = Vec::new();
                open_file(path)?.take(plan.order.log_limit).read_to_end(&mut bytes).map(|_| bytes)
            };
            Ok(Aside { output: read(&folder.output())?, errors: read(&folder.errors())? })
        }
        Standing::Running(supervised) => {
            let _ = supervised.signal(Signal::Kill);
            // Nothing of it is to run beside what comes next.
            wait(folder, GRACE)?;
            Err(AsideError::Late(limit))
        }
        Standing::Starting | Standing::NeverBegun | Standing::Lost => Err(AsideError::Lost),
    }
}

/// How it stands when it is over, or when the time is up.
fn wait(folder: &AttemptFolder, limit: Duration) -> Result<Standing, FolderError> {
    let until = Instant::now() + limit;
    loop {
        let standing = find(folder)?;
        let left = until.saturating_duration_since(Instant::now());
        match &standing {
            Standing::Running(supervised) if !left.is_zero() => supervised.wait(left),
            _ => return Ok(standing),
        }
    }
}

/// Removes the container of an attempt whose supervisors are gone, as its user, from a thread of its own: a daemon may take its time.
pub fn remove_container(folder: &AttemptFolder, program: &Path) {
    let Ok(Some(order)) = folder.order() else { return };
    let Some(command) = order.afterwards else { return };
    let order = Order { command, directory: "/".into(), afterwards: None, output: None, error: None, terminal: None, ..order };
    let (folder, program) = (AttemptFolder::at(folder.path().join("removal")), program.to_owned());
    let run = move || run_aside(&folder, &Plan { order, script: None, checkpoints: None }, &program, CLEARING_LIMIT);
    // Without a thread the container stays, as it does when its daemon refuses.
    let _ = thread::Builder::new().name("removal".to_owned()).spawn(run);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_new_and_go_when_they_are_done_with() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("0")).unwrap();
        let folders = AsideFolders::new(folder.path().to_owned());
        let made = |folder: &AttemptFolder| fs::create_dir(folder.path()).map(|()| folder.path().to_owned()).unwrap();
        assert_ne!(folders.with_new(made), folders.with_new(made));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "what was left before is gone too");
    }
}
