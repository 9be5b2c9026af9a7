//! The lock for one manager at a time. The kernel releases it when the manager dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use carma_gpu::process_started;

use super::error::StoreError;
use super::journal::Journal;

/// How long a lock may outlast a killed holder: a process that it was starting holds the lock too, until it runs its program.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);
/// The wait between two tries.
const PAUSE: Duration = Duration::from_millis(5);

/// The lock; dropping it releases the store.
#[derive(Debug)]
pub(super) struct StoreLock(File);

impl StoreLock {
    /// Locks the store; the error names the holder. Where hosts share the store, each has a lock of its own: some file systems
    /// keep the lock of a dead host for ever. Between hosts the lease decides.
    pub(super) fn take(store: &Path, journal: Journal, host: &str) -> Result<Self, StoreError> {
        let path = beside(store, &if journal.is_shared() { format!(".lock-{}", host.replace('/', "-")) } else { ".lock".to_owned() });
        let refused = || StoreError::file("lock", &path);
        // Not truncated before it is locked: it holds the holder's number.
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(refused())?;
        let deadline = Instant::now() + RELEASE_TIMEOUT;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(refused()(error)),
                Err(TryLockError::WouldBlock) => {}
            }
            let pid = holder(&mut file);
            if pid.is_none_or(|pid| process_started(pid).is_some()) || Instant::now() > deadline {
                return Err(StoreError::InUse { path: store.to_owned(), host: None, pid });
            }
            thread::sleep(PAUSE);
        }
        // The number helps people; without it the lock is as good.
        let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Self(file))
    }
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        // Closing alone would leave it to a process that another thread is just starting. Should this fail, closing follows.
        let _ = self.0.unlock();
    }
}

/// The process number in the file.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().and_then(|()| file.read_to_string(&mut text)).ok()?;
    text.trim().parse().ok()
}

/// The path of a file that goes with the store.
pub(super) fn beside(store: &Path, suffix: &str) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}
