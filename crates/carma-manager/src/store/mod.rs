//! The durable store: one SQLite file with everything that must outlive the manager.
//!
//! ```text
//!  Change ──► write() ──► the writing thread ──► one commit for all who wait ──► Ticket::wait() returns
//!                                   │
//!                             carma.db (WAL) ◄── Reader, any number of them, each on a connection of its own
//! ```
//!
//! Who was told that something is written finds it again, after `kill -9` and after a power cut. A batch of changes is kept whole or not at all; changes of one
//! thread are kept in its order. A write that fails changes nothing, so that it may be tried again.

mod apply;
mod change;
mod columns;
mod error;
mod lock;
mod phase;
mod prune;
mod read;
mod schema;
mod units;
mod writer;

pub use change::{AttemptEnd, Change, MachineChange, Measured, MemoryStep, MinuteMean, NewEvent, StoredJob, Supervisor};
pub use error::{Refusal, StoreError, WriteError};
pub use phase::{NotAPhase, Phase};
pub use prune::{Keep, PruneError, Pruned, Retention};
pub use read::{
    Drained, EnergyBy, EnergyOf, EnergySum, JobFilter, JobHistory, JobSummary, Loaded, News, Reader, Span, Stay, StoredAttempt,
    StoredEvent, StoredNotification, UnfinishedJob,
};
pub use units::{Joules, UnixMillis, UnixMinute};
pub use writer::Ticket;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use carma_core::JobId;

use lock::StoreLock;
use writer::Writer;

/// The store, open for the one manager that may write it.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    next_job: AtomicU64,
    /// Dropped before the lock is: nobody else may open the store while something is still written.
    writer: Writer,
    _lock: StoreLock,
}

impl Store {
    /// Opens the store, made where there is none, migrated where it is old.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let path = path.into();
        schema::make_folder(&path)?;
        let lock = StoreLock::take(&path)?;
        let connection = schema::open_for_writing(&path)?;
        let next_job = read::number(&connection, apply::NEXT_JOB).map_err(|error| StoreError::database(&path, error))?;
        let writer = Writer::start(connection, path.clone()).map_err(StoreError::file("start a thread for", &path))?;
        Ok(Self { next_job: AtomicU64::new(next_job.unwrap_or(1)), path, writer, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes it takes on the disk, with its log.
    pub fn size(&self) -> u64 {
        let log = lock::beside(&self.path, "-wal");
        [self.path.as_path(), &log].iter().filter_map(|file| Some(std::fs::metadata(file).ok()?.len())).sum()
    }

    /// Takes the first of so many numbers in a row for new jobs. Numbers of jobs that were accepted are never given again.
    pub fn next_jobs(&self, count: u64) -> JobId {
        JobId(self.next_job.fetch_add(count, Ordering::Relaxed))
    }

    /// Writes changes, all or none; they are on the disk when the ticket says so.
    pub fn write(&self, changes: impl Into<Vec<Change>>) -> Ticket {
        self.writer.write(changes.into())
    }

    /// Writes changes and has somebody told, for callers who must not wait. They are told by the writing thread, and should be quick.
    pub fn write_then(&self, changes: impl Into<Vec<Change>>, told: impl FnOnce(Result<(), WriteError>) + Send + 'static) {
        self.writer.write_then(changes.into(), told);
    }

    /// Somebody who reads, on a connection of its own.
    pub fn reader(&self) -> Result<Reader, StoreError> {
        Reader::open(&self.path)
    }
}
