//! Errors of the store: of opening and reading, and of writing.

use std::io;
use std::path::{Path, PathBuf};

use carma_core::{AttemptId, JobId};
use rusqlite::ErrorCode;
use thiserror::Error;

use super::holder::Holder;
use super::journal::LONGEST_READ;

/// Why the store could not be opened or read.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Another manager uses it.
    #[error("{} is in use by {}: stop that manager first (`carma down`)", path.display(), holder(host.as_deref(), *pid))]
    InUse {
        /// The store.
        path: PathBuf,
        /// The name of its host, if that is another one.
        host: Option<String>,
        /// That manager's process number, if it could be read.
        pid: Option<u32>,
    },
    /// The wait for another manager's lease was ended.
    #[error("{} was not opened: the wait for the lease of another manager was interrupted", path.display())]
    Interrupted {
        /// The store.
        path: PathBuf,
    },
    /// A read would have held up the manager.
    #[error("a read of {} was stopped after {} s, because the manager cannot write meanwhile on a network file system; stop the manager first (`carma down`)", path.display(), LONGEST_READ.as_secs())]
    TooLong {
        /// The store.
        path: PathBuf,
    },
    /// A later version of CARMA wrote it.
    #[error("{} has schema version {found}, but this version of carma knows only up to {known}: use a newer carma", path.display())]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The latest known version.
        known: u32,
    },
    /// Another program wrote it.
    #[error("{} is a database of another program: give another path", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It is damaged, or not a database.
    #[error("{0} is damaged or not a database ({reason}), and was not changed: keep a copy; then recover its data with `sqlite3 {0} .recover`, restore a backup (`{0}.v*-backup-*`), or move it away to start with an empty store", path.display())]
    Damaged {
        /// The store.
        path: PathBuf,
        /// The error of SQLite.
        reason: String,
    },
    /// It cannot be written.
    #[error("{} cannot be written: check the permissions of the file and its folder, and how the file system is mounted", path.display())]
    ReadOnly {
        /// The store.
        path: PathBuf,
    },
    /// The file system refused something.
    #[error("cannot {what} {}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A document in it cannot be parsed.
    #[error("{} contains an invalid value", path.display())]
    Unreadable {
        /// The store.
        path: PathBuf,
        /// Why not.
        source: rusqlite::Error,
    },
    /// A number in the question is larger than any that is stored.
    #[error("a number is out of range: the largest is {}", i64::MAX)]
    OutOfRange,
    /// Any other error of SQLite.
    #[error("cannot use {}", path.display())]
    Database {
        /// The store.
        path: PathBuf,
        /// The error.
        source: rusqlite::Error,
    },
}

fn holder(host: Option<&str>, pid: Option<u32>) -> String {
    match (host, pid) {
        (Some(host), Some(pid)) => Holder { host: host.to_owned(), pid }.to_string(),
        (_, Some(pid)) => format!("the manager with process number {pid}"),
        (_, None) => "another manager".to_owned(),
    }
}

impl StoreError {
    /// An error of SQLite, by its remedy.
    pub(super) fn database(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match (source.sqlite_error_code(), &source) {
            (Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt), _) => Self::Damaged { path, reason: source.to_string() },
            (Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied), _) => Self::ReadOnly { path },
            (Some(ErrorCode::OperationInterrupted), _) => Self::TooLong { path },
            (_, rusqlite::Error::ToSqlConversionFailure(_)) => Self::OutOfRange,
            (_, rusqlite::Error::FromSqlConversionFailure(..)) => Self::Unreadable { path, source },
            _ => Self::Database { path, source },
        }
    }

    /// An error of the file system.
    pub(super) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path },
            _ => Self::File { what, path, source },
        }
    }
}

/// Why a batch of changes was not written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WriteError {
    /// A change does not fit the content of the store.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The disk is full. Later writes succeed once there is space.
    #[error("the disk is full, and {} cannot be written: free some space on this disk", .0.display())]
    Full(PathBuf),
    /// It is no longer writable.
    #[error("{} cannot be written: check how its file system is mounted", .0.display())]
    ReadOnly(PathBuf),
    /// Any other error of SQLite.
    #[error("{} could not be written: {reason}", path.display())]
    Failed {
        /// The store.
        path: PathBuf,
        /// The error.
        reason: String,
    },
    /// Another manager writes the store now. This one must end: it may decide and launch nothing more.
    #[error("another manager has taken over{}", by.as_ref().map_or(String::new(), |by| format!(" ({by})")))]
    TakenOver {
        /// That manager, unless it has stopped since.
        by: Option<Holder>,
    },
    /// The store is no longer open.
    #[error("the store is closed")]
    Closed,
}

/// A change that does not fit the content of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The job does not exist.
    #[error("{0} is not in the store")]
    UnknownJob(JobId),
    /// A job of this number exists.
    #[error("{0} is in the store already")]
    DuplicateJob(JobId),
    /// The attempt does not exist, or is over.
    #[error("{0} is not running")]
    NotUnderWay(AttemptId),
    /// An attempt of this number exists.
    #[error("{0} is in the store already")]
    DuplicateAttempt(AttemptId),
}

/// Why one change could not be applied.
#[derive(Debug, Error)]
pub(super) enum ApplyError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("another manager has taken over")]
    TakenOver(Option<Holder>),
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
}

impl ApplyError {
    /// The error for the caller.
    pub(super) fn write_error(&self, path: &Path) -> WriteError {
        match self {
            Self::Refused(refusal) => WriteError::Refused(*refusal),
            Self::TakenOver(by) => WriteError::TakenOver { by: by.clone() },
            Self::Database(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DiskFull) => WriteError::Full(path.to_owned()),
                Some(ErrorCode::ReadOnly) => WriteError::ReadOnly(path.to_owned()),
                _ => WriteError::Failed { path: path.to_owned(), reason: error.to_string() },
            },
        }
    }
}
