//! The durable store: one SQLite file with everything that must outlive the manager.
//!
//! ```text
//!  Change ──► write() ──► the writer thread ──► one commit for all that wait ──► Ticket::wait() returns
//!                                   │
//!                             carma.db ◄── Readers, each with its own connection
//! ```
//!
//! A write that returned survives `kill -9` and a power cut. A batch of changes is written whole or not at all; the changes of one thread keep their
//! order. A failed write changes nothing, so that it can be tried again. On a network file system the journal is another one (`journal`), and a lease
//! keeps managers of several hosts apart (`lease`, `takeover`).

mod apply;
mod arrays;
mod backup;
mod change;
mod columns;
mod error;
mod holder;
mod journal;
mod lease;
mod lock;
mod log;
mod metrics;
mod names;
mod over_time;
mod prune;
mod read;
mod schema;
mod secrets;
mod submission_keys;
mod takeover;
mod writer;

pub use crate::ending::EndingClass;
pub use crate::event::{NewEvent, StoredEvent};
pub use crate::phase::{NotAPhase, Phase};
pub use crate::rows::{ArraySummary, EnergyKind, EnergyOf, EnergySum, GpuStay, JobCounts, JobSummary, UserSummary, label};
pub use crate::samples::{AttemptUtilisation, MemoryStep, MinuteMean};
pub use crate::units::{Joules, UnixMillis, UnixMinute};
pub use backup::{BackupError, Copied, Restored, back_up, restore};
pub use change::{AttemptEnd, Change, DrainCause, Drained, KeyedSubmission, MachineChange, Measured, StoredArray, StoredJob};
pub use error::{Refusal, StoreError, WriteError};
pub use holder::{Holder, HostIdentity, LeaseTiming};
pub use journal::{JOURNAL_VARIABLE, Journal};
pub use prune::{KeepRule, PruneError, Pruned, Retention};
pub use read::{
    JobFilter, JobHistory, JobMeta, JobReasons, Loaded, NewEvents, OwnedJob, Reader, Span, StoredAttempt, StoredNotification, UnfinishedJob,
};
pub use writer::Ticket;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use carma_core::JobId;

use crate::heartbeat::Heartbeat;
use lease::Lease;
use lock::StoreLock;
use takeover::await_lease;
use writer::Writer;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct OpenMode {
    /// Its file.
    pub path: PathBuf,
    /// How it keeps its journal; by its file system, if none is given.
    pub journal: Option<Journal>,
    /// The host of this manager.
    pub host: HostIdentity,
    /// How long a lease lasts.
    pub timing: LeaseTiming,
}

impl OpenMode {
    /// Opens a store from this host, with the usual lease.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let path = path.into();
        let host = HostIdentity::of_this_host().map_err(StoreError::file("tell the host that opens", &path))?;
        Ok(Self { path, journal: None, host, timing: LeaseTiming::DEFAULT })
    }

    /// Opens the store. A missing store is created, an old one is migrated. If a manager on another host has its lease, this waits until the lease has run out;
    /// `goes_on` is called repeatedly meanwhile, and may end the wait. A manager that lives is an error.
    pub fn open(self, mut goes_on: impl FnMut(&Holder) -> bool) -> Result<Store, StoreError> {
        let Self { path, journal, host, timing } = self;
        schema::make_folder(&path)?;
        let found = || Journal::of(schema::folder_of(&path)).map_err(StoreError::file("tell the file system of", &path));
        let journal = journal.map_or_else(found, Ok)?;
        let lock = StoreLock::take(&path, journal, &host.host)?;
        let failed = |error| StoreError::database(&path, error);
        let (connection, lease) = loop {
            let seen = await_lease(&path, journal, &host, timing, &mut goes_on)?;
            let mut connection = schema::open_for_writing(&path, journal)?;
            // Another host may have been quicker.
            if let Some(lease) = Lease::take(&mut connection, seen.as_ref(), &host, timing).map_err(failed)? {
                break (connection, lease);
            }
        };
        let next_job = read::number(&connection, schema::NEXT_JOB).map_err(failed)?;
        let writer = Writer::start(connection, lease, path.clone()).map_err(StoreError::file("start a thread for", &path))?;
        Ok(Store { next_job: AtomicU64::new(next_job.unwrap_or(1)), path, writer, _lock: lock })
    }
}

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
        OpenMode::new(path)?.open(|_| true)
    }

    /// Its size on the disk in bytes, with its log.
    pub fn size(&self) -> u64 {
        let [log, journal] = ["-wal", "-journal"].map(|suffix| lock::beside(&self.path, suffix));
        [self.path.as_path(), &log, &journal].iter().filter_map(|file| Some(std::fs::metadata(file).ok()?.len())).sum()
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

    /// Calls this at once when another manager has taken over. Nothing is written after that.
    pub fn when_lost(&self, act: impl Fn(&WriteError) + Send + Sync + 'static) {
        self.writer.when_lost(act);
    }

    /// Whether no other manager can have taken over since the last commit. A process that was stopped, or a host that slept, may have to look first.
    pub fn is_current(&self) -> bool {
        self.writer.is_current()
    }

    /// Writes what waits and gives the lease back. Later writes fail. Dropping the store does the same, but other threads may keep it.
    pub fn close(&self) {
        self.writer.close();
    }

    /// A reader with its own connection.
    pub fn reader(&self) -> Result<Reader, StoreError> {
        Reader::open(&self.path)
    }
}
