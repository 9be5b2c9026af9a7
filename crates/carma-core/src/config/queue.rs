//! `[queue]`: which job is next, which may pass it, and how users share.

use super::Shares;
use crate::keys::ZeroIsNone;
use crate::units::Seconds;
use crate::{choice, section};

section! {
    /// The queue: which job is next, which may pass it, and how users share.
    QueueSettings => QueueConfig {
        /// Which job is next, among jobs of one priority (and, with fair share, one user).
        order: QueueOrder = QueueOrder::Submission, Carma: QueueOrder::Shortest;
        /// GPU-seconds of work that one second of waiting outweighs, so that no job waits forever.
        ageing: f64 [0.001..=1000.0] = 1.0;
        /// Assumed runtime of jobs without an estimate.
        unknown_duration: Seconds [1.0..=31_536_000.0] = Seconds::from_secs(3600);
        /// Users take turns by their recent usage, not by their number of jobs.
        fair_share: bool = false;
        /// Half-life of a user's past usage under fair share.
        half_life: Seconds [60.0..=31_536_000.0] = Seconds::from_secs(7 * 86_400);
        /// Under fair share, GPUs are left free for users below their share who had a job within this time. 0: none.
        fair_share_reserve ("courtesy"): Seconds [0.0..=31_536_000.0] = Seconds::from_secs(14_400);
        /// Users and groups with a share other than 1.
        shares: Shares = Shares::default();
        /// Number of jobs behind a waiting head that are considered for backfill. 0: strictly in order.
        backfill: ZeroIsNone<u32> [0.0..=10_000.0] = None, Standard: Some(100);
        /// GPUs are reserved for the head of the queue once it has waited this long. Before that, other jobs may pass it freely.
        reserve_after: Seconds [0.0..=31_536_000.0] = Seconds::ZERO, Carma: Seconds::from_secs(8 * 3600), Response: Seconds::from_secs(4 * 3600);
        /// The longest job is next once all other work per GPU is less than this many times its own. 0: never.
        critical: f64 [0.0..=10.0] = 0.0, Carma: 1.2, Throughput: 2.0, Response: 1.0;
        /// GPUs are kept for the longest job if they are predicted to be free for it within this share of its length, times the GPUs that it leaves
        /// to others for each of its own. Less, the more other work there is. 0: never.
        drain: f64 [0.0..=1.0] = 0.0, Carma: 0.025, Throughput: 0.07, Response: 0.0;
        /// GPUs that are predicted to be free within its length are kept for the head of the queue once it has waited for this many times its length.
        /// 0: never.
        stretch: f64 [0.0..=1000.0] = 0.0, Carma: 1.0, Throughput: 0.5, Response: 0.0;
        /// Time between asking a job to stop and killing it.
        grace: Seconds [0.0..=3600.0] = Seconds::from_secs(30);
    }
}

choice! {
    /// Which job is next, among jobs of one priority.
    #[derive(Default)]
    QueueOrder {
        /// The job that was submitted first.
        #[default]
        Submission = "submission",
        /// The job that has used the least GPU time.
        LeastAttained = "least_attained",
        /// The job that is expected to need the least GPU time from now on.
        Shortest = "shortest",
    }
}
