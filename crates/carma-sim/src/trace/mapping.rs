//! Maps jobs of logs without workloads onto workloads of the catalogue.

use std::collections::BTreeMap;

use carma_core::Seconds;

use super::{Trace, TraceJob};
use crate::catalogue::{Catalogue, WorkloadId};
use crate::random::Random;

/// Duration of a mapped job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DurationRule {
    /// Duration from the trace.
    #[default]
    Own,
    /// Duration of its workload.
    Workload,
}

/// Assigns a workload of the catalogue to every job without one.
///
/// Job durations are split into thirds: short, medium, long. So are the workloads with the same number of GPUs as the job or, if
/// there are none, with the next lower number, else with the next higher. A job gets a random workload of its third, by the
/// seed. Jobs keep their own number of GPUs.
#[must_use]
pub fn map(trace: &Trace, catalogue: &Catalogue, seed: u64, durations: DurationRule) -> Trace {
    let pools = pools(catalogue);
    let thirds = Thirds::of(trace);
    let mut random = Random::new(seed);
    let mut choose = |job: &TraceJob| {
        let lower = pools.range(..=job.gpus).next_back();
        let (_, pool) = lower.or_else(|| pools.first_key_value())?;
        let third = thirds.place(job.duration);
        // A pool of one or two workloads has empty thirds; the neighbour is used instead.
        let start = third * pool.len() / 3;
        let end = ((third + 1) * pool.len() / 3).max(start + 1);
        Some(pool[start + random.below(end - start)])
    };
    let mapped = |job: &TraceJob| TraceJob {
        workload: job.workload.or_else(|| choose(job)),
        duration: if durations == DurationRule::Own { job.duration } else { None },
        ..job.clone()
    };
    Trace { jobs: trace.jobs.iter().map(mapped).collect(), skipped: trace.skipped.clone() }
}

/// Workloads by number of GPUs, shortest first. No pool is empty.
fn pools(catalogue: &Catalogue) -> BTreeMap<u32, Vec<WorkloadId>> {
    let mut pools: BTreeMap<u32, Vec<WorkloadId>> = BTreeMap::new();
    for (id, workload) in catalogue.drawn() {
        pools.entry(workload.gpus()).or_default().push(id);
    }
    for pool in pools.values_mut() {
        pool.sort_by_key(|id| catalogue.get(*id).seconds);
    }
    pools
}

/// Limits between short, medium and long.
struct Thirds {
    medium: Seconds,
    long: Seconds,
}

impl Thirds {
    fn of(trace: &Trace) -> Self {
        let mut times: Vec<Seconds> = trace.jobs.iter().filter_map(|job| job.duration).collect();
        times.sort_unstable();
        let at = |third: usize| times.get(third * times.len() / 3).copied().unwrap_or_default();
        Self { medium: at(1), long: at(2) }
    }

    /// 0 for short, 1 for medium or unknown, 2 for long.
    fn place(&self, duration: Option<Seconds>) -> usize {
        duration.map_or(1, |time| usize::from(time >= self.medium) + usize::from(time >= self.long))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Workload;

    fn job(gpus: u32, seconds: u64) -> TraceJob {
        let duration = Some(Seconds::from_secs(seconds));
        TraceJob { name: seconds.to_string(), submitted: Seconds::ZERO, gpus, workload: None, duration, owner: None }
    }

    #[test]
    fn longer_jobs_get_longer_workloads_of_their_number_of_gpus() {
        let catalogue = Catalogue::shipped();
        let trace = Trace { jobs: vec![job(1, 10), job(1, 20), job(1, 30), job(2, 10), job(8, 30), job(3, 20)], ..Trace::default() };
        let mapped = map(&trace, &catalogue, 7, DurationRule::Own);
        let of = |place: usize| catalogue.get(mapped.jobs[place].workload.unwrap());
        assert!(of(0).seconds <= of(1).seconds && of(1).seconds <= of(2).seconds);
        // The three workloads with two GPUs are one for each third.
        assert_eq!([of(3), of(5), of(4)].map(Workload::gpus), [2, 2, 2]);
        assert!(of(3).seconds < of(5).seconds && of(5).seconds < of(4).seconds);
        assert_eq!(mapped.jobs[4].gpus, 8, "a job keeps its number of GPUs");
        assert_eq!(mapped, map(&trace, &catalogue, 7, DurationRule::Own), "a seed leads to one mapping");
        assert_eq!(map(&trace, &catalogue, 7, DurationRule::Workload).jobs[0].duration, None);
    }

    #[test]
    fn workloads_that_are_only_named_change_no_seed() {
        let shipped = Catalogue::shipped();
        let mut own = shipped.clone();
        let text = "[source]\nmine = \"me\"\n[[workload]]\nname = \"mine\"\nmodel = \"m\"\ndataset = \"d\"\ngpus = 1\nseconds = 60\n\
                    peak_mib = [900]\nsmact = [0.5]\nsmocc = [0.5]\ndrama = [0.5]\nutilisation = [0.5]\nsource = \"mine\"\n";
        own.extend_named_only(text).unwrap();
        assert!(own.find("mine").is_some());
        let trace = Trace { jobs: (10..60).map(|seconds| job(1, seconds)).collect(), ..Trace::default() };
        assert_eq!(map(&trace, &own, 7, DurationRule::Own), map(&trace, &shipped, 7, DurationRule::Own));
        own = shipped.clone();
        own.extend(text).unwrap();
        assert_ne!(map(&trace, &own, 7, DurationRule::Own), map(&trace, &shipped, 7, DurationRule::Own));
    }

    #[test]
    fn without_workloads_nothing_is_mapped() {
        let trace = Trace { jobs: vec![job(1, 10)], ..Trace::default() };
        assert_eq!(map(&trace, &Catalogue::default(), 7, DurationRule::Own), trace);
    }
}
