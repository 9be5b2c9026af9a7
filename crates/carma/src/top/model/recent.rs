//! The last looks at GPUs, as far back as is drawn.

use std::collections::BTreeMap;

use carma_core::DeviceId;
use carma_manager::api::RecentLooks;

/// The widest that anything is drawn.
const KEPT: usize = 120;

/// What is drawn over time of each GPU, each as a share of all there is.
#[derive(Debug, Default, Clone)]
pub(crate) struct Traces {
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
    /// Takes looks that are later than all before.
    pub(super) fn take(&mut self, looks: Vec<RecentLooks>) {
        for looks in looks {
            let traces = self.0.entry(looks.device).or_default();
            let power = looks.power.iter().map(|watts| watts.map(|watts| watts.0)).collect();
            for (trace, new) in [
                (&mut traces.smact, looks.smact),
                (&mut traces.smocc, looks.smocc),
                (&mut traces.drama, looks.drama),
                (&mut traces.power, power),
            ] {
                trace.extend(new);
                trace.drain(..trace.len().saturating_sub(KEPT));
            }
        }
    }

    /// Those of a GPU, if it was looked at.
    pub(crate) fn of(&self, device: DeviceId) -> Option<&Traces> {
        self.0.get(&device)
    }

    /// The most power that was seen of any GPU: what others are drawn against.
    pub(crate) fn most_power(&self) -> f64 {
        self.0.values().flat_map(|traces| &traces.power).flatten().copied().fold(1.0, f64::max)
    }
}
