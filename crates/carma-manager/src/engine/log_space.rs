//! The space for logs of each user. The manager owns the logs, so no quota of the user limits them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use carma_core::AttemptId;

use crate::configuration::LogConfig;

/// Every attempt may write this much to each of its logs, however much its user has.
const MIN_LOG: u64 = 16 << 10;
/// Each attempt has two logs: output and errors.
const LOGS: u64 = 2;

/// The logs of finished attempts, in bytes by user. It is counted again when logs are removed, by the thread that does so.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeptLogs(Arc<Mutex<HashMap<u32, u64>>>);

impl KeptLogs {
    /// Replaces all counts.
    pub(crate) fn set(&self, kept: impl IntoIterator<Item = (u32, u64)>) {
        *self.lock() = kept.into_iter().collect();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The space that users have and use.
#[derive(Debug)]
pub(crate) struct LogSpace {
    /// The limits of a log and of a user, in bytes.
    of_log: u64,
    of_user: u64,
    kept: KeptLogs,
    /// What running attempts may still write.
    running: HashMap<AttemptId, (u32, u64)>,
}

impl LogSpace {
    pub(crate) fn new(settings: &LogConfig) -> Self {
        Self { of_log: settings.size.0 << 20, of_user: settings.size_per_user.0 << 20, kept: KeptLogs::default(), running: HashMap::new() }
    }

    /// The counts of finished attempts.
    pub(crate) fn kept(&self) -> &KeptLogs {
        &self.kept
    }

    /// Reserves space for a new attempt. Answers the limit of each of its logs: smaller than usual if the user's space is nearly full.
    pub(crate) fn reserve(&mut self, attempt: AttemptId, user: u32) -> u64 {
        let free = self.of_user.saturating_sub(self.used_by(user));
        let limit = (free / LOGS).clamp(MIN_LOG.min(self.of_log), self.of_log);
        self.running.insert(attempt, (user, limit * LOGS));
        limit
    }

    /// An attempt has ended, and its logs have this size.
    pub(crate) fn ended(&mut self, attempt: AttemptId, bytes: u64) {
        if let Some((user, _)) = self.running.remove(&attempt) {
            *self.kept.lock().entry(user).or_default() += bytes;
        }
    }

    /// Whether logs of finished attempts must go, so that the next attempts of a user can have logs of the usual size.
    pub(crate) fn is_short(&self) -> bool {
        let kept: Vec<(u32, u64)> = self.kept.lock().iter().map(|(user, bytes)| (*user, *bytes)).collect();
        kept.into_iter().any(|(user, bytes)| bytes > 0 && self.used_by(user) + LOGS * self.of_log > self.of_user)
    }

    /// How much of a user's finished logs may stay.
    pub(crate) fn target(&self) -> impl Fn(u32) -> u64 + use<> {
        let mut running: HashMap<u32, u64> = HashMap::new();
        for (user, bytes) in self.running.values() {
            *running.entry(*user).or_default() += bytes;
        }
        let most = self.of_user - self.of_user / 4;
        move |user| most.saturating_sub(running.get(&user).copied().unwrap_or_default())
    }

    fn used_by(&self, user: u32) -> u64 {
        let running: u64 = self.running.values().filter(|(of, _)| *of == user).map(|(_, bytes)| bytes).sum();
        running + self.kept.lock().get(&user).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use carma_core::{JobId, MiB};

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_logs_of_a_user_stay_within_the_users_space() {
        let mut space = LogSpace::new(&LogConfig { size: MiB(2), size_per_user: MiB(10) });
        let attempt = |job| AttemptId { job: JobId(job), number: 1 };
        let (ada, bob) = (1, 2);
        assert_eq!([1, 2, 3].map(|job| space.reserve(attempt(job), ada)), [2 * MIB, 2 * MIB, MIB]);
        assert_eq!(space.reserve(attempt(4), ada), MIN_LOG, "the space is full");
        assert_eq!(space.reserve(attempt(5), bob), 2 * MIB, "that of others is not");
        assert!(!space.is_short(), "no finished attempt has logs that could go");
        space.ended(attempt(1), 4 * MIB);
        space.ended(attempt(1), 4 * MIB);
        assert!(space.is_short());
        assert_eq!((space.target()(ada) / MIB, space.target()(bob) / MIB), (1, 3));
        space.kept().set([(ada, MIB)]);
        (2..=4).for_each(|job| space.ended(attempt(job), 0));
        assert!(!space.is_short());
        assert_eq!(space.reserve(attempt(6), ada), 2 * MIB);
    }
}
