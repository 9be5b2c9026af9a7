//! Removes the logs of the oldest attempts of users whose logs take too much space.

use crate::executor::Executor;
use crate::store::{Change, Reader, Store};

use super::log_space::{KeptLogs, SpaceLeft};

/// Attempts whose logs one commit removes.
const AT_ONCE: u64 = 500;

/// Removes logs of users who have too much, and counts what is left. Runs on a thread that may be slow.
pub(super) fn remove_logs(store: &Store, reader: &Reader, executor: &dyn Executor, kept: &KeptLogs, left: &SpaceLeft) {
    let run = || {
        for (user, bytes) in reader.log_bytes()? {
            let mut excess = bytes.saturating_sub(left.may_stay(user, bytes));
            let mut attempts = 0;
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
                attempts += removed.len();
                // After the files: what is counted and gone is harmless, the opposite is not.
                store.write([Change::LogsRemoved(removed)]).wait()?;
            }
            if attempts > 0 {
                let most = left.of_user() >> 20;
                tracing::warn!(
                    "the logs of user {user} took more than manager.logs.size_per_user ({most} MiB): those of the {attempts} oldest attempts are removed"
                );
            }
        }
        kept.set(reader.log_bytes()?);
        Ok::<_, Box<dyn std::error::Error>>(())
    };
    if let Err(error) = run() {
        tracing::warn!("cannot remove old logs: {error}");
    }
}
