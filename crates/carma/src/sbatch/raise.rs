//! What follows an out-of-memory error of a job with shards. Pure: the wrapper in the job acts on it.

use carma_core::{LadderPosition, MiB, OomContext, Rung};

use super::site::ShardedGpu;

/// What is known when an attempt has run out of memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct OomAttempt {
    /// The shards that it had.
    pub(super) shards: u64,
    /// The memory that it would have needed, if its error says so.
    pub(super) needed: Option<MiB>,
    /// How often Slurm has restarted the job.
    pub(super) restarts: u32,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Again with this many shards.
    Raise(u64),
    /// It had all shards of its GPU.
    NothingLarger,
    /// It was restarted as often as it may be.
    NoRetriesLeft,
}

/// Climbs the ladder that the manager climbs, in steps of shards.
pub(super) fn next(gpu: ShardedGpu, ran_out: OomAttempt, retries: u32, ladder: &[Rung]) -> Next {
    if ran_out.restarts >= retries {
        return Next::NoRetriesLeft;
    }
    let had = gpu.memory_of(ran_out.shards).max(ran_out.needed.unwrap_or_default());
    let oom = OomContext { had, capacity: gpu.memory, next_capacity: None, alone: ran_out.shards >= gpu.shards };
    // Rungs that add a fixed amount are for one attempt each. The others depend only on what the attempt had.
    let additions = ladder.iter().take_while(|rung| matches!(rung, Rung::Add(_))).count().min(ran_out.restarts as usize);
    match LadderPosition::default().after(oom, &ladder[additions..]) {
        Some(climb) => Next::Raise(gpu.shards_for(climb.floor).max(ran_out.shards + 1).min(gpu.shards)),
        None => Next::NothingLarger,
    }
}

#[cfg(test)]
mod tests {
    use carma_core::Config;

    use super::*;

    const GPU: ShardedGpu = ShardedGpu { shards: 40, memory: MiB(40 * 1024) };

    fn after(shards: u64, needed: Option<u64>, restarts: u32) -> Next {
        next(GPU, OomAttempt { shards, needed: needed.map(MiB), restarts }, 10, &Config::default().recovery.ladder)
    }

    #[test]
    fn a_job_climbs_to_all_shards_of_a_gpu_and_no_further() {
        let mut shards = vec![5];
        while let Next::Raise(more) = after(shards[shards.len() - 1], None, shards.len() as u32 - 1) {
            shards.push(more);
        }
        assert_eq!(shards, [5, 7, 10, 18, 20, 28, 30, 40]);
        assert_eq!(after(40, None, 3), Next::NothingLarger);
    }

    #[test]
    fn the_memory_in_the_error_is_the_minimum() {
        assert_eq!(after(5, Some(12 * 1024), 0), Next::Raise(14));
        assert_eq!(after(5, Some(60 * 1024), 0), Next::Raise(40), "more than there is: all of it");
        let coarse = ShardedGpu { shards: 4, memory: MiB(80 * 1024) };
        let ran_out = OomAttempt { shards: 1, needed: None, restarts: 0 };
        assert_eq!(next(coarse, ran_out, 3, &[Rung::Add(MiB(1))]), Next::Raise(2), "at least one shard more");
    }

    #[test]
    fn retries_are_bounded() {
        let ran_out = OomAttempt { shards: 5, needed: None, restarts: 3 };
        assert_eq!(next(GPU, ran_out, 3, &Config::default().recovery.ladder), Next::NoRetriesLeft);
        assert_eq!(next(GPU, OomAttempt { restarts: 0, ..ran_out }, 0, &[]), Next::NoRetriesLeft);
    }
}
