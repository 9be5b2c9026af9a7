//! When housekeeping is due.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often there is housekeeping.
const PERIOD: Duration = Duration::from_secs(60);
/// How often servers of agents and pools of pilots are maintained.
const CLUSTER_PERIOD: Duration = Duration::from_millis(500);

/// When the next housekeeping and the next removal of old jobs are due.
#[derive(Debug)]
pub(crate) struct Timetable {
    housekeeping: Instant,
    prune: Instant,
    cluster: Instant,
    pub(crate) pruning: Arc<Pruning>,
}

/// The removal of old jobs on its thread.
#[derive(Debug, Default)]
pub(crate) struct Pruning {
    pub(crate) runs: AtomicBool,
    /// There is more to remove.
    pub(crate) continues: AtomicBool,
}

impl Timetable {
    /// Everything is due at once.
    pub(crate) fn new() -> Self {
        Self { housekeeping: Instant::now(), prune: Instant::now(), cluster: Instant::now(), pruning: Arc::default() }
    }

    pub(crate) fn until_housekeeping(&self) -> Duration {
        self.housekeeping.saturating_duration_since(Instant::now())
    }

    pub(crate) fn until_cluster(&self) -> Duration {
        self.cluster.saturating_duration_since(Instant::now())
    }

    /// Whether servers and pools need maintenance.
    pub(crate) fn cluster_is_due(&mut self) -> bool {
        is_due(&mut self.cluster, CLUSTER_PERIOD)
    }

    /// Whether housekeeping is due. If so, the next is in a while.
    pub(crate) fn housekeeping_is_due(&mut self) -> bool {
        is_due(&mut self.housekeeping, PERIOD)
    }

    /// Whether old jobs and logs are to be removed: at once if space is short. Otherwise the next removal is after this period, or after the next
    /// housekeeping if that one is not done.
    pub(crate) fn prune_is_due(&mut self, period: Duration, is_short: bool) -> bool {
        if self.pruning.runs.load(Ordering::Acquire) {
            return false;
        }
        let continues = self.pruning.continues.swap(false, Ordering::AcqRel);
        is_due(&mut self.prune, period) || continues || is_short
    }
}

fn is_due(next: &mut Instant, period: Duration) -> bool {
    let due = Instant::now() >= *next;
    if due {
        *next = Instant::now() + period;
    }
    due
}
