//! What the GPUs did meanwhile, minute by minute: of the last day every minute, of the days before every tenth.

use carma_core::{Fraction, MiB, Utilisation, Watts};
use carma_manager::store::{MinuteMean, UnixMinute};

use crate::course::{Course, Ran, Tried};
use crate::writing::device;
use crate::{GPU_MEMORY, Past};

/// Power of a GPU on which nothing runs.
pub(crate) const IDLE_WATTS: f64 = 55.0;
/// The last minutes of which none is left out.
const DAY: u64 = 1440;
/// What the driver itself takes of a GPU's memory, in MiB.
const DRIVER: u64 = 480;

/// All minutes of all GPUs.
pub(crate) fn of<'a>(past: &'a Past, course: &'a Course) -> impl Iterator<Item = MinuteMean> + 'a {
    (0..past.gpus).flat_map(move |gpu| of_gpu(gpu, past, course))
}

fn of_gpu(gpu: u16, past: &Past, course: &Course) -> Vec<MinuteMean> {
    let (first, end) = (past.begin().minute().0, past.until.minute().0);
    let recent = end.saturating_sub(DAY);
    let attempts = course.jobs.iter().flat_map(|ran| ran.attempts.iter().map(move |tried| (ran, tried)));
    let mut coming: Vec<(&Ran, &Tried)> = attempts.filter(|(_, tried)| tried.gpus.contains(&gpu)).collect();
    coming.sort_by_key(|(_, tried)| std::cmp::Reverse(tried.launched));
    let mut there: Vec<(&Ran, &Tried)> = Vec::new();
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

fn mean(gpu: u16, minute: u64, there: &[(&Ran, &Tried)]) -> MinuteMean {
    let memory: u64 = there.iter().map(|(_, tried)| tried.memory).sum();
    let smact = there.iter().map(|(ran, _)| ran.workload.smact).sum::<f64>().min(0.97);
    let watts: f64 = there.iter().map(|(ran, _)| ran.workload.watts).sum();
    let share = |part: f64| Some(Fraction::clamped(smact * part));
    MinuteMean {
        device: device(gpu),
        minute: UnixMinute(minute),
        readings: 60,
        memory_used: MiB((memory + DRIVER).min(GPU_MEMORY)),
        utilisation: Utilisation { smact: share(1.0), smocc: share(0.45), drama: share(0.35), gpu: share(1.03) },
        power: Some(Watts((IDLE_WATTS + watts).min(400.0))),
    }
}
