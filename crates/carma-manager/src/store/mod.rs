//! The durable store: one SQLite file with everything that must outlive the manager.
//!
//! ```text
//!  Change ──► write() ──► the writer thread ──► one commit for all that wait ──► Ticket::wait() returns
//!                                   │
//!                             carma.db (WAL) ◄── Readers, each with its own connection
//! ```
//!
//! A write that returned survives `kill -9` and a power cut. A batch of changes is written whole or not at all; the changes of one thread keep their
//! order. A failed write changes nothing, so that it can be tried again.

mod apply;
mod backup;
mod change;
mod columns;
mod error;
mod lock;
mod log;
mod metrics;
mod prune;
mod read;
mod schema;
mod secrets;
mod submission_keys;
mod writer;

pub use crate::event::{NewEvent, StoredEvent};
pub use crate::phase::{NotAPhase, Phase};
pub use crate::rows::{EnergyKind, EnergyOf, EnergySum, GpuStay, JobSummary};
pub use crate::samples::{MemoryStep, MinuteMean};
pub use crate::units::{Joules, UnixMillis, UnixMinute};
pub use backup::{BackupError, Copied, Restored, back_up, restore};
pub use change::{AttemptEnd, Change, KeyedSubmission, MachineChange, Measured, StoredJob};
pub use error::{Refusal, StoreError, WriteError};
pub use prune::{Keep, PruneError, Pruned, Retention};
pub use read::{
    Drained, JobFilter, JobHistory, JobMeta, JobReasons, Loaded, NewEvents, Reader, Span, StoredAttempt, StoredNotification, UnfinishedJob,
};
pub use writer::Ticket;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use carma_core::JobId;

use crate::heartbeat::Heartbeat;
use lock::StoreLock;
use writer::Writer;

/// The store, open for the one manager that may write it.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    next_job: AtomicU64,
    /// Dropped before the lock: no other manager may open the store before all is written.
    writer: Writer,
    _lock: StoreLock,
}

impl Store {
    /// Opens the store. A missing store is created, an old one is migrated.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let path = path.into();
        schema::make_folder(&path)?;
        let lock = StoreLock::take(&path)?;
        let connection = schema::open_for_writing(&path)?;
        let next_job = read::number(&connection, schema::NEXT_JOB).map_err(|error| StoreError::database(&path, error))?;
        let writer = Writer::start(connection, path.clone()).map_err(StoreError::file("start a thread for", &path))?;
        Ok(Self { next_job: AtomicU64::new(next_job.unwrap_or(1)), path, writer, _lock: lock })
    }

    /// Its size on the disk in bytes, with its log.
    pub fn size(&self) -> u64 {
        let log = lock::beside(&self.path, "-wal");
        [self.path.as_path(), &log].iter().filter_map(|file| Some(std::fs::metadata(file).ok()?.len())).sum()
    }

    /// Reserves consecutive numbers for new jobs and returns the first. Numbers of accepted jobs are never reused.
    pub fn next_jobs(&self, count: u64) -> JobId {
        JobId(self.next_job.fetch_add(count, Ordering::Relaxed))
    }

    /// Writes changes, all or none. They are on the disk when the ticket returns.
    pub fn write(&self, changes: impl Into<Vec<Change>>) -> Ticket {
        self.writer.write(changes.into())
    }

    /// Writes changes without waiting. The writer thread calls `done` afterwards, which must be quick.
    pub fn write_then(&self, changes: impl Into<Vec<Change>>, done: impl FnOnce(Result<(), WriteError>) + Send + 'static) {
        self.writer.write_then(changes.into(), done);
    }

    /// Shows by this heartbeat that the writer thread responds.
    pub fn beat(&self, heartbeat: Heartbeat) {
        self.writer.beat(heartbeat);
    }

    /// A reader with its own connection.
    pub fn reader(&self) -> Result<Reader, StoreError> {
        Reader::open(&self.path)
    }
}
