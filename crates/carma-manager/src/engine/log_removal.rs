//! Removes the logs of the oldest attempts of users whose logs take too much space.

use crate::executor::Executor;
use crate::store::{Change, Reader, Store};

use super::log_space::KeptLogs;

/// Attempts whose logs one commit removes.
const AT_ONCE: u64 = 500;

/// Removes logs until each user is below the target, and counts what is left. Runs on a thread that may be slow.
pub(super) fn remove_logs(store: &Store, reader: &Reader, executor: &dyn Executor, kept: &KeptLogs, target: impl Fn(u32) -> u64) {
    let run = || {
        for (user, bytes) in reader.log_bytes()? {
            let mut excess = bytes.saturating_sub(target(user));
            while excess > 0 {
                let oldest = reader.oldest_logs(user, AT_ONCE)?;
                let mut removed = Vec::new();
                for (attempt, bytes) in oldest {
                    if excess == 0 {
                        break;
                    }
                    executor.remove_logs(attempt);
                    excess = excess.saturating_sub(bytes);
                    removed.push(attempt);
                }
                if removed.is_empty() {
                    break;
                }
                // After the files: what is counted and gone is harmless, the opposite is not.
                store.write([Change::LogsRemoved(removed)]).wait()?;
            }
        }
        kept.set(reader.log_bytes()?);
        Ok::<_, Box<dyn std::error::Error>>(())
    };
    if let Err(error) = run() {
        tracing::warn!("cannot remove old logs: {error}");
    }
}
