//! Means of what was seen of a GPU: of a minute, for the store, or of a few looks, for those who want fewer of them.

use std::collections::BTreeMap;

use carma_core::{DeviceId, Fraction, MiB, Sample, Utilisation, Watts};

use crate::store::{MinuteMean, UnixMillis, UnixMinute};

/// The mean of some samples.
#[derive(Debug, Default)]
pub(super) struct Mean {
    readings: u32,
    memory: u64,
    /// Sums of SMACT, SMOCC, DRAMA, utilisation and power, with how many had them.
    sums: [(f64, u32); 5],
}

impl Mean {
    pub(super) fn add(&mut self, sample: &Sample) {
        self.readings += 1;
        self.memory += sample.memory_used.0;
        let share = |value: Option<Fraction>| value.map(Fraction::get);
        let values =
            [share(sample.smact), share(sample.smocc), share(sample.drama), share(sample.utilisation), sample.power.map(|power| power.0)];
        for ((sum, count), value) in self.sums.iter_mut().zip(values).filter_map(|(sum, value)| Some((sum, value?))) {
            *sum += value;
            *count += 1;
        }
    }

    pub(super) fn memory(&self) -> MiB {
        MiB(self.memory / u64::from(self.readings.max(1)))
    }

    /// SMACT, SMOCC, DRAMA, utilisation and power, where any sample had them.
    pub(super) fn values(&self) -> [Option<f64>; 5] {
        self.sums.map(|(sum, count)| (count > 0).then(|| sum / f64::from(count)))
    }
}

/// Samples of the current minute of each device.
#[derive(Debug, Default)]
pub(super) struct Minutes {
    running: BTreeMap<DeviceId, (UnixMinute, Mean)>,
    over: Vec<MinuteMean>,
}

impl Minutes {
    pub(super) fn take(&mut self, device: DeviceId, at: UnixMillis, sample: &Sample) {
        let minute = at.minute();
        let (number, current) = self.running.entry(device).or_insert_with(|| (minute, Mean::default()));
        if *number != minute {
            self.over.push(minute_mean(device, *number, current));
            (*number, *current) = (minute, Mean::default());
        }
        current.add(sample);
    }

    /// Minutes that are over, which are forgotten here.
    pub(super) fn over(&mut self) -> Vec<MinuteMean> {
        std::mem::take(&mut self.over)
    }

    /// All of them, with those that are under way.
    pub(super) fn all(self) -> Vec<MinuteMean> {
        let running = self.running.iter().map(|(device, (minute, mean))| minute_mean(*device, *minute, mean));
        self.over.into_iter().chain(running).collect()
    }
}

fn minute_mean(device: DeviceId, minute: UnixMinute, mean: &Mean) -> MinuteMean {
    let [smact, smocc, drama, gpu, power] = mean.values();
    let share = |value: Option<f64>| value.map(Fraction::clamped);
    MinuteMean {
        device,
        minute,
        readings: mean.readings,
        memory_used: mean.memory(),
        utilisation: Utilisation { smact: share(smact), smocc: share(smocc), drama: share(drama), gpu: share(gpu) },
        power: power.map(Watts),
    }
}

#[cfg(test)]
mod tests {
    use carma_core::{ServerId, Time};

    use super::*;

    #[test]
    fn a_minute_is_the_mean_of_what_was_seen_in_it() {
        let device = DeviceId::gpu(ServerId(0), 0);
        let mut minutes = Minutes::default();
        let sample = |memory, smact: Option<f64>| Sample { smact: smact.map(Fraction::clamped), ..Sample::new(Time::ZERO, MiB(memory)) };
        minutes.take(device, UnixMillis(60_000), &sample(100, Some(0.5)));
        minutes.take(device, UnixMillis(90_000), &sample(300, None));
        assert_eq!(minutes.over(), []);
        minutes.take(device, UnixMillis(120_000), &sample(7, None));
        let [mean] = minutes.over().try_into().unwrap();
        assert_eq!(
            (mean.minute, mean.readings, mean.memory_used, mean.utilisation.smact),
            (UnixMinute(1), 2, MiB(200), Some(Fraction::clamped(0.5)))
        );
        assert_eq!(minutes.over(), []);
        let [under_way] = minutes.all().try_into().unwrap();
        assert_eq!((under_way.minute, under_way.readings, under_way.memory_used), (UnixMinute(2), 1, MiB(7)));
    }
}
