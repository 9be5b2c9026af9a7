//! The folder of an agent on a local disk. The agent holds a lock in it. An agent that was killed leaves its folder, and the next one on the same host
//! removes it: the kernel has released the lock.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::places::create_private;
use crate::supervise::{AttemptFolder, AttemptState, find};
use crate::untrusted::{open_below, remove_tree};

/// The file that a living agent has locked. It says on which host: others may see the folder, but not the lock.
const LOCK: &str = "agent.lock";
/// Between two searches for folders of dead agents.
const PERIOD: Duration = Duration::from_secs(600);

/// The locked folder of this agent.
#[derive(Debug)]
pub(super) struct AgentFolder {
    path: PathBuf,
    _lock: File,
}

impl AgentFolder {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        create_private(path)?;
        let mut lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path.join(LOCK))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(io::Error::other(format!("another agent uses {}", path.display()))),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Written under the lock: a file with this text and without a lock belongs to a dead agent.
        lock.set_len(0)?;
        lock.write_all(owner().as_bytes())?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// Removes folders of dead agents beside this one, now and from time to time.
    pub(super) fn remove_dead_ones(&self) -> io::Result<()> {
        let Some(within) = self.path.parent().map(Path::to_owned) else { return Ok(()) };
        let run = move || {
            loop {
                remove_dead(&within);
                thread::sleep(PERIOD);
            }
        };
        thread::Builder::new().name("folders".to_owned()).spawn(run).map(drop)
    }

    /// Nothing needs it any more.
    pub(super) fn remove(self) {
        if fs::remove_dir_all(&self.path).is_err() {
            mark(&self.path);
        }
    }
}

/// What the lock file of an agent on this host says.
fn owner() -> String {
    format!("carma agent on {}\n", rustix::system::uname().nodename().to_string_lossy())
}

/// A folder that could not be removed as a whole is removed by the next agent.
fn mark(folder: &Path) {
    let _ = fs::write(folder.join(LOCK), owner());
}

fn remove_dead(within: &Path) {
    for entry in fs::read_dir(within).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_own = fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir() && found.uid() == rustix::process::geteuid().as_raw());
        if is_own && let Some(_lock) = lock_of_dead(&path) {
            tracing::info!("removing {}, left by an agent that was killed", path.display());
            if let Err(error) = remove_tree(&path) {
                tracing::warn!("cannot remove {}: {error}", path.display());
                mark(&path);
            }
        }
    }
}

/// Takes the lock of a folder whose agent is dead, if nothing of it runs any more.
fn lock_of_dead(folder: &Path) -> Option<File> {
    let mut lock = open_below(folder, Path::new(LOCK)).ok()?;
    lock.try_lock().ok()?;
    let owner = owner();
    let mut text = String::new();
    (&mut lock).take(2 * owner.len() as u64).read_to_string(&mut text).ok()?;
    (text == owner && !supervised(folder).any(|attempt| is_busy(&attempt))).then_some(lock)
}

/// The folders of attempts and of estimates.
fn supervised(folder: &Path) -> impl Iterator<Item = AttemptFolder> + use<> {
    let below = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let attempts = below(folder.join("attempts")).flat_map(below);
    attempts.chain(below(folder.join("estimates"))).map(AttemptFolder::at)
}

/// Guards end what a dead agent ran, within moments.
fn is_busy(folder: &AttemptFolder) -> bool {
    matches!(find(folder), Ok(AttemptState::Running(_) | AttemptState::Starting))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_dead_agents_of_this_host_are_removed() {
        let within = tempfile::tempdir().unwrap();
        let path = |name: &str| within.path().join(name);
        let living = AgentFolder::create(&path("living")).unwrap();
        fs::create_dir_all(path("living").join("attempts/1/1")).unwrap();
        assert!(AgentFolder::create(&path("living")).unwrap_err().to_string().contains("another agent uses"));
        drop(AgentFolder::create(&path("dead")).unwrap());
        fs::create_dir_all(path("dead").join("attempts/1/1")).unwrap();
        // On a disk that hosts share, the lock of another host may not be seen.
        drop(AgentFolder::create(&path("elsewhere")).unwrap());
        fs::write(path("elsewhere").join(LOCK), "carma agent on another\n").unwrap();
        // One that is about to lock its folder.
        fs::create_dir(path("beginning")).unwrap();
        fs::write(path("beginning").join(LOCK), "").unwrap();
        // Folders of others, and a way out of this one.
        fs::create_dir(path("unrelated")).unwrap();
        std::os::unix::fs::symlink(path("dead"), path("link")).unwrap();
        remove_dead(within.path());
        let mut left: Vec<_> =
            fs::read_dir(within.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        left.sort_unstable();
        assert_eq!(left, ["beginning", "elsewhere", "link", "living", "unrelated"]);
        assert!(path("living").join("attempts/1/1").exists());
        living.remove();
        assert!(!path("living").exists());
    }

    #[test]
    fn a_dead_agent_whose_attempt_still_has_a_supervisor_keeps_its_folder() {
        let within = tempfile::tempdir().unwrap();
        let folder = within.path().join("dead");
        drop(AgentFolder::create(&folder).unwrap());
        let attempt = AttemptFolder::at(folder.join("attempts/1/1"));
        fs::create_dir_all(attempt.path()).unwrap();
        let lock = File::create(attempt.lock_file()).unwrap();
        lock.lock().unwrap();
        remove_dead(within.path());
        assert!(folder.exists());
        drop(lock);
        remove_dead(within.path());
        assert!(!folder.exists());
    }
}
