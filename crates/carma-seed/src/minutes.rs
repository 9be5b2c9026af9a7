//! Samples of the GPUs: every minute of the last day, every tenth minute of the days before.

use carma_core::{Metric, MiB, Utilisation, Watts};
use carma_manager::store::{MinuteMean, UnixMinute};

use crate::schedule::{Schedule, SeededAttempt, SeededJob};
use crate::workload::IDLE_WATTS;
use crate::writing::device;
use crate::{GPU_MEMORY, HistoryOptions};

/// Minutes at the end with a sample each.
const DAY: u64 = 1440;
/// GPU memory of the driver, in MiB.
const DRIVER: u64 = 480;

/// All minutes of all GPUs.
pub(crate) fn of<'a>(past: &'a HistoryOptions, schedule: &'a Schedule) -> impl Iterator<Item = MinuteMean> + 'a {
    (0..past.gpus).flat_map(move |gpu| of_gpu(gpu, past, schedule))
}

fn of_gpu(gpu: u16, past: &HistoryOptions, schedule: &Schedule) -> Vec<MinuteMean> {
    let (first, end) = (past.begin().minute().0, past.until.minute().0);
    let recent = end.saturating_sub(DAY);
    let attempts = schedule.jobs.iter().flat_map(|ran| ran.attempts.iter().map(move |tried| (ran, tried)));
    let mut coming: Vec<(&SeededJob, &SeededAttempt)> = attempts.filter(|(_, tried)| tried.gpus.contains(&gpu)).collect();
    coming.sort_by_key(|(_, tried)| std::cmp::Reverse(tried.launched));
    let mut there: Vec<(&SeededJob, &SeededAttempt)> = Vec::new();
    let minutes = (first..end).filter(|minute| *minute >= recent || (minute - first) % 10 == 0);
    minutes
        .map(|minute| {
            let begins = minute * 60_000;
            while let Some(next) = coming.pop_if(|(_, tried)| tried.launched.0 <= begins) {
                there.push(next);
            }
            there.retain(|(_, tried)| tried.ended.0 > begins);
            mean(gpu, minute, &there)
        })
        .collect()
}

fn mean(gpu: u16, minute: u64, there: &[(&SeededJob, &SeededAttempt)]) -> MinuteMean {
    let memory: u64 = there.iter().map(|(_, tried)| tried.memory).sum();
    let smact = there.iter().map(|(ran, _)| ran.workload.smact).sum::<f64>().min(0.97);
    let watts: f64 = there.iter().map(|(ran, _)| ran.workload.watts).sum();
    let share = |part: f64| smact * part;
    MinuteMean {
        device: device(gpu),
        minute: UnixMinute(minute),
        readings: 60,
        memory_used: MiB((memory + DRIVER).min(GPU_MEMORY)),
        utilisation: Utilisation::of([
            (Metric::Smact, share(1.0)),
            (Metric::Smocc, share(0.45)),
            (Metric::Drama, share(0.35)),
            (Metric::Utilisation, share(1.03)),
        ]),
        power: Some(Watts((IDLE_WATTS + watts).min(400.0))),
    }
}
