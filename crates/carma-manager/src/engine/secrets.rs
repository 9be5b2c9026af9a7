//! Hides the secrets of finished jobs: in the files of their attempts, then in the store. Jobs stay listed in the store until both is done, so a
//! crash or a full disk only delays it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use carma_core::JobId;

use crate::executor::Executor;
use crate::store::{Change, Reader, Store};

/// Jobs per commit.
const AT_ONCE: u32 = 100;

/// The thread that hides secrets. It ends when this is dropped.
pub(crate) struct SecretCleaner {
    wake: Option<SyncSender<()>>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SecretCleaner {
    /// Starts the thread, with what an earlier manager left.
    pub(crate) fn start(store: &Arc<Store>, reader: Reader, executor: Arc<dyn Executor>) -> io::Result<Self> {
        let (wake, woken) = sync_channel(1);
        let (store, stopping) = (Arc::downgrade(store), Arc::new(AtomicBool::new(false)));
        let stop = Arc::clone(&stopping);
        let run = move || {
            while woken.recv().is_ok() {
                hide_all(&store, &reader, &*executor, &stop);
            }
        };
        let thread = thread::Builder::new().name("secrets".to_owned()).spawn(run)?;
        let cleaner = Self { wake: Some(wake), stopping, thread: Some(thread) };
        cleaner.wake();
        Ok(cleaner)
    }

    /// Jobs have finished.
    pub(crate) fn wake(&self) {
        // If one is waiting already, that one covers this too.
        let _ = self.wake.as_ref().map(|wake| wake.try_send(()));
    }
}

impl Drop for SecretCleaner {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.wake = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn hide_all(store: &Weak<Store>, reader: &Reader, executor: &dyn Executor, stop: &AtomicBool) {
    let mut last = JobId(0);
    while !stop.load(Ordering::Relaxed) {
        let Some(store) = store.upgrade() else { return };
        let jobs = match reader.finished_with_secrets(last, AT_ONCE) {
            Ok(jobs) => jobs,
            Err(error) => return tracing::warn!("cannot search for secrets of finished jobs: {error}"),
        };
        let Some(page_end) = jobs.last() else { return };
        last = *page_end;
        let hidden: Vec<JobId> = jobs.into_iter().filter(|job| hide_files(executor, *job)).collect();
        // On a full disk they stay listed.
        if !hidden.is_empty() && store.write([Change::SecretsHidden(hidden)]).wait().is_err() {
            return;
        }
    }
}

fn hide_files(executor: &dyn Executor, job: JobId) -> bool {
    let hidden = executor.hide_secrets(job);
    hidden.inspect_err(|error| tracing::warn!(job = job.0, "cannot hide the secrets of a finished job: {error}")).is_ok()
}
