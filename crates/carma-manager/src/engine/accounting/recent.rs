//! The last ten minutes of each GPU, sample by sample. The engine writes them and the server reads them, so that clients never block the engine.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

use carma_core::{AttemptId, DeviceId, MiB, PerMetric, Sample, Watts};

use super::minutes::{Mean, Minutes};
use crate::api::{RecentSamples, RecentTenant};
use crate::store::{MinuteMean, UnixMillis, UnixMinute};

/// How long samples are kept, in milliseconds.
const SPAN: u64 = 600_000;
/// A sample replaces the last one if both follow the sample before within this time. This bounds their number.
const CLOSE: u64 = 900;

/// A sample of a GPU.
#[derive(Debug, Clone)]
pub(crate) struct RecentSample {
    pub(crate) at: UnixMillis,
    pub(crate) sample: Sample,
    /// Our attempts on it, and their memory if known.
    pub(crate) tenants: Vec<(AttemptId, Option<MiB>)>,
}

/// Which samples to return.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SampleFilter {
    /// Only samples after this time.
    pub(crate) since: Option<UnixMillis>,
    /// Only of this GPU.
    pub(crate) device: Option<DeviceId>,
    /// At most this many per GPU.
    pub(crate) points: Option<u32>,
}

/// The last samples of each GPU, the earliest first.
#[derive(Debug, Default)]
pub(crate) struct Recent(RwLock<BTreeMap<DeviceId, VecDeque<RecentSample>>>);

impl Recent {
    /// Adds samples of some GPUs, and drops old ones. Samples of the future are from before the wall clock was set back.
    pub(crate) fn take(&self, at: UnixMillis, seen: Vec<(DeviceId, RecentSample)>) {
        let mut devices = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for (device, sample) in seen {
            let samples = devices.entry(device).or_default();
            if samples.iter().nth_back(1).is_some_and(|before| at.0.saturating_sub(before.at.0) < CLOSE) {
                samples.pop_back();
            }
            samples.push_back(sample);
        }
        devices.retain(|_, samples| {
            while samples.front().is_some_and(|first| first.at > at || first.at.0 + SPAN < at.0) {
                samples.pop_front();
            }
            !samples.is_empty()
        });
    }

    /// The matching samples of each GPU; the lock is held for one GPU at a time.
    pub(crate) fn samples(&self, filter: SampleFilter) -> Vec<RecentSamples> {
        let devices: Vec<DeviceId> = self.with(|devices| devices.keys().copied().collect());
        let asked = devices.into_iter().filter(|device| filter.device.is_none_or(|only| only == *device));
        asked.filter_map(|device| self.with(|devices| Some(columns(device, devices.get(&device)?, filter)))).collect()
    }

    /// The minutes of a GPU in this span, as far as samples are kept.
    pub(crate) fn minutes(&self, device: DeviceId, span: &Range<UnixMinute>) -> Vec<MinuteMean> {
        let mut minutes = Minutes::default();
        self.with(|devices| {
            let samples = devices.get(&device).into_iter().flatten();
            samples.filter(|seen| span.contains(&seen.at.minute())).for_each(|seen| minutes.take(device, seen.at, &seen.sample));
        });
        minutes.all()
    }

    fn with<T>(&self, read: impl FnOnce(&BTreeMap<DeviceId, VecDeque<RecentSample>>) -> T) -> T {
        read(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Samples as columns, with the mean of each group. A group has the time of its last sample, so that a query for later ones misses none.
fn columns(device: DeviceId, samples: &VecDeque<RecentSample>, filter: SampleFilter) -> RecentSamples {
    let later: Vec<&RecentSample> = samples.iter().filter(|seen| filter.since.is_none_or(|since| seen.at > since)).collect();
    let groups = filter.points.map_or(later.len(), |points| later.len().min(points.max(1) as usize));
    let of_group = |group: usize| &later[group * later.len() / groups..(group + 1) * later.len() / groups];
    let mut answer = RecentSamples {
        device,
        at: Vec::with_capacity(groups),
        memory: Vec::with_capacity(groups),
        utilisation: PerMetric::from_fn(|_| Vec::with_capacity(groups)),
        power: Vec::with_capacity(groups),
        tenants: Vec::new(),
    };
    for group in (0..groups).map(of_group) {
        let mut mean = Mean::default();
        for seen in group {
            mean.add(&seen.sample);
        }
        let rounded = |value: Option<f64>, steps: f64| value.map(|value| (value * steps).round() / steps);
        answer.at.extend(group.last().map(|seen| seen.at));
        answer.memory.push(mean.memory());
        for (metric, value) in mean.utilisation().iter() {
            answer.utilisation[metric].push(rounded(*value, 1000.0));
        }
        answer.power.push(rounded(mean.power(), 10.0).map(Watts));
    }
    let attempts: BTreeSet<AttemptId> = later.iter().flat_map(|seen| &seen.tenants).map(|(attempt, _)| *attempt).collect();
    let tenant =
        |attempt: AttemptId| RecentTenant { attempt, memory: (0..groups).map(|group| mean_memory(attempt, of_group(group))).collect() };
    answer.tenants = attempts.into_iter().map(tenant).collect();
    answer
}

/// The mean memory of an attempt in the samples that include it.
fn mean_memory(attempt: AttemptId, group: &[&RecentSample]) -> Option<MiB> {
    let had = group.iter().filter_map(|seen| seen.tenants.iter().find(|(tenant, _)| *tenant == attempt)?.1);
    let (sum, count) = had.fold((0, 0), |(sum, count), memory| (sum + memory.0, count + 1));
    (count > 0).then(|| MiB(sum / count))
}

#[cfg(test)]
mod tests {
    use carma_core::{JobId, Metric, ServerId, Time, Utilisation};

    use super::*;

    const GPU: DeviceId = DeviceId::gpu(ServerId(0), 0);
    const ATTEMPT: AttemptId = AttemptId { job: JobId(7), number: 1 };

    /// A sample each second from `first` on, with as much memory as it is the number of; every other has a tenant.
    fn recent(first: u64, count: u64) -> Recent {
        let recent = Recent::default();
        for second in first..first + count {
            let sample = Sample { utilisation: Utilisation::of([(Metric::Smact, 0.12345)]), ..Sample::new(Time::ZERO, MiB(second)) };
            let tenants = if second % 2 == 0 { vec![(ATTEMPT, Some(MiB(10 * second)))] } else { Vec::new() };
            let at = UnixMillis(second * 1000);
            recent.take(at, vec![(GPU, RecentSample { at, sample, tenants })]);
        }
        recent
    }

    fn only(recent: &Recent, filter: SampleFilter) -> RecentSamples {
        let [samples] = recent.samples(filter).try_into().unwrap();
        samples
    }

    #[test]
    fn samples_of_ten_minutes_are_kept() {
        let recent = recent(1000, 700);
        let samples = only(&recent, SampleFilter::default());
        assert_eq!((samples.at.len(), samples.at[0], samples.memory[600]), (601, UnixMillis(1_099_000), MiB(1699)));
        assert_eq!((samples.utilisation[Metric::Smact][0], samples.utilisation[Metric::Smocc][0]), (Some(0.123), None));
        let late = SampleFilter { since: Some(UnixMillis(1_697_000)), device: Some(GPU), points: None };
        let samples = only(&recent, late);
        assert_eq!(samples.memory, [MiB(1698), MiB(1699)]);
        assert_eq!(samples.tenants, [RecentTenant { attempt: ATTEMPT, memory: vec![Some(MiB(16_980)), None] }]);
        assert_eq!(recent.samples(SampleFilter { device: Some(DeviceId::gpu(ServerId(0), 9)), ..SampleFilter::default() }), []);
        // The wall clock was put back by an hour.
        recent.take(UnixMillis(100), Vec::new());
        assert_eq!(recent.samples(SampleFilter::default()), []);
    }

    #[test]
    fn fewer_points_are_means_and_end_with_the_last_sample() {
        let samples = only(&recent(0, 10), SampleFilter { points: Some(3), ..SampleFilter::default() });
        assert_eq!(samples.at, [2000, 5000, 9000].map(UnixMillis));
        assert_eq!(samples.memory, [1, 4, 7].map(MiB));
        assert_eq!(samples.tenants[0].memory, [Some(MiB(10)), Some(MiB(40)), Some(MiB(70))]);
        assert_eq!(only(&recent(0, 2), SampleFilter { points: Some(60), ..SampleFilter::default() }).at.len(), 2);
        assert_eq!(only(&recent(0, 2), SampleFilter { points: Some(0), ..SampleFilter::default() }).at.len(), 1);
        let nothing = only(&recent(0, 2), SampleFilter { since: Some(UnixMillis(9000)), points: Some(3), ..SampleFilter::default() });
        assert!(nothing.at.is_empty() && nothing.tenants.is_empty());
    }

    #[test]
    fn frequent_samples_are_not_all_kept_and_the_latest_always_is() {
        let recent = Recent::default();
        for tenth in 0..1000 {
            let at = UnixMillis(tenth * 100);
            recent.take(at, vec![(GPU, RecentSample { at, sample: Sample::new(Time::ZERO, MiB(tenth)), tenants: Vec::new() })]);
        }
        let samples = only(&recent, SampleFilter::default());
        assert!(samples.at.len() < 150, "{}", samples.at.len());
        assert_eq!(samples.memory.last(), Some(&MiB(999)));
    }

    #[test]
    fn minutes_are_means_of_kept_samples() {
        let minutes = recent(0, 150).minutes(GPU, &(UnixMinute(1)..UnixMinute(9)));
        let made: Vec<_> = minutes.iter().map(|mean| (mean.minute.0, mean.readings, mean.memory_used)).collect();
        assert_eq!(made, [(1, 60, MiB(89)), (2, 30, MiB(134))]);
    }
}
