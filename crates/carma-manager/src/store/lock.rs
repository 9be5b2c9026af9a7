//! One manager at a time: a lock that the kernel takes away from whoever dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use carma_gpu::process_started;

use super::error::StoreError;

/// How long a lock may outlast its holder: what was just being started by one that was killed has it too, until it is a program of its own.
const LINGERING: Duration = Duration::from_secs(2);
/// Between looks at a lock that lingers.
const PAUSE: Duration = Duration::from_millis(5);

/// The store is ours for as long as this is kept.
#[derive(Debug)]
pub(super) struct StoreLock(File);

impl StoreLock {
    /// Locks the store, or says who has.
    pub(super) fn take(store: &Path) -> Result<Self, StoreError> {
        let path = beside(store, ".lock");
        let refused = || StoreError::file("lock", &path);
        // Not cut before it is ours: it holds the other's number.
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(refused())?;
        let patience = Instant::now() + LINGERING;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(refused()(error)),
                Err(TryLockError::WouldBlock) => {}
            }
            let pid = holder(&mut file);
            if pid.is_none_or(|pid| process_started(pid).is_some()) || Instant::now() > patience {
                return Err(StoreError::InUse { path: store.to_owned(), pid });
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
