//! Reports the end of attempts: one thread for all of them.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use carma_core::AttemptId;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

use super::folder::FolderError;
use super::state::{AttemptState, Supervised, find};
use crate::heartbeat::{Heartbeat, LONGEST_SLEEP};

/// Reports the end of each attempt once, from its own thread. Dropping it ends the watch.
#[derive(Debug)]
pub struct ExitWatch {
    watched: Arc<Watched>,
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Watched {
    epoll: OwnedFd,
    attempts: Mutex<Attempts>,
}

#[derive(Debug, Default)]
struct Attempts {
    last: u64,
    by_number: HashMap<u64, (AttemptId, Supervised)>,
}

/// The number that ends the watch; attempts count from 1.
const STOP: u64 = 0;
/// An idle watch wakes up for its heartbeat.
const LONGEST_WAIT: Timespec = Timespec { tv_sec: LONGEST_SLEEP.as_secs().cast_signed(), tv_nsec: 0 };

impl ExitWatch {
    /// A watch that calls this function: ended or lost, or why that is unknown.
    pub fn new(
        heartbeat: Heartbeat,
        report: impl FnMut(AttemptId, Result<AttemptState, FolderError>) + Send + 'static,
    ) -> io::Result<Self> {
        let watched = Arc::new(Watched { epoll: epoll::create(CreateFlags::CLOEXEC)?, attempts: Mutex::default() });
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        epoll::add(&watched.epoll, &stop, EventData::new_u64(STOP), EventFlags::IN)?;
        let shared = Arc::clone(&watched);
        let thread = thread::Builder::new().name("exits".to_owned()).spawn(move || shared.run(&heartbeat, report))?;
        Ok(Self { watched, stop, thread: Some(thread) })
    }

    /// Watches an attempt from now on. One that has ended already is reported too.
    pub fn add(&self, attempt: AttemptId, supervised: Supervised) -> io::Result<()> {
        self.watched.add(attempt, supervised)
    }
}

impl Drop for ExitWatch {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        // Its own thread may be the last to drop it.
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl Watched {
    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, attempt: AttemptId, supervised: Supervised) -> io::Result<()> {
        let mut attempts = self.attempts();
        attempts.last += 1;
        let number = attempts.last;
        let end = supervised.end().ok_or(io::ErrorKind::NotFound)?;
        // Once: it stays readable until it is closed.
        epoll::add(&self.epoll, end, EventData::new_u64(number), EventFlags::IN | EventFlags::ONESHOT)?;
        attempts.by_number.insert(number, (attempt, supervised));
        Ok(())
    }

    fn run(&self, heartbeat: &Heartbeat, mut report: impl FnMut(AttemptId, Result<AttemptState, FolderError>)) {
        let mut events = Vec::with_capacity(64);
        loop {
            heartbeat.beat();
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&LONGEST_WAIT)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                // Without `end`, the watchdog reports it.
                Err(_) => return,
            }
            for event in &events {
                heartbeat.beat();
                let number = event.data.u64();
                if number == STOP {
                    return heartbeat.end();
                }
                let Some((attempt, ended)) = self.attempts().by_number.remove(&number) else { continue };
                match find(ended.folder()) {
                    // The guard was killed; the shim continues.
                    Ok(AttemptState::Running(supervised)) if self.add(attempt, supervised.clone()).is_ok() => {}
                    state => report(attempt, state),
                }
            }
        }
    }
}
