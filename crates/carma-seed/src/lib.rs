//! Synthetic history for a store, to test and benchmark views of ten thousand jobs without running them.
//!
//! ```text
//!  HistoryOptions ─► schedule (GPUs and times of jobs) ─► writing (changes of the store): jobs, attempts, events, steps of memory
//!                                        └─► minutes (samples of the GPUs)
//! ```

mod minutes;
mod schedule;
mod workload;
mod writing;

use anyhow::Result;
use carma_core::Time;
use carma_manager::store::{Change, Store, UnixMillis};

use schedule::Schedule;

/// Changes that are written at once.
const AT_ONCE: usize = 5_000;
/// Memory of each GPU, in MiB.
const GPU_MEMORY: u64 = 40_960;

/// Options of the history.
#[derive(Debug, Clone, Copy)]
pub struct HistoryOptions {
    /// Jobs, all finished.
    pub jobs: u64,
    /// Days over which they were submitted.
    pub days: u64,
    /// GPUs they ran on.
    pub gpus: u16,
    /// The same seed gives the same history.
    pub seed: u64,
    /// When it ends.
    pub until: UnixMillis,
}

/// How much was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seeded {
    /// Jobs.
    pub jobs: u64,
    /// Their attempts.
    pub attempts: u64,
    /// Minutes of GPUs: all of the last day, and every tenth of the days before.
    pub minutes: u64,
}

impl HistoryOptions {
    fn begin(&self) -> UnixMillis {
        UnixMillis(self.until.0.saturating_sub(self.days * 86_400_000))
    }
}

/// Writes a synthetic history into a store.
pub fn seed(store: &Store, past: &HistoryOptions) -> Result<Seeded> {
    let schedule = Schedule::new(past);
    let mut seeded = Seeded::default();
    let mut pending = Vec::with_capacity(AT_ONCE);
    let keep = |pending: &mut Vec<Change>, most: usize| {
        if pending.len() < most { Ok(()) } else { store.write(std::mem::take(pending)).wait() }
    };
    for ran in &schedule.jobs {
        seeded.jobs += 1;
        seeded.attempts += ran.attempts.len() as u64;
        pending.extend(writing::changes(store.next_jobs(1), ran, past.begin())?);
        keep(&mut pending, AT_ONCE)?;
    }
    for mean in minutes::of(past, &schedule) {
        seeded.minutes += 1;
        pending.push(Change::SampleStored(mean));
        keep(&mut pending, AT_ONCE)?;
    }
    // The manager's clock continues from the end of this history.
    pending.push(Change::ClockAdvanced(Time::from_secs(past.days * 86_400)));
    keep(&mut pending, 1)?;
    Ok(seeded)
}

#[cfg(test)]
mod tests {
    use carma_core::{DeviceId, ServerId};
    use carma_manager::store::{EnergyKind, JobFilter, Span};

    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_consistent_history() {
        let past = HistoryOptions { jobs: 60, days: 2, gpus: 2, seed: 7, until: UnixMillis(1_800_000_000_000) };
        let seeded = || {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open(folder.path().join("carma.db")).unwrap();
            (seed(&store, &past).unwrap(), store.reader().unwrap().history(&JobFilter::default(), None, 100).unwrap(), store, folder)
        };
        let (counts, jobs, store, _folder) = seeded();
        assert_eq!((counts, &jobs), (seeded().0, &seeded().1));
        assert_eq!((counts.jobs, jobs.len(), counts.minutes), (60, 60, 2 * (1440 + 144)));
        assert!(counts.attempts >= 50, "{counts:?}");
        let reader = store.reader().unwrap();
        let loaded = reader.load().unwrap();
        assert!(loaded.jobs.is_empty() && loaded.running.is_empty() && loaded.unreadable.is_empty());
        let gpu = DeviceId::gpu(ServerId(0), 0);
        let stays = reader.stays(gpu, past.begin()..past.until).unwrap();
        let all_there = |stay: &carma_manager::store::GpuStay| stay.ended > Some(stay.launched) && !stay.memory.is_empty();
        assert!(stays.len() > 10 && stays.iter().all(all_there), "{stays:?}");
        let samples = reader.samples(gpu, past.begin().minute()..past.until.minute()).unwrap();
        assert!(samples.iter().any(|mean| mean.memory_used.0 > 1000) && samples.iter().all(|mean| mean.memory_used.0 <= GPU_MEMORY));
        assert!(reader.energy(EnergyKind::User, 0, None, Span::default()).unwrap().len() > 2);
        let detail = reader.job(jobs[0].id).unwrap().unwrap();
        assert!(detail.events.iter().any(|stored| stored.event.event.kind() == "seeded"));
    }
}
