//! Analysis of a trace: arrivals, durations, demand for GPUs.

use std::collections::BTreeMap;

use carma_core::{Seconds, mean, percentile};
use serde::Serialize;

use super::Trace;
use super::draft::difference;
use crate::catalogue::Catalogue;

/// Statistics of a trace. [`Display`](std::fmt::Display) writes them as tables and bars of 80 columns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    /// Number of jobs.
    pub jobs: usize,
    /// Skipped jobs of the source, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Arrivals of jobs.
    pub arrivals: Arrivals,
    /// Durations of jobs alone; none if no duration is known.
    pub durations: Option<Durations>,
    /// Requested GPUs.
    pub demand: Vec<DemandClass>,
    /// GPU-hours of all jobs with a known duration.
    pub gpu_hours: f64,
    /// Number of jobs without a known duration.
    pub without_duration: usize,
    /// Jobs per workload, if the trace has workloads.
    pub workloads: BTreeMap<String, usize>,
}

/// Arrivals of jobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Arrivals {
    /// From the first to the last submission.
    pub span_s: f64,
    /// Jobs per hour over that span; none for a span of zero.
    pub per_hour: Option<f64>,
    /// Mean time between submissions.
    pub mean_gap_s: f64,
    /// Median of the gaps.
    pub p50_gap_s: f64,
    /// 95th percentile of the gaps.
    pub p95_gap_s: f64,
    /// Standard deviation of the gaps over their mean: 0 for a clock, 1 for independent arrivals, more for bursts.
    pub burstiness: Option<f64>,
    /// Arrivals over time.
    pub hours: Hours,
}

/// Arrivals per hour, or per several hours for long traces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hours {
    /// Hours per count.
    pub each: u64,
    /// Jobs submitted in each interval, from the first submission on.
    pub counts: Vec<usize>,
}

/// Durations of jobs alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Durations {
    /// Mean.
    pub mean_s: f64,
    /// Median.
    pub p50_s: f64,
    /// 90th percentile.
    pub p90_s: f64,
    /// 95th percentile.
    pub p95_s: f64,
    /// 99th percentile.
    pub p99_s: f64,
    /// Maximum.
    pub max_s: f64,
    /// Jobs by duration.
    pub classes: Vec<DurationClass>,
}

/// Jobs of similar duration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DurationClass {
    /// As text: `up to 10 min`.
    pub length: &'static str,
    /// Number of jobs.
    pub jobs: usize,
}

/// Jobs that request a similar number of GPUs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DemandClass {
    /// As text: `3-4`.
    pub gpus: &'static str,
    /// Number of jobs.
    pub jobs: usize,
    /// Share of all jobs.
    pub share_of_jobs: f64,
    /// Share of all GPU-seconds.
    pub share_of_gpu_time: f64,
}

/// Upper limits of duration, about three per factor of ten; the last is open-ended.
const LENGTHS: [(&str, f64); 11] = [
    ("up to 1 min", 60.0),
    ("up to 3 min", 180.0),
    ("up to 10 min", 600.0),
    ("up to 30 min", 1800.0),
    ("up to 1 h", 3600.0),
    ("up to 3 h", 10_800.0),
    ("up to 10 h", 36_000.0),
    ("up to 1 d", 86_400.0),
    ("up to 3 d", 259_200.0),
    ("up to 10 d", 864_000.0),
    ("longer", f64::INFINITY),
];

const DEMANDS: [(&str, u32); 5] = [("1", 1), ("2", 2), ("3-4", 4), ("5-8", 8), (">8", u32::MAX)];

impl Analysis {
    /// Analyses a trace. The duration of a job is its own, or else its workload's.
    pub fn of(trace: &Trace, catalogue: &Catalogue) -> Self {
        let times: Vec<Option<Seconds>> = trace.jobs.iter().map(|job| job.time_alone(catalogue)).collect();
        let mut workloads = BTreeMap::new();
        for id in trace.jobs.iter().filter_map(|job| job.workload) {
            *workloads.entry(catalogue.get(id).name.clone()).or_default() += 1;
        }
        let gpu_seconds = |job: usize| f64::from(trace.jobs[job].gpus) * times[job].map_or(0.0, Seconds::get);
        let all: f64 = (0..trace.jobs.len()).map(gpu_seconds).sum();
        let mut demand: Vec<DemandClass> =
            DEMANDS.iter().map(|(gpus, _)| DemandClass { gpus, jobs: 0, share_of_jobs: 0.0, share_of_gpu_time: 0.0 }).collect();
        for (place, job) in trace.jobs.iter().enumerate() {
            let class = &mut demand[DEMANDS.partition_point(|(_, most)| *most < job.gpus)];
            class.jobs += 1;
            class.share_of_gpu_time += gpu_seconds(place);
        }
        for class in &mut demand {
            class.share_of_jobs = class.jobs as f64 / trace.jobs.len().max(1) as f64;
            class.share_of_gpu_time = if all > 0.0 { class.share_of_gpu_time / all } else { 0.0 };
        }
        Self {
            jobs: trace.jobs.len(),
            skipped: trace.skipped.iter().map(|(why, jobs)| (why.to_string(), *jobs)).collect(),
            arrivals: Arrivals::of(trace),
            durations: Durations::of(times.iter().flatten().map(|time| time.get()).collect()),
            demand,
            gpu_hours: all / 3600.0,
            without_duration: times.iter().filter(|time| time.is_none()).count(),
            workloads,
        }
    }
}

impl Arrivals {
    fn of(trace: &Trace) -> Self {
        let mut gaps: Vec<f64> = trace.jobs.windows(2).map(|pair| difference(pair[1].submitted, pair[0].submitted).get()).collect();
        gaps.sort_by(f64::total_cmp);
        let mean = mean(&gaps);
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len().max(1) as f64;
        let span_s = gaps.iter().sum::<f64>();
        Self {
            span_s,
            per_hour: (span_s > 0.0).then(|| trace.jobs.len() as f64 * 3600.0 / span_s),
            mean_gap_s: mean,
            p50_gap_s: percentile(&gaps, 0.50),
            p95_gap_s: percentile(&gaps, 0.95),
            burstiness: (mean > 0.0).then(|| variance.sqrt() / mean),
            hours: Hours::of(trace, span_s),
        }
    }
}

impl Hours {
    /// As fine as fits one line of text.
    fn of(trace: &Trace, span_s: f64) -> Self {
        const MOST: u64 = 64;
        let whole_hours = (span_s / 3600.0) as u64 + 1;
        let each = whole_hours.div_ceil(MOST);
        let mut counts = vec![0; whole_hours.div_ceil(each) as usize];
        let first = trace.jobs.first().map(|job| job.submitted).unwrap_or_default();
        for job in &trace.jobs {
            let place = (difference(job.submitted, first).get() / 3600.0) as u64 / each;
            let last = counts.len() - 1;
            counts[(place as usize).min(last)] += 1;
        }
        Self { each, counts }
    }
}

impl Durations {
    fn of(mut times: Vec<f64>) -> Option<Self> {
        times.sort_by(f64::total_cmp);
        let mut classes: Vec<DurationClass> = LENGTHS.iter().map(|(length, _)| DurationClass { length, jobs: 0 }).collect();
        for time in &times {
            classes[LENGTHS.partition_point(|(_, most)| most < time)].jobs += 1;
        }
        Some(Self {
            max_s: *times.last()?,
            mean_s: mean(&times),
            p50_s: percentile(&times, 0.50),
            p90_s: percentile(&times, 0.90),
            p95_s: percentile(&times, 0.95),
            p99_s: percentile(&times, 0.99),
            classes,
        })
    }
}
