//! A GPU over time: from the store, and from samples that are not stored yet.

use std::collections::BTreeMap;
use std::ops::Range;

use carma_core::{DeviceId, Fraction, MiB, PerMetric, Watts};

use super::Shared;
use super::caller::Caller;
use crate::api::{GpuTimeline, Problem, SampleQuery};
use crate::store::{MinuteMean, UnixMillis, UnixMinute};

/// Default period in milliseconds.
const DEFAULT_SPAN: u64 = 3_600_000;
/// Maximum number of minutes in an answer, about a day. For longer periods, several minutes are averaged.
const MAX_MINUTES: u64 = 1500;

impl Shared {
    pub(super) async fn timeline(&self, caller: &Caller, device: DeviceId, query: SampleQuery) -> Result<GpuTimeline, Problem> {
        let until = query.until.unwrap_or_else(|| self.handle.now());
        let since = query.since.unwrap_or(UnixMillis(until.0.saturating_sub(DEFAULT_SPAN)));
        let span = since.minute()..UnixMillis(until.0.saturating_add(59_999)).minute();
        let minutes = thinned(&self.minutes(caller, device, span).await?, until.0.saturating_sub(since.0));
        let stays = self.readers.read(caller.uid, move |reader| Ok(reader.stays(device, since..until)?)).await?;
        Ok(GpuTimeline { since, until, minutes, stays })
    }

    /// The minutes of a GPU, including those that are not stored yet. Of two for the same minute, the one with more readings counts.
    pub(super) async fn minutes(&self, caller: &Caller, device: DeviceId, span: Range<UnixMinute>) -> Result<Vec<MinuteMean>, Problem> {
        let kept = span.clone();
        let kept = self.readers.read(caller.uid, move |reader| Ok(reader.samples(device, kept)?)).await?;
        let mut minutes: BTreeMap<UnixMinute, MinuteMean> = kept.into_iter().map(|mean| (mean.minute, mean)).collect();
        for mean in self.handle.latest_minutes(device, &span) {
            let known = minutes.entry(mean.minute).or_insert(mean);
            if known.readings < mean.readings {
                *known = mean;
            }
        }
        Ok(minutes.into_values().collect())
    }
}

/// At most the maximum number of minutes, for a period of this many milliseconds.
fn thinned(minutes: &[MinuteMean], span: u64) -> Vec<MinuteMean> {
    let every = span.div_ceil(MAX_MINUTES * 60_000).max(1);
    minutes.chunk_by(|one, other| one.minute.0 / every == other.minute.0 / every).filter_map(mean).collect()
}

/// The mean of some minutes, dated by the first.
fn mean(minutes: &[MinuteMean]) -> Option<MinuteMean> {
    let first = *minutes.first().filter(|first| first.readings > 0)?;
    if minutes.len() == 1 {
        return Some(first);
    }
    let weighted = |pick: &dyn Fn(&MinuteMean) -> Option<f64>| {
        let known = minutes.iter().filter_map(|minute| Some((pick(minute)?, f64::from(minute.readings))));
        let (sum, weight) = known.fold((0.0, 0.0), |(sum, weight), (value, readings)| (sum + value * readings, weight + readings));
        (weight > 0.0).then(|| sum / weight)
    };
    let share = |metric| weighted(&|minute| minute.utilisation[metric].map(Fraction::get)).map(Fraction::clamped);
    Some(MinuteMean {
        readings: minutes.iter().map(|minute| minute.readings).sum(),
        memory_used: MiB(weighted(&|minute| Some(minute.memory_used.0 as f64)).unwrap_or_default() as u64),
        utilisation: PerMetric::from_fn(share),
        power: weighted(&|minute| minute.power.map(|power| power.0)).map(Watts),
        ..first
    })
}

#[cfg(test)]
mod tests {
    use carma_core::{Metric, ServerId, Utilisation};

    use super::*;

    #[test]
    fn long_spans_are_weighted_means() {
        let minute = |minute, readings, memory, power| MinuteMean {
            device: DeviceId::gpu(ServerId(0), 0),
            minute: UnixMinute(minute),
            readings,
            memory_used: MiB(memory),
            utilisation: Utilisation::of([(Metric::Smact, 0.5)]),
            power,
        };
        let minutes = [minute(2, 10, 100, None), minute(3, 30, 500, Some(Watts(60.0))), minute(4, 1, 7, None)];
        assert_eq!(thinned(&minutes, 90_000_000), minutes);
        let fewer = thinned(&minutes, 90_000_001);
        assert_eq!(fewer, [minute(2, 40, 400, Some(Watts(60.0))), minute(4, 1, 7, None)]);
        assert_eq!(thinned(&[], 0), []);
    }
}
