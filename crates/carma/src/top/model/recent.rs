//! The recent samples of GPUs, as far back as the manager keeps them.

use std::collections::BTreeMap;

use carma_core::{DeviceId, PowerRange, UtilisationOverTime};
use carma_manager::api::RecentSamples;
use carma_manager::store::UnixMillis;

/// Samples are kept for this many milliseconds, as in the manager.
const SPAN: u64 = 600_000;

/// The curves of each GPU, each as a share of the maximum.
#[derive(Debug, Default, Clone)]
pub(crate) struct Traces {
    at: Vec<UnixMillis>,
    pub(crate) utilisation: UtilisationOverTime,
    /// In watts.
    pub(crate) power: Vec<Option<f64>>,
}

/// Traces of all GPUs.
#[derive(Debug, Default)]
pub(crate) struct Recent(BTreeMap<DeviceId, Traces>);

impl Recent {
    /// Adds samples that are newer than all before.
    pub(super) fn take(&mut self, samples: Vec<RecentSamples>) {
        for samples in samples {
            let Some(last) = samples.at.last().copied() else { continue };
            let traces = self.0.entry(samples.device).or_default();
            traces.at.extend(samples.at);
            // Samples in the future are from before the manager's clock was set back.
            let gone = traces.at.iter().take_while(|at| **at > last || at.0 + SPAN < last.0).count();
            traces.at.drain(..gone);
            let power: Vec<Option<f64>> = samples.power.iter().map(|watts| watts.map(|watts| watts.0)).collect();
            let renew = |trace: &mut Vec<Option<f64>>, new: &[Option<f64>]| {
                trace.extend(new);
                trace.drain(..gone.min(trace.len()));
            };
            for (metric, trace) in traces.utilisation.iter_mut() {
                renew(trace, &samples.utilisation[metric]);
            }
            renew(&mut traces.power, &power);
        }
    }

    /// The samples of a GPU, if there are any.
    pub(crate) fn of(&self, device: DeviceId) -> Option<&Traces> {
        self.0.get(&device)
    }

    /// The watts at the top of the power chart: the limit of an A100, as the GPU's own limit is not known here, or the highest sample. With the highest sample
    /// only, idle GPUs would appear fully loaded.
    pub(crate) fn full_power(&self) -> f64 {
        self.0.values().flat_map(|traces| &traces.power).flatten().copied().fold(PowerRange::A100.limit.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use carma_core::{Metric, Watts};

    use super::super::super::fixtures::busy;
    use super::*;

    #[test]
    fn samples_are_kept_for_ten_minutes_and_future_ones_dropped() {
        let mut recent = Recent::default();
        let mut look = |second: u64| {
            let samples = busy().samples.remove(0);
            let device = samples.device;
            let utilisation = UtilisationOverTime::default().with(Metric::Smact, vec![Some(second as f64)]);
            recent.take(vec![RecentSamples { at: vec![UnixMillis(second * 1000)], utilisation, ..samples }]);
            let Traces { at, utilisation, power } = recent.of(device).unwrap();
            let smact = &utilisation[Metric::Smact];
            assert_eq!((at.len(), power.len()), (smact.len(), smact.len()));
            (smact.len(), smact[0].unwrap())
        };
        for second in 1000..1600 {
            look(second);
        }
        assert_eq!(look(1600), (601, 1000.0));
        assert_eq!(look(1700), (502, 1100.0));
        assert_eq!(look(1050), (1, 1050.0), "the clock went back");
    }

    #[test]
    fn idle_gpus_do_not_appear_busy() {
        let mut recent = Recent::default();
        let mut full = |watts| {
            let samples = busy().samples.remove(0);
            recent.take(vec![RecentSamples { power: vec![Some(Watts(watts))], ..samples }]);
            Watts(recent.full_power())
        };
        assert_eq!([full(52.0), full(690.0)], [Watts(400.0), Watts(690.0)]);
    }
}
