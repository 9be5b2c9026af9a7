//! The folder of an attempt: the files in it, and how they are read and written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use carma_core::AttemptId;
use carma_gpu::process_started;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::attempt::{Ended, Order, RunAs};
use crate::untrusted::open_file;

/// Why a folder could not be used.
#[derive(Debug, Error)]
pub enum FolderError {
    /// The system refused.
    #[error("{path}: {source}")]
    Refused {
        /// The file.
        path: PathBuf,
        /// Its words.
        source: io::Error,
    },
    /// A file holds something else.
    #[error("{path} is damaged: {source}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
}

/// A process that is never mistaken for a later one of the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProcessIdentity {
    pub(super) pid: i32,
    started: u64,
}

impl ProcessIdentity {
    /// The process of this number as it is now.
    pub(super) fn of(pid: i32) -> Option<Self> {
        Some(Self { pid, started: process_started(pid.try_into().ok()?)? })
    }

    /// A name that no other process has until the machine is started again.
    pub(super) fn name(self) -> String {
        format!("{}-{}", self.pid, self.started)
    }
}

/// Who supervises an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Supervisor {
    pub(super) guard: Option<ProcessIdentity>,
    pub(super) shim: Option<ProcessIdentity>,
    pub(super) cgroup: Option<PathBuf>,
}

/// The folder of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptFolder(PathBuf);

impl AttemptFolder {
    /// That of this attempt, below the folder where a manager keeps its state.
    pub fn of(state: &Path, attempt: AttemptId) -> Self {
        Self(state.join("attempts").join(attempt.job.0.to_string()).join(attempt.number.to_string()))
    }

    /// This one.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What is kept of the output.
    pub fn output(&self) -> PathBuf {
        self.0.join("stdout.log")
    }

    /// What is kept of the errors.
    pub fn errors(&self) -> PathBuf {
        self.0.join("stderr.log")
    }

    /// A file of the job's own, for how far it has come.
    pub fn progress(&self) -> PathBuf {
        self.0.join("progress")
    }

    /// The job's script, where it is one.
    pub fn script(&self) -> PathBuf {
        self.0.join("script")
    }

    /// A folder of the job's user, where there is one if the job's container belongs to a daemon.
    pub(crate) fn container_folder(&self) -> PathBuf {
        self.0.join("container")
    }

    /// The file for the name that the daemon gives to the container, made by whoever runs it for the user.
    pub fn container(&self) -> PathBuf {
        self.container_folder().join("name")
    }

    /// The daemon's name of the container, once there is one.
    pub(super) fn container_name(&self) -> Option<String> {
        /// What daemons call containers, so that nobody lays claim to other names.
        const DIGITS: usize = 64;
        let text = read_note(&self.container(), 2 * DIGITS as u64)?;
        let name = text.trim();
        (name.len() == DIGITS && name.bytes().all(|digit| digit.is_ascii_hexdigit())).then(|| name.to_owned())
    }

    /// What guard and shim had to say themselves.
    pub(crate) fn supervisor_log(&self) -> PathBuf {
        self.0.join("shim.log")
    }

    /// What is locked while anybody takes care of the attempt.
    pub(crate) fn lock_file(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// What is to be run, written when it is launched.
    pub(crate) fn order_file(&self) -> PathBuf {
        self.0.join("order.json")
    }

    /// What is to be run.
    pub fn order(&self) -> Result<Option<Order>, FolderError> {
        self.read("order.json")
    }

    /// How the attempt ended, once it has.
    pub fn ended(&self) -> Result<Option<Ended>, FolderError> {
        self.read("exit.json")
    }

    pub(super) fn supervisor(&self) -> Result<Option<Supervisor>, FolderError> {
        self.read("shim.pid")
    }

    /// Puts the order there.
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

    /// Readers see all of it or nothing. A machine that loses power may lose it, and with it every process it speaks of.
    fn write(&self, name: &str, content: &impl Serialize) -> Result<(), FolderError> {
        let path = self.0.join(name);
        let text = serde_json::to_vec(content).map_err(|source| FolderError::Damaged { path: path.clone(), source })?;
        let new = self.0.join(format!("{name}.new"));
        let written = private(&new).and_then(|mut file| file.write_all(&text)).and_then(|()| fs::rename(&new, &path));
        written.map_err(|source| FolderError::Refused { path, source })
    }
}

/// What a job has put into a small file; none where it is longer, or anything but a plain file.
pub(crate) fn read_note(path: &Path, longest: u64) -> Option<String> {
    let file = open_file(path).ok()?;
    let mut text = String::new();
    (file.metadata().ok()?.len() <= longest).then(|| file.take(longest).read_to_string(&mut text))?.ok()?;
    Some(text)
}

/// A new file that only its owner may read.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// A new file that only this user may read.
pub(super) fn owned(path: &Path, owner: Option<&RunAs>) -> io::Result<File> {
    let file = private(path)?;
    owner.map_or(Ok(()), |user| fchown(&file, Some(user.uid), Some(user.gid)))?;
    Ok(file)
}

/// Room on the disk for the record of an exit, taken before there is one: a disk that has become full meanwhile must not keep it from being written.
pub(super) struct ReservedExit {
    folder: PathBuf,
    file: File,
}

impl ReservedExit {
    const NEW: &str = "exit.json.new";

    /// Takes it.
    pub(super) fn new(folder: &AttemptFolder) -> io::Result<Self> {
        let mut file = private(&folder.0.join(Self::NEW))?;
        file.write_all(&[b' '; 4096])?;
        Ok(Self { folder: folder.0.clone(), file })
    }

    /// Writes the record. Readers see all of it or nothing; after a power cut before [`Self::sync`] it may be damaged, and nobody knows the exit.
    pub(super) fn write(&mut self, ended: &Ended) -> io::Result<()> {
        let text = serde_json::to_vec(ended)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&text)?;
        self.file.set_len(text.len() as u64)?;
        fs::rename(self.folder.join(Self::NEW), self.folder.join("exit.json"))
    }

    /// Returns when the record is on the disk itself.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()?;
        File::open(&self.folder)?.sync_all()
    }
}
