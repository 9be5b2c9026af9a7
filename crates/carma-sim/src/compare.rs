//! Policies side by side on one trace: the same seeds, and everything as a share of exclusive.

use serde::Serialize;

use crate::catalogue::Catalogue;
use crate::hardware::{ServerGroup, Servers};
use crate::simulation::Run;
use crate::summary::{RunSummary, mean};
use crate::trace::Trace;

/// All runs of one policy.
#[derive(Debug, Clone)]
pub struct Contender {
    /// As it stands in tables: the policy, and the estimator or the changed setting where there are several.
    pub name: String,
    /// One a seed.
    pub summaries: Vec<RunSummary>,
    /// The first seed's run, with its timeline.
    pub example: Run,
}

/// One curve of a sweep: a policy under rising values of a setting.
#[derive(Debug, Clone, Serialize)]
pub struct Curve {
    /// The policy.
    pub policy: String,
    /// What is swept.
    pub setting: String,
    /// The values, with the ratios of makespan, mean completion time and energy to exclusive, and the out-of-memory attempts.
    pub points: Vec<CurvePoint>,
}

/// One point of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CurvePoint {
    /// The setting's value.
    pub value: f64,
    /// Makespan over exclusive's.
    pub makespan_ratio: f64,
    /// Mean completion time over exclusive's.
    pub mean_jct_ratio: f64,
    /// Energy over exclusive's.
    pub energy_ratio: f64,
    /// Mean number of attempts that ran out of memory.
    pub oom_attempts: f64,
}

/// Two yardsticks for a makespan, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LowerBounds {
    /// The last end if every job ran alone as soon as it was submitted: no schedule is below, but for the few percent that run times vary.
    pub critical_path: f64,
    /// GPU-seconds of all jobs run alone, shared out evenly among the GPUs: no schedule of one job a GPU is below; sharing may be.
    pub work_over_capacity: f64,
}

impl LowerBounds {
    /// Of a trace whose jobs all have workloads, each on the GPU that is fastest for it. Run times vary by a few percent from run to run; a
    /// lucky one may be that much below.
    pub fn of(trace: &Trace, catalogue: &Catalogue, servers: &Servers) -> Self {
        let alone = |job: &crate::TraceJob| {
            let seconds = job.time_alone(catalogue).unwrap_or_default().get();
            let ranks = job.workload.map_or(&[][..], |workload| &catalogue.get(workload).ranks);
            let slowest = |group: &ServerGroup| ranks.iter().map(|rank| group.kind.stretch(rank).0).fold(0.0, f64::max);
            seconds * servers.groups.iter().map(slowest).fold(f64::INFINITY, f64::min)
        };
        let first = trace.jobs.iter().map(|job| job.submitted).min().unwrap_or_default().get();
        let ends = trace.jobs.iter().map(|job| job.submitted.get() + alone(job) - first);
        let work: f64 = trace.jobs.iter().map(|job| alone(job) * f64::from(job.gpus)).sum();
        Self { critical_path: ends.fold(0.0, f64::max), work_over_capacity: work / f64::from(servers.gpus()) }
    }

    /// The mean over several orders of the same jobs.
    pub fn mean(bounds: impl Iterator<Item = Self>) -> Self {
        let (paths, works): (Vec<f64>, Vec<f64>) = bounds.map(|bound| (bound.critical_path, bound.work_over_capacity)).unzip();
        Self { critical_path: mean(&paths), work_over_capacity: mean(&works) }
    }
}

/// Policies side by side.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The trace's name.
    pub trace: String,
    /// How many jobs it has.
    pub jobs: usize,
    /// The servers and how they are shared, and what else is not as usual.
    pub servers: String,
    /// How many seeds each contender ran with.
    pub seeds: usize,
    /// Exclusive first.
    pub contenders: Vec<Contender>,
    /// Yardsticks for the makespan.
    pub bounds: LowerBounds,
    /// Sweeps, where asked for.
    pub curves: Vec<Curve>,
    /// What a reader must know beside the figures.
    pub caveats: Vec<String>,
}

/// One line of the table: means over seeds, as shares of exclusive's means.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparisonRow {
    /// The contender.
    pub policy: String,
    /// Makespan.
    pub makespan_ratio: f64,
    /// Its standard deviation over seeds.
    pub makespan_spread: f64,
    /// Mean completion time.
    pub mean_jct_ratio: f64,
    /// Its standard deviation over seeds.
    pub mean_jct_spread: f64,
    /// 95th percentile of completion times.
    pub p95_jct_ratio: f64,
    /// Energy.
    pub energy_ratio: f64,
    /// Mean SMACT.
    pub smact_ratio: f64,
    /// Mean SMOCC.
    pub smocc_ratio: f64,
    /// Mean memory in use.
    pub memory_ratio: f64,
    /// Attempts that ran out of memory.
    pub oom_attempts: f64,
    /// Mean of run time over time alone.
    pub mean_slowdown: f64,
    /// The largest, on average over seeds.
    pub worst_slowdown: f64,
    /// Jobs that did not succeed, on average over seeds.
    pub failed: f64,
}

impl Comparison {
    /// The table.
    pub fn rows(&self) -> Vec<ComparisonRow> {
        let Some(exclusive) = self.contenders.first() else { return Vec::new() };
        self.contenders.iter().map(|contender| row(contender, exclusive)).collect()
    }
}

/// The mean and the standard deviation of one number over a contender's seeds.
pub fn spread(summaries: &[RunSummary], of: fn(&RunSummary) -> f64) -> (f64, f64) {
    let values: Vec<f64> = summaries.iter().map(of).collect();
    let middle = mean(&values);
    let squares: Vec<f64> = values.iter().map(|value| (value - middle).powi(2)).collect();
    let degrees = (values.len().max(2) - 1) as f64;
    (middle, (squares.iter().sum::<f64>() / degrees).sqrt())
}

/// A part of a whole; 1 of nothing, so that tables hold numbers only.
pub fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

fn row(contender: &Contender, exclusive: &Contender) -> ComparisonRow {
    let of = |of: fn(&RunSummary) -> f64| spread(&contender.summaries, of);
    let over = |number: fn(&RunSummary) -> f64| {
        let whole = spread(&exclusive.summaries, number).0;
        let (middle, deviation) = of(number);
        (ratio(middle, whole), if whole > 0.0 { deviation / whole } else { 0.0 })
    };
    let (makespan_ratio, makespan_spread) = over(|summary| summary.makespan);
    let (mean_jct_ratio, mean_jct_spread) = over(|summary| summary.mean_jct);
    ComparisonRow {
        policy: contender.name.clone(),
        makespan_ratio,
        makespan_spread,
        mean_jct_ratio,
        mean_jct_spread,
        p95_jct_ratio: over(|summary| summary.p95_jct).0,
        energy_ratio: over(|summary| summary.energy).0,
        smact_ratio: over(|summary| summary.smact).0,
        smocc_ratio: over(|summary| summary.smocc).0,
        memory_ratio: over(|summary| summary.memory_mib).0,
        oom_attempts: of(|summary| summary.oom_attempts as f64).0,
        mean_slowdown: of(|summary| summary.mean_slowdown).0,
        worst_slowdown: of(|summary| summary.worst_slowdown).0,
        failed: of(|summary| summary.failed as f64).0,
    }
}
