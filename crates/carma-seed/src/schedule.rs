//! GPUs and times of jobs: first come, first served, on the GPUs with the most free memory.

use carma_core::{Outcome, Verdict};
use carma_manager::request::Owner;
use carma_manager::store::UnixMillis;
use fastrand::Rng;

use crate::workload::{WORKLOADS, Workload, user};
use crate::{GPU_MEMORY, HistoryOptions};

/// A job.
#[derive(Debug)]
pub(crate) struct SeededJob {
    pub(crate) owner: Owner,
    pub(crate) workload: &'static Workload,
    /// Its number among jobs of its kind.
    pub(crate) run: u64,
    pub(crate) gpus: u32,
    pub(crate) submitted: UnixMillis,
    pub(crate) ended: UnixMillis,
    pub(crate) outcome: Outcome,
    pub(crate) attempts: Vec<SeededAttempt>,
}

/// An attempt.
#[derive(Debug)]
pub(crate) struct SeededAttempt {
    pub(crate) gpus: Vec<u16>,
    pub(crate) launched: UnixMillis,
    pub(crate) ended: UnixMillis,
    pub(crate) reserved: u64,
    /// Peak memory on each GPU.
    pub(crate) memory: u64,
    pub(crate) verdict: Verdict,
}

/// The whole schedule.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) jobs: Vec<SeededJob>,
}

/// Tenants of each GPU: their end and their memory.
struct Gpus(Vec<Vec<(UnixMillis, u64)>>);

impl Gpus {
    /// This many GPUs with this much free memory, now or as soon as possible.
    fn place(&mut self, wanted: usize, memory: u64, at: UnixMillis) -> (UnixMillis, Vec<u16>) {
        let mut at = at;
        loop {
            self.0.iter_mut().for_each(|gpu| gpu.retain(|(ends, _)| *ends > at));
            let room = |place: usize| GPU_MEMORY - self.0[place].iter().map(|(_, memory)| memory).sum::<u64>();
            let mut fitting: Vec<usize> = (0..self.0.len()).filter(|place| room(*place) >= memory).collect();
            fitting.sort_by_key(|place| (std::cmp::Reverse(room(*place)), *place));
            if fitting.len() >= wanted {
                return (at, fitting.into_iter().take(wanted).map(|place| place as u16).collect());
            }
            // When all jobs have ended, every job fits.
            at = self.0.iter().flatten().map(|(ends, _)| *ends).min().unwrap_or(at);
        }
    }

    fn take(&mut self, tried: &SeededAttempt) {
        for gpu in &tried.gpus {
            self.0[usize::from(*gpu)].push((tried.ended, tried.reserved));
        }
    }
}

impl Schedule {
    pub(crate) fn new(past: &HistoryOptions) -> Self {
        let mut chance = Rng::with_seed(past.seed);
        let mut gpus = Gpus(vec![Vec::new(); past.gpus.into()]);
        let between = (past.until.0 - past.begin().0) / past.jobs.max(1);
        // In order: a later job sees the tenants of earlier ones.
        let mut last = past.begin();
        let jobs = (0..past.jobs).map(|run| {
            let submitted = UnixMillis(past.begin().0 + run * between + chance.u64(..between.max(1)));
            let ran = job(run, submitted, last, past, &mut gpus, &mut chance);
            last = ran.attempts.first().map_or(last, |first| first.launched);
            ran
        });
        Self { jobs: jobs.collect() }
    }
}

fn job(run: u64, submitted: UnixMillis, last: UnixMillis, past: &HistoryOptions, gpus: &mut Gpus, chance: &mut Rng) -> SeededJob {
    let workload = &WORKLOADS[chance.usize(..WORKLOADS.len())];
    let wanted = [1, 1, 1, 1, 1, 1, 1, 2, 2, 4][chance.usize(..10)].min(u32::from(past.gpus));
    // From two minutes to six hours, log-uniform.
    let mut length = (120_000.0 * 180_f64.powf(chance.f64())) as u64;
    let memory = workload.memory * chance.u64(85..=115) / 100;
    let (verdict, out_of_memory) = match chance.u32(..100) {
        0..6 => (Verdict::Failed { code: 1 }, false),
        6..10 => (Verdict::Succeeded, true),
        _ => (Verdict::Succeeded, false),
    };
    let mut attempts = Vec::new();
    let mut from = UnixMillis(submitted.0.max(last.0) + chance.u64(500..3_000));
    for reserved in out_of_memory.then_some(memory * 6 / 10).into_iter().chain([memory * 11 / 10]) {
        let (launched, places) = gpus.place(wanted as usize, reserved, from);
        if launched.0 + 60_000 >= past.until.0 {
            break;
        }
        let first = out_of_memory && attempts.is_empty();
        let took = if first { 45_000 } else { length };
        let tried = SeededAttempt {
            gpus: places,
            launched,
            ended: UnixMillis((launched.0 + took).min(past.until.0 - 1_000)),
            reserved,
            memory: if first { reserved } else { memory },
            verdict: if first { Verdict::OutOfMemory } else { verdict.clone() },
        };
        length = tried.ended.0 - launched.0;
        from = UnixMillis(tried.ended.0 + 1_000);
        gpus.take(&tried);
        attempts.push(tried);
    }
    let ended = attempts.last().map_or(past.until, |last| last.ended);
    // Jobs that did not start before the end of the history are cancelled.
    let outcome = match attempts.last().map(|last| &last.verdict) {
        None | Some(Verdict::OutOfMemory) => Outcome::Cancelled,
        Some(verdict) => verdict.clone().into(),
    };
    SeededJob { owner: user(chance.usize(..)), workload, run, gpus: wanted, submitted, ended, outcome, attempts }
}
