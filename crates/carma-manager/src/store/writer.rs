//! The writer thread. Batches that arrive during a commit go into the next commit together, so that many callers share one sync.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;

use super::apply::apply;
use super::change::Change;
use super::error::{ApplyError, WriteError};
use super::log::log_events;
use crate::heartbeat::{Heartbeat, LONGEST_SLEEP};

/// The most batches that wait; further callers block. Only a disk that hangs leads to so many.
const MAX_WAITING: usize = 16_384;
/// The most batches of one commit, so that the first does not wait long.
const MAX_AT_ONCE: usize = 1_024;

/// Changes that are written together, and the callback.
struct Batch {
    changes: Vec<Change>,
    done: Box<dyn FnOnce(Result<(), WriteError>) + Send>,
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
    heartbeat: Arc<OnceLock<Heartbeat>>,
}

impl Writer {
    pub(super) fn start(connection: Connection, path: PathBuf) -> io::Result<Self> {
        let (batches, waiting) = sync_channel(MAX_WAITING);
        let heartbeat = Arc::<OnceLock<_>>::default();
        let beats = Arc::clone(&heartbeat);
        let thread = thread::Builder::new().name("store".to_owned()).spawn(move || write_all(&connection, &path, &waiting, &beats))?;
        Ok(Self { batches: Some(batches), thread: Some(thread), heartbeat })
    }

    /// The thread beats from now on.
    pub(super) fn beat(&self, heartbeat: Heartbeat) {
        let _ = self.heartbeat.set(heartbeat);
    }

    /// Hands changes over. The writer thread calls `done`, and waits for it.
    pub(super) fn write_then(&self, changes: Vec<Change>, done: impl FnOnce(Result<(), WriteError>) + Send + 'static) {
        let batch = Batch { changes, done: Box::new(done) };
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

fn write_all(connection: &Connection, path: &Path, waiting: &Receiver<Batch>, heartbeat: &OnceLock<Heartbeat>) {
    loop {
        heartbeat.get().inspect(|heartbeat| heartbeat.beat());
        let first = match waiting.recv_timeout(LONGEST_SLEEP) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let group: Vec<Batch> = std::iter::once(first).chain(waiting.try_iter().take(MAX_AT_ONCE - 1)).collect();
        let committed = commit(connection, &group);
        for (place, batch) in group.into_iter().enumerate() {
            heartbeat.get().inspect(|heartbeat| heartbeat.beat());
            let result = committed.as_ref().map_or_else(Err, |each| each[place].as_ref().copied());
            let is_written = result.is_ok();
            (batch.done)(result.map_err(|error| error.write_error(path)));
            if is_written {
                log_events(&batch.changes);
            }
        }
    }
    heartbeat.get().inspect(|heartbeat| heartbeat.end());
    // Statistics speed up the next start; a failure does not matter.
    let _ = connection.execute_batch("PRAGMA optimize");
    // A manager that stops in order leaves all of its state in one file, even if a reader closes late.
    let _ = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
}

/// Writes a group in one transaction. The outer error concerns all batches, an inner one its own batch.
fn commit(connection: &Connection, group: &[Batch]) -> Result<Vec<Result<(), ApplyError>>, ApplyError> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let written = write_each(connection, group).and_then(|results| {
        connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(results)
    });
    if written.is_err() && !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK")?;
    }
    written
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
