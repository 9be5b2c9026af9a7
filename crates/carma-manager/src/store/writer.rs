//! The writer thread. Batches that arrive during a commit go into the next commit together, so that many callers share one sync.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;
use rustix::time::{ClockId, clock_gettime};

use super::apply::apply;
use super::change::Change;
use super::error::{ApplyError, WriteError};
use super::lease::Lease;
use super::log::log_events;
use crate::heartbeat::{Heartbeat, LONGEST_SLEEP};

/// The most batches that wait; further callers block. Only a hanging disk leads to this many.
const MAX_WAITING: usize = 16_384;
/// The most batches of one commit, so that the first does not wait long.
const MAX_AT_ONCE: usize = 1_024;

/// Called when a batch is written or has failed.
type Done = Box<dyn FnOnce(Result<(), WriteError>) + Send>;

/// Called when another manager has taken over.
type Lost = Box<dyn Fn(&WriteError) + Send + Sync>;

/// Changes that are written together, and the callback.
struct Batch {
    changes: Vec<Change>,
    /// Nothing is written after it.
    is_last: bool,
    done: Done,
}

/// A pending commit.
#[derive(Debug)]
#[must_use = "changes are on the disk only when the ticket says so"]
pub struct Ticket(Receiver<Result<(), WriteError>>);

impl Ticket {
    /// Waits until the changes are on the disk.
    pub fn wait(self) -> Result<(), WriteError> {
        self.0.recv().unwrap_or(Err(WriteError::Closed))
    }
}

/// A handle to the writer thread. Dropping it waits until all is written.
#[derive(Debug)]
pub(super) struct Writer {
    batches: Option<SyncSender<Batch>>,
    thread: Option<JoinHandle<()>>,
    watchers: Arc<Watchers>,
    expiry: Duration,
}

/// Who hears of the thread.
#[derive(Default)]
struct Watchers {
    heartbeat: OnceLock<Heartbeat>,
    lost: OnceLock<Lost>,
    /// When the lease was last found to be this manager's, by the clock that continues while the host sleeps.
    confirmed: AtomicU64,
}

impl fmt::Debug for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchers").finish_non_exhaustive()
    }
}

impl Watchers {
    fn beat(&self) {
        self.heartbeat.get().inspect(|heartbeat| heartbeat.beat());
    }
}

impl Writer {
    pub(super) fn start(connection: Connection, lease: Lease, path: PathBuf) -> io::Result<Self> {
        let (batches, waiting) = sync_channel(MAX_WAITING);
        let watchers = Arc::<Watchers>::default();
        watchers.confirmed.store(boot_millis(), Ordering::Relaxed);
        let expiry = lease.expiry();
        let thread = Thread { connection, lease, path, watchers: Arc::clone(&watchers), is_lost: false };
        let thread = thread::Builder::new().name("store".to_owned()).spawn(move || thread.write_all(&waiting))?;
        Ok(Self { batches: Some(batches), thread: Some(thread), watchers, expiry })
    }

    /// Whether a recent commit proves that this manager still has the lease.
    pub(super) fn is_current(&self) -> bool {
        boot_millis().saturating_sub(self.watchers.confirmed.load(Ordering::Relaxed)) < self.expiry.as_millis() as u64
    }

    /// The thread beats from now on.
    pub(super) fn beat(&self, heartbeat: Heartbeat) {
        let _ = self.watchers.heartbeat.set(heartbeat);
    }

    /// Calls this when another manager has taken over.
    pub(super) fn when_lost(&self, act: impl Fn(&WriteError) + Send + Sync + 'static) {
        let _ = self.watchers.lost.set(Box::new(act));
    }

    /// Writes what waits, and ends.
    pub(super) fn close(&self) {
        let (sender, closed) = sync_channel::<()>(1);
        // The thread drops the sender at its end.
        let batch = Batch { changes: Vec::new(), is_last: true, done: Box::new(move |_| drop(sender)) };
        if self.batches.as_ref().is_some_and(|batches| batches.send(batch).is_ok()) {
            let _ = closed.recv();
        }
    }

    /// Hands changes over. The writer thread calls `done`, and waits for it.
    pub(super) fn write_then(&self, changes: Vec<Change>, done: impl FnOnce(Result<(), WriteError>) + Send + 'static) {
        let batch = Batch { changes, is_last: false, done: Box::new(done) };
        let Some(batches) = &self.batches else { return (batch.done)(Err(WriteError::Closed)) };
        if let Err(refused) = batches.send(batch) {
            (refused.0.done)(Err(WriteError::Closed));
        }
    }

    pub(super) fn write(&self, changes: Vec<Change>) -> Ticket {
        let (sender, receiver) = sync_channel(1);
        // The caller may have dropped the ticket.
        self.write_then(changes, move |result| drop(sender.send(result)));
        Ticket(receiver)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            // It ends when nothing is left. After a panic all tickets have failed.
            let _ = thread.join();
        }
    }
}

/// The state of the thread.
struct Thread {
    connection: Connection,
    lease: Lease,
    path: PathBuf,
    watchers: Arc<Watchers>,
    /// Another manager has taken over. That never changes back.
    is_lost: bool,
}

impl Thread {
    fn write_all(mut self, waiting: &Receiver<Batch>) {
        let mut last = None;
        while last.is_none() {
            self.watchers.beat();
            match waiting.recv_timeout(LONGEST_SLEEP.min(self.lease.until_due())) {
                Ok(first) => {
                    let group = std::iter::once(first).chain(waiting.try_iter().take(MAX_AT_ONCE - 1)).collect();
                    last = self.write(group);
                }
                // A failure is tried again: a full disk may have room then.
                Err(RecvTimeoutError::Timeout) if self.lease.is_due() && !self.is_lost => drop(self.commit(&[])),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.watchers.heartbeat.get().inspect(|heartbeat| heartbeat.end());
        if self.is_lost {
            return;
        }
        // Statistics speed up the next start; a failure does not matter.
        let _ = self.connection.execute_batch("PRAGMA optimize");
        // If this fails, the next manager on another host waits.
        let _ = self.lease.release(&self.connection);
        // A manager that stops in order leaves all of its state in one file, even if a reader closes late.
        let _ = self.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
        // A thread that closes the store waits until here.
        drop(last);
    }

    /// Writes a group and reports it. Returns the callback of the last batch, if that is among them.
    fn write(&mut self, group: Vec<Batch>) -> Option<Done> {
        let committed = self.commit(&group);
        let mut last = None;
        for (place, batch) in group.into_iter().enumerate() {
            self.watchers.beat();
            if batch.is_last {
                last = Some(batch.done);
                continue;
            }
            let result = committed.as_ref().map_or_else(Err, |each| each[place].as_ref().copied());
            let is_written = result.is_ok();
            (batch.done)(result.map_err(|error| error.write_error(&self.path)));
            if is_written {
                log_events(&batch.changes);
            }
        }
        last
    }

    /// Writes a group in one transaction. The outer error concerns all batches, an inner one its own batch.
    fn commit(&mut self, group: &[Batch]) -> Result<Vec<Result<(), ApplyError>>, ApplyError> {
        if self.is_lost {
            return Err(ApplyError::TakenOver(None));
        }
        let (renews, began) = (self.lease.is_due(), boot_millis());
        let written = self.transact(group);
        if written.is_ok() {
            self.watchers.confirmed.store(began, Ordering::Relaxed);
        }
        match &written {
            Ok(_) if renews => self.lease.renewed(),
            Err(error @ ApplyError::TakenOver(_)) => {
                self.is_lost = true;
                self.watchers.lost.get().inspect(|lost| lost(&error.write_error(&self.path)));
            }
            Err(_) if renews => self.lease.failed(),
            _ => {}
        }
        written
    }

    fn transact(&self, group: &[Batch]) -> Result<Vec<Result<(), ApplyError>>, ApplyError> {
        let connection = &self.connection;
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let written = self.lease.check(connection).and_then(|()| write_each(connection, group)).and_then(|results| {
            connection.prepare_cached("COMMIT")?.execute([])?;
            Ok(results)
        });
        if written.is_err() && !connection.is_autocommit() {
            connection.execute_batch("ROLLBACK")?;
        }
        written
    }
}

fn boot_millis() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}

fn write_each(connection: &Connection, group: &[Batch]) -> Result<Vec<Result<(), ApplyError>>, ApplyError> {
    group.iter().map(|batch| write_batch(connection, &batch.changes)).collect()
}

/// Writes a batch, or nothing of it. After an outer error SQLite has rolled back the whole transaction.
fn write_batch(connection: &Connection, changes: &[Change]) -> Result<Result<(), ApplyError>, ApplyError> {
    let run = |sql| connection.prepare_cached(sql)?.execute([]);
    run("SAVEPOINT batch")?;
    let applied = changes.iter().try_for_each(|change| apply(connection, change));
    match applied {
        Err(error) if connection.is_autocommit() => return Err(error),
        Err(_) => drop(run("ROLLBACK TO batch")?),
        Ok(()) => {}
    }
    run("RELEASE batch")?;
    Ok(applied)
}
