//! The one thread that writes. Whatever arrives while a commit is on its way to the disk goes into the next one together, so that many callers share one sync.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;

use super::apply::apply;
use super::change::Change;
use super::error::{ApplyError, WriteError};

/// Batches that may wait; who comes with more waits with them. Reached only when the disk has stopped answering.
const MOST_WAITING: usize = 16_384;
/// Batches of one commit, so that the first of them is not kept waiting.
const MOST_AT_ONCE: usize = 1_024;

/// Changes to keep together, and whom to tell.
struct Batch {
    changes: Vec<Change>,
    done: Box<dyn FnOnce(Result<(), WriteError>) + Send>,
}

/// The promise of a commit.
#[derive(Debug)]
#[must_use = "changes are on the disk only when the ticket says so"]
pub struct Ticket(Receiver<Result<(), WriteError>>);

impl Ticket {
    /// Waits until the changes are on the disk.
    pub fn wait(self) -> Result<(), WriteError> {
        self.0.recv().unwrap_or(Err(WriteError::Closed))
    }
}

/// The writing thread's handle. Dropped, it waits until all that was given to it is written.
#[derive(Debug)]
pub(super) struct Writer {
    batches: Option<SyncSender<Batch>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(connection: Connection, path: PathBuf) -> io::Result<Self> {
        let (batches, waiting) = sync_channel(MOST_WAITING);
        let thread = thread::Builder::new().name("store".to_owned()).spawn(move || write_all(&connection, &path, &waiting))?;
        Ok(Self { batches: Some(batches), thread: Some(thread) })
    }

    /// Hands changes over; `done` is called from the writing thread, which waits for it.
    pub(super) fn write_then(&self, changes: Vec<Change>, done: impl FnOnce(Result<(), WriteError>) + Send + 'static) {
        let batch = Batch { changes, done: Box::new(done) };
        let Some(batches) = &self.batches else { return (batch.done)(Err(WriteError::Closed)) };
        if let Err(refused) = batches.send(batch) {
            (refused.0.done)(Err(WriteError::Closed));
        }
    }

    pub(super) fn write(&self, changes: Vec<Change>) -> Ticket {
        let (tell, told) = sync_channel(1);
        // Nobody may be waiting any more.
        self.write_then(changes, move |result| drop(tell.send(result)));
        Ticket(told)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            // It ends when nothing is left. Had it panicked, everybody who waited knows.
            let _ = thread.join();
        }
    }
}

fn write_all(connection: &Connection, path: &Path, waiting: &Receiver<Batch>) {
    while let Ok(first) = waiting.recv() {
        let group: Vec<Batch> = std::iter::once(first).chain(waiting.try_iter().take(MOST_AT_ONCE - 1)).collect();
        let committed = commit(connection, &group);
        for (place, batch) in group.into_iter().enumerate() {
            let result = committed.as_ref().map_or_else(Err, |each| each[place].as_ref().copied());
            (batch.done)(result.map_err(|error| error.told(path)));
        }
    }
    // What is learned about the data speeds up the next start; without it nothing is wrong.
    let _ = connection.execute_batch("PRAGMA optimize");
}

/// Writes a group in one transaction. The outer error is everybody's, the inner one of a batch its own.
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

/// Writes a batch, or nothing of it. The outer error is one after which SQLite has given up the whole transaction.
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
