//! The last looks at GPUs, as far back as the manager knows them.

use std::collections::BTreeMap;

use carma_core::{DeviceId, PowerRange};
use carma_manager::api::RecentLooks;
use carma_manager::store::UnixMillis;

/// Looks are kept for so many milliseconds, as the manager keeps them.
const SPAN: u64 = 600_000;

/// What is drawn over time of each GPU, each as a share of all there is.
#[derive(Debug, Default, Clone)]
pub(crate) struct Traces {
    at: Vec<UnixMillis>,
    pub(crate) smact: Vec<Option<f64>>,
    pub(crate) smocc: Vec<Option<f64>>,
    pub(crate) drama: Vec<Option<f64>>,
    /// In watts.
    pub(crate) power: Vec<Option<f64>>,
}

/// Traces of all GPUs.
#[derive(Debug, Default)]
pub(crate) struct Recent(BTreeMap<DeviceId, Traces>);

impl Recent {
    /// Takes looks that came after all before.
    pub(super) fn take(&mut self, looks: Vec<RecentLooks>) {
        for looks in looks {
            let Some(last) = looks.at.last().copied() else { continue };
            let traces = self.0.entry(looks.device).or_default();
            traces.at.extend(looks.at);
            // What claims to be yet to come is from before the manager's clock went back.
            let gone = traces.at.iter().take_while(|at| **at > last || at.0 + SPAN < last.0).count();
            traces.at.drain(..gone);
            let power = looks.power.iter().map(|watts| watts.map(|watts| watts.0)).collect();
            for (trace, new) in [
                (&mut traces.smact, looks.smact),
                (&mut traces.smocc, looks.smocc),
                (&mut traces.drama, looks.drama),
                (&mut traces.power, power),
            ] {
                trace.extend(new);
                trace.drain(..gone.min(trace.len()));
            }
        }
    }

    /// Those of a GPU, if it was looked at.
    pub(crate) fn of(&self, device: DeviceId) -> Option<&Traces> {
        self.0.get(&device)
    }

    /// The watts that power is drawn against: the limit of an A100, as nobody tells that of a GPU, or more where more was seen. By the most that was seen
    /// alone, GPUs that idle would look as if they worked as hard as they can.
    pub(crate) fn full_power(&self) -> f64 {
        self.0.values().flat_map(|traces| &traces.power).flatten().copied().fold(PowerRange::A100.limit.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use carma_core::Watts;

    use super::super::super::fixtures::busy;
    use super::*;

    #[test]
    fn looks_of_ten_minutes_are_kept_and_none_of_a_time_to_come() {
        let mut recent = Recent::default();
        let mut look = |second: u64| {
            let looks = busy().looks.remove(0);
            let device = looks.device;
            recent.take(vec![RecentLooks { at: vec![UnixMillis(second * 1000)], smact: vec![Some(second as f64)], ..looks }]);
            let Traces { at, smact, power, .. } = recent.of(device).unwrap();
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
    fn gpus_that_idle_are_not_drawn_as_if_they_worked() {
        let mut recent = Recent::default();
        let mut full = |watts| {
            let looks = busy().looks.remove(0);
            recent.take(vec![RecentLooks { power: vec![Some(Watts(watts))], ..looks }]);
            Watts(recent.full_power())
        };
        assert_eq!([full(52.0), full(690.0)], [Watts(400.0), Watts(690.0)]);
    }
}
