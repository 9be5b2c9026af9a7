//! Means of GPU samples: per minute for the store, or of a few samples for clients that want fewer.

use std::collections::BTreeMap;

use carma_core::{DeviceId, Fraction, MiB, PerMetric, Sample, Watts};

use crate::store::{MinuteMean, UnixMillis, UnixMinute};

/// The mean of some samples.
#[derive(Debug, Default)]
pub(crate) struct Mean {
    readings: u32,
    memory: u64,
    utilisation: PerMetric<Sum>,
    power: Sum,
}

/// A sum of known values.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    sum: f64,
    count: u32,
}

impl Sum {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1;
        }
    }

    fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

impl Mean {
    pub(crate) fn add(&mut self, sample: &Sample) {
        self.readings += 1;
        self.memory += sample.memory_used.0;
        for (metric, sum) in self.utilisation.iter_mut() {
            sum.add(sample.utilisation[metric].map(Fraction::get));
        }
        self.power.add(sample.power.map(|power| power.0));
    }

    pub(crate) fn memory(&self) -> MiB {
        MiB(self.memory / u64::from(self.readings.max(1)))
    }

    /// The mean of each metric; unset if no sample has it.
    pub(crate) fn utilisation(&self) -> PerMetric<Option<f64>> {
        self.utilisation.map(Sum::mean)
    }

    /// The mean power in watts; unset if no sample has it.
    pub(crate) fn power(&self) -> Option<f64> {
        self.power.mean()
    }
}

/// Samples of the current minute of each device.
#[derive(Debug, Default)]
pub(crate) struct Minutes {
    running: BTreeMap<DeviceId, (UnixMinute, Mean)>,
    over: Vec<MinuteMean>,
}

impl Minutes {
    pub(crate) fn take(&mut self, device: DeviceId, at: UnixMillis, sample: &Sample) {
        let minute = at.minute();
        let (number, current) = self.running.entry(device).or_insert_with(|| (minute, Mean::default()));
        if *number != minute {
            self.over.push(minute_mean(device, *number, current));
            (*number, *current) = (minute, Mean::default());
        }
        current.add(sample);
    }

    /// Takes the complete minutes.
    pub(crate) fn over(&mut self) -> Vec<MinuteMean> {
        std::mem::take(&mut self.over)
    }

    /// All minutes, with the incomplete ones.
    pub(crate) fn all(self) -> Vec<MinuteMean> {
        let running = self.running.iter().map(|(device, (minute, mean))| minute_mean(*device, *minute, mean));
        self.over.into_iter().chain(running).collect()
    }
}

fn minute_mean(device: DeviceId, minute: UnixMinute, mean: &Mean) -> MinuteMean {
    MinuteMean {
        device,
        minute,
        readings: mean.readings,
        memory_used: mean.memory(),
        utilisation: mean.utilisation().map(|share| share.map(Fraction::clamped)),
        power: mean.power().map(Watts),
    }
}

#[cfg(test)]
mod tests {
    use carma_core::{Metric, ServerId, Time, Utilisation};

    use super::*;

    #[test]
    fn a_minute_is_the_mean_of_its_samples() {
        let device = DeviceId::gpu(ServerId(0), 0);
        let mut minutes = Minutes::default();
        let busy = |smact: Option<f64>| Utilisation::NONE.with(Metric::Smact, smact.map(Fraction::clamped));
        let sample = |memory, smact| Sample { utilisation: busy(smact), ..Sample::new(Time::ZERO, MiB(memory)) };
        minutes.take(device, UnixMillis(60_000), &sample(100, Some(0.5)));
        minutes.take(device, UnixMillis(90_000), &sample(300, None));
        assert_eq!(minutes.over(), []);
        minutes.take(device, UnixMillis(120_000), &sample(7, None));
        let [mean] = minutes.over().try_into().unwrap();
        assert_eq!(
            (mean.minute, mean.readings, mean.memory_used, mean.utilisation[Metric::Smact]),
            (UnixMinute(1), 2, MiB(200), Some(Fraction::clamped(0.5)))
        );
        assert_eq!(minutes.over(), []);
        let [under_way] = minutes.all().try_into().unwrap();
        assert_eq!((under_way.minute, under_way.readings, under_way.memory_used), (UnixMinute(2), 1, MiB(7)));
    }
}
