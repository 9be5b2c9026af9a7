//! The folder of an attempt: the files in it, and how they are read and written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use carma_core::AttemptId;
use carma_gpu::process_started;
use rustix::process::getpid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::cgroup::Cgroup;
use crate::attempt::{Ended, GroupFolders, Order, RunAs};
use crate::untrusted::open_below;

/// Why an attempt's folder could not be used.
#[derive(Debug, Error)]
pub enum FolderError {
    /// The system refused.
    #[error("{path}: {source}")]
    Refused {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A file is damaged.
    #[error("{path} is damaged: {source}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
}

/// A process, distinct from a later one with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProcessIdentity {
    pub(super) pid: i32,
    started: u64,
}

impl ProcessIdentity {
    /// The process with this pid now.
    pub(super) fn of(pid: i32) -> Option<Self> {
        Some(Self { pid, started: process_started(pid.try_into().ok()?)? })
    }

    /// One that is known from its name.
    pub(super) const fn new(pid: i32, started: u64) -> Self {
        Self { pid, started }
    }

    /// This process.
    pub(super) fn own() -> Option<Self> {
        Self::of(getpid().as_raw_nonzero().get())
    }

    /// Whether it still runs.
    pub(super) fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// A name that is unique until the next boot.
    pub(super) fn name(self) -> String {
        format!("{}-{}", self.pid, self.started)
    }
}

/// The result of a scan of a checkpoint folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Checkpointed {
    /// The last change; none while the folder is empty.
    pub(crate) changed: Option<SystemTime>,
}

/// The supervisors of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Supervisor {
    pub(super) guard: Option<ProcessIdentity>,
    pub(super) shim: Option<ProcessIdentity>,
    #[serde(flatten)]
    cgroup: Option<GroupFolders>,
}

impl Supervisor {
    pub(super) fn new(guard: Option<ProcessIdentity>, shim: Option<ProcessIdentity>, cgroup: Option<&Cgroup>) -> Self {
        Self { guard, shim, cgroup: cgroup.map(|cgroup| cgroup.folders().clone()) }
    }

    /// The name of its control group.
    pub(super) fn cgroup_name(&self) -> Option<&str> {
        self.cgroup.as_ref()?.main.file_name()?.to_str()
    }

    /// Its control groups, if they still exist.
    pub(super) fn cgroup(&self) -> Option<Cgroup> {
        Cgroup::at(self.cgroup.as_ref()?)
    }
}

/// The folder of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptFolder(PathBuf);

impl AttemptFolder {
    /// The folder of this attempt, below the manager's state folder.
    pub fn of(state: &Path, attempt: AttemptId) -> Self {
        Self(state.join("attempts").join(attempt.job.0.to_string()).join(attempt.number.to_string()))
    }

    /// The folder at this path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The log of its output.
    pub fn output(&self) -> PathBuf {
        self.0.join("stdout.log")
    }

    /// The log of its errors.
    pub fn errors(&self) -> PathBuf {
        self.0.join("stderr.log")
    }

    /// The order of both logs: where the job went from one stream to the other.
    pub(crate) fn switches(&self) -> PathBuf {
        self.0.join("switches")
    }

    /// A file that the job owns, for its progress.
    pub fn progress(&self) -> PathBuf {
        self.0.join("progress")
    }

    /// What the job has written about its progress.
    pub(crate) fn progress_note(&self) -> Option<String> {
        const MAX_LENGTH: u64 = 64;
        read_note(&self.0, "progress", MAX_LENGTH)
    }

    /// The job's script, if it is one.
    pub fn script(&self) -> PathBuf {
        self.0.join("script")
    }

    /// A folder that the user owns. It exists if the container belongs to a daemon.
    pub(crate) fn container_folder(&self) -> PathBuf {
        self.0.join("container")
    }

    /// The file with the daemon's id of the container, written as the user.
    pub fn container(&self) -> PathBuf {
        self.container_folder().join("name")
    }

    /// The daemon's id of the container, once there is one.
    pub(super) fn container_name(&self) -> Option<String> {
        /// The length of a container id: other names are ignored.
        const DIGITS: usize = 64;
        let text = read_note(&self.0, "container/name", 2 * DIGITS as u64)?;
        let name = text.trim();
        (name.len() == DIGITS && name.bytes().all(|digit| digit.is_ascii_hexdigit())).then(|| name.to_owned())
    }

    /// The log of guard and shim.
    pub(crate) fn supervisor_log(&self) -> PathBuf {
        self.0.join("shim.log")
    }

    /// The file that is locked while the attempt has a supervisor.
    pub(crate) fn lock_file(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// The file with the order, written at launch.
    pub(crate) fn order_file(&self) -> PathBuf {
        self.0.join("order.json")
    }

    /// The order.
    pub fn order(&self) -> Result<Option<Order>, FolderError> {
        self.read("order.json")
    }

    /// How the attempt ended, once it has.
    pub fn ended(&self) -> Result<Option<Ended>, FolderError> {
        self.read("exit.json")
    }

    /// What its supervisor has found in its checkpoint folder; none before the first scan.
    pub(crate) fn checkpointed(&self) -> Result<Option<Checkpointed>, FolderError> {
        self.read("checkpointed.json")
    }

    pub(super) fn write_checkpointed(&self, checkpointed: Checkpointed) -> Result<(), FolderError> {
        self.write("checkpointed.json", &checkpointed)
    }

    pub(super) fn supervisor(&self) -> Result<Option<Supervisor>, FolderError> {
        self.read("shim.pid")
    }

    /// Writes the order, before there are readers.
    pub(crate) fn create_order(&self, order: &Order) -> Result<(), FolderError> {
        let path = self.order_file();
        let text = text(&path, order)?;
        private(&path).and_then(|mut file| file.write_all(&text)).map_err(|source| FolderError::Refused { path, source })
    }

    /// Replaces the order.
    pub(crate) fn write_order(&self, order: &Order) -> Result<(), FolderError> {
        self.write("order.json", order)
    }

    pub(super) fn write_supervisor(&self, supervisor: &Supervisor) -> Result<(), FolderError> {
        self.write("shim.pid", supervisor)
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, FolderError> {
        let path = self.0.join(name);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|source| FolderError::Damaged { path, source }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(FolderError::Refused { path, source }),
        }
    }

    /// Readers see all of it or nothing. A power cut may lose it, and ends every process that it names.
    fn write(&self, name: &str, content: &impl Serialize) -> Result<(), FolderError> {
        let path = self.0.join(name);
        let text = text(&path, content)?;
        let new = self.0.join(format!("{name}.new"));
        let written = private(&new).and_then(|mut file| file.write_all(&text)).and_then(|()| fs::rename(&new, &path));
        written.map_err(|source| FolderError::Refused { path, source })
    }
}

fn text(path: &Path, content: &impl Serialize) -> Result<Vec<u8>, FolderError> {
    serde_json::to_vec(content).map_err(|source| FolderError::Damaged { path: path.to_owned(), source })
}

/// The content of a small file that a job wrote below this folder; none if it is longer or not a plain file.
fn read_note(folder: &Path, name: &str, longest: u64) -> Option<String> {
    let file = open_below(folder, name.as_ref()).ok()?;
    let mut text = String::new();
    (file.metadata().ok()?.len() <= longest).then(|| file.take(longest).read_to_string(&mut text))?.ok()?;
    Some(text)
}

/// A new file that only its owner may read.
pub(super) fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// A new file that only this user may read.
pub(super) fn owned(path: &Path, owner: Option<&RunAs>) -> io::Result<File> {
    let file = private(path)?;
    owner.map_or(Ok(()), |user| fchown(&file, Some(user.uid), Some(user.gid)))?;
    Ok(file)
}

/// Space on the disk for the record of an exit, reserved at the start: the exit can be written even when the disk is full by then.
pub(super) struct ReservedExit {
    folder: PathBuf,
    file: File,
}

impl ReservedExit {
    const NEW: &str = "exit.json.new";

    /// Reserves it.
    pub(super) fn new(folder: &AttemptFolder) -> io::Result<Self> {
        let mut file = private(&folder.0.join(Self::NEW))?;
        file.write_all(&[b' '; 4096])?;
        Ok(Self { folder: folder.0.clone(), file })
    }

    /// Writes the record. Readers see all of it or nothing. After a power cut before [`Self::sync`] it may be damaged, and the exit is unknown.
    pub(super) fn write(&mut self, ended: &Ended) -> io::Result<()> {
        let text = serde_json::to_vec(ended)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&text)?;
        self.file.set_len(text.len() as u64)?;
        fs::rename(self.folder.join(Self::NEW), self.folder.join("exit.json"))
    }

    /// Returns when the record is durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()?;
        File::open(&self.folder)?.sync_all()
    }
}
