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
    /// What running attempts may write in all.
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

    /// Reserves space for a new attempt. Answers the limit of each of its logs: smaller than usual if running attempts may already fill the user's
    /// space. Logs of finished attempts can be removed, so they count only if they take the space once more.
    pub(crate) fn reserve(&mut self, attempt: AttemptId, user: u32) -> u64 {
        let (running, kept) = (self.running_of(user), self.kept_of(user));
        let free = self.of_user.saturating_sub(running).min((2 * self.of_user).saturating_sub(running + kept));
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

    /// The space that is left for logs of finished attempts. `written` tells how large the logs of a running attempt are.
    pub(crate) fn left(&self, written: impl Fn(AttemptId) -> u64) -> SpaceLeft {
        let mut running: HashMap<u32, u64> = HashMap::new();
        for (attempt, (user, _)) in &self.running {
            *running.entry(*user).or_default() += written(*attempt);
        }
        SpaceLeft { of_user: self.of_user, running }
    }

    /// Whether logs of finished attempts must go.
    pub(crate) fn is_short(&self, written: impl Fn(AttemptId) -> u64) -> bool {
        let kept: Vec<(u32, u64)> = self.kept.lock().iter().map(|(user, bytes)| (*user, *bytes)).collect();
        // Sizes are looked up only where they can matter.
        if kept.iter().all(|(user, bytes)| bytes + self.running_of(*user) <= self.of_user) {
            return false;
        }
        let left = self.left(written);
        kept.into_iter().any(|(user, bytes)| left.may_stay(user, bytes) < bytes)
    }

    fn running_of(&self, user: u32) -> u64 {
        self.running.values().filter(|(of, _)| *of == user).map(|(_, bytes)| bytes).sum()
    }

    fn kept_of(&self, user: u32) -> u64 {
        self.kept.lock().get(&user).copied().unwrap_or_default()
    }
}

/// The space for logs of finished attempts.
#[derive(Debug)]
pub(crate) struct SpaceLeft {
    of_user: u64,
    /// What running attempts have written, by user.
    running: HashMap<u32, u64>,
}

impl SpaceLeft {
    /// How much of a user's finished logs may stay: all, unless all logs of the user are above the limit. Then a quarter of the space becomes free, so
    /// that the next logs do not have to go at once.
    pub(crate) fn may_stay(&self, user: u32, bytes: u64) -> u64 {
        let left = self.of_user.saturating_sub(self.running.get(&user).copied().unwrap_or_default());
        if bytes <= left { bytes } else { left - left / 4 }
    }

    /// The limit of a user, in bytes.
    pub(crate) const fn of_user(&self) -> u64 {
        self.of_user
    }
}

#[cfg(test)]
mod tests {
    use carma_core::{JobId, MiB};

    use super::*;

    const MIB: u64 = 1 << 20;
    const ADA: u32 = 1;
    const BOB: u32 = 2;

    fn attempt(job: u64) -> AttemptId {
        AttemptId { job: JobId(job), number: 1 }
    }

    fn space(size: u64, size_per_user: u64) -> LogSpace {
        LogSpace::new(&LogConfig { size: MiB(size), size_per_user: MiB(size_per_user) })
    }

    #[test]
    fn running_attempts_of_a_user_cannot_fill_more_than_the_users_space() {
        let mut space = space(2, 10);
        assert_eq!([1, 2, 3].map(|job| space.reserve(attempt(job), ADA)), [2 * MIB, 2 * MIB, MIB]);
        assert_eq!(space.reserve(attempt(4), ADA), MIN_LOG, "the space is full");
        assert_eq!(space.reserve(attempt(5), BOB), 2 * MIB, "that of others is not");
        space.ended(attempt(1), 4 * MIB);
        space.ended(attempt(1), 4 * MIB);
        assert_eq!(space.kept_of(ADA), 4 * MIB, "an end counts once");
        (2..=4).for_each(|job| space.ended(attempt(job), 0));
        assert_eq!(space.reserve(attempt(6), ADA), 2 * MIB);
        // Logs that are not removed yet.
        space.kept().set([(ADA, 15 * MIB)]);
        assert_eq!(space.reserve(attempt(7), ADA), MIB / 2);
    }

    #[test]
    fn finished_logs_stay_while_all_logs_fit_however_much_running_attempts_may_write() {
        for (size, size_per_user) in [(64, 500), (1, 3), (64, 1)] {
            let mut space = space(size, size_per_user);
            for job in 1..=4 {
                space.reserve(attempt(job), ADA);
            }
            space.kept().set([(ADA, 6_000)]);
            let written = |_: AttemptId| 500;
            assert!(!space.is_short(written), "{size} {size_per_user}");
            assert_eq!(space.left(written).may_stay(ADA, 6_000), 6_000, "{size} {size_per_user}");
        }
    }

    #[test]
    fn finished_logs_go_when_all_logs_of_a_user_do_not_fit() {
        let mut space = space(2, 10);
        for job in 1..=2 {
            space.reserve(attempt(job), ADA);
        }
        let written = |_: AttemptId| MIB;
        space.kept().set([(ADA, 8 * MIB), (BOB, 10 * MIB)]);
        assert!(!space.is_short(written));
        space.kept().set([(ADA, 8 * MIB + 1), (BOB, 10 * MIB)]);
        assert!(space.is_short(written));
        let left = space.left(written);
        assert_eq!((left.may_stay(ADA, 8 * MIB + 1), left.may_stay(BOB, 10 * MIB)), (6 * MIB, 10 * MIB));
        assert_eq!(space.left(|_| 9 * MIB).may_stay(ADA, 1), 0, "running attempts take it all");
    }
}
