//! Comparison of policies on one trace: the same seeds, all results relative to exclusive.

use serde::Serialize;

use crate::catalogue::Catalogue;
use crate::hardware::{ServerGroup, Servers};
use crate::origin::Origin;
use crate::simulation::Run;
use crate::summary::RunSummary;
use crate::trace::Trace;
use carma_core::mean;

/// All runs of one policy.
#[derive(Debug, Clone)]
pub struct Contender {
    /// Name in tables: the policy, plus the estimator or the changed setting if there are several.
    pub name: String,
    /// One summary per seed.
    pub summaries: Vec<RunSummary>,
    /// The first seed's run, with its timeline.
    pub example: Run,
}

/// One curve of a sweep: a policy under increasing values of a setting.
#[derive(Debug, Clone, Serialize)]
pub struct Curve {
    /// The policy.
    pub policy: String,
    /// The swept setting.
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

/// Two lower bounds for a makespan, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LowerBounds {
    /// The last end if every job ran alone at submission. No schedule is shorter, apart from the few percent that run times vary.
    pub critical_path: f64,
    /// GPU-seconds of all jobs alone, divided by the number of GPUs. No schedule with one job per GPU is shorter; sharing may be.
    pub work_over_capacity: f64,
}

impl LowerBounds {
    /// Bounds of a trace whose jobs all have workloads, each on its fastest GPU. Run times vary by a few percent from run to run, so a run
    /// may be slightly below.
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
    /// Number of jobs.
    pub jobs: usize,
    /// The servers, the sharing mode, and other settings that differ from the default.
    pub servers: String,
    /// Number of seeds per contender.
    pub seeds: usize,
    /// Exclusive first.
    pub contenders: Vec<Contender>,
    /// Lower bounds for the makespan.
    pub bounds: LowerBounds,
    /// Sweeps, if requested.
    pub curves: Vec<Curve>,
    /// Notes for the reader on how to interpret the results.
    pub caveats: Vec<String>,
    /// How to make it again.
    pub origin: Origin,
}

/// One row of the table: means over the runs, relative to exclusive's means, and in their own units.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ComparisonRow {
    /// The contender.
    pub policy: String,
    /// Makespan.
    pub makespan_ratio: f64,
    /// Its standard deviation over the runs; unset for one run.
    pub makespan_spread: Option<f64>,
    /// Mean completion time.
    pub mean_jct_ratio: f64,
    /// Its standard deviation over the runs; unset for one run.
    pub mean_jct_spread: Option<f64>,
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
    /// Of these, attempts that had kept to their reservation.
    pub oom_victims: f64,
    /// Mean slowdown: run time over time alone.
    pub mean_slowdown: f64,
    /// Slowdown of the worst job of a run, averaged over the runs.
    pub worst_slowdown: f64,
    /// Number of jobs that did not succeed, averaged over seeds.
    pub failed: f64,
    /// From the first submission to the last end, in seconds.
    pub makespan_s: f64,
    /// Its standard deviation over the runs; unset for one run.
    pub makespan_s_spread: Option<f64>,
    /// Mean time spent waiting, in seconds.
    pub mean_wait_s: f64,
    /// Mean time spent running, failed attempts included, in seconds.
    pub mean_execution_s: f64,
    /// Mean time from submission to end, in seconds.
    pub mean_jct_s: f64,
    /// Its standard deviation over the runs; unset for one run.
    pub mean_jct_s_spread: Option<f64>,
    /// Median of the times from submission to end, in seconds.
    pub p50_jct_s: f64,
    /// Their 95th percentile, in seconds.
    pub p95_jct_s: f64,
    /// Its standard deviation over the runs; unset for one run.
    pub p95_jct_s_spread: Option<f64>,
    /// Energy of all GPUs, in joules.
    pub energy_j: f64,
    /// Its standard deviation over the runs; unset for one run.
    pub energy_j_spread: Option<f64>,
}

impl Comparison {
    /// The table.
    pub fn rows(&self) -> Vec<ComparisonRow> {
        let Some(exclusive) = self.contenders.first() else { return Vec::new() };
        self.contenders.iter().map(|contender| row(contender, exclusive)).collect()
    }
}

/// The mean and the standard deviation of one number over single runs. The runs of a pair of seeds mirror each other, so the mean is more
/// certain than the deviation over the root of the number of runs.
pub fn spread(summaries: &[RunSummary], of: fn(&RunSummary) -> f64) -> (f64, f64) {
    let values: Vec<f64> = summaries.iter().map(of).collect();
    let middle = mean(&values);
    let squares: Vec<f64> = values.iter().map(|value| (value - middle).powi(2)).collect();
    let degrees = (values.len().max(2) - 1) as f64;
    (middle, (squares.iter().sum::<f64>() / degrees).sqrt())
}

/// Ratio of a part to a whole; 1 if the whole is zero, so that tables hold numbers only.
pub fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

fn row(contender: &Contender, exclusive: &Contender) -> ComparisonRow {
    let of = |of: fn(&RunSummary) -> f64| spread(&contender.summaries, of);
    // One run does not vary.
    let several = |deviation: f64| (contender.summaries.len() > 1).then_some(deviation);
    let with_spread = |number: fn(&RunSummary) -> f64| (of(number).0, several(of(number).1));
    let over = |number: fn(&RunSummary) -> f64| {
        let whole = spread(&exclusive.summaries, number).0;
        let (middle, deviation) = of(number);
        (ratio(middle, whole), several(if whole > 0.0 { deviation / whole } else { 0.0 }))
    };
    let (makespan_s, makespan_s_spread) = with_spread(|summary| summary.makespan);
    let (mean_jct_s, mean_jct_s_spread) = with_spread(|summary| summary.mean_jct);
    let (p95_jct_s, p95_jct_s_spread) = with_spread(|summary| summary.p95_jct);
    let (energy_j, energy_j_spread) = with_spread(|summary| summary.energy);
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
        oom_victims: of(|summary| summary.oom_victims as f64).0,
        mean_slowdown: of(|summary| summary.mean_slowdown).0,
        worst_slowdown: of(|summary| summary.worst_slowdown).0,
        failed: of(|summary| summary.failed as f64).0,
        makespan_s,
        makespan_s_spread,
        mean_wait_s: of(|summary| summary.mean_wait).0,
        mean_execution_s: of(|summary| summary.mean_execution).0,
        mean_jct_s,
        mean_jct_s_spread,
        p50_jct_s: of(|summary| summary.p50_jct).0,
        p95_jct_s,
        p95_jct_s_spread,
        energy_j,
        energy_j_spread,
    }
}
