//! Looks at all devices at once, again and again, and says when one is lost, hangs, or is back.

use std::collections::HashMap;

use crate::driver::{DeviceCall, Driver};
use crate::error::DriverError;
use crate::events::{GpuEvent, Incident};
use crate::identity::DeviceUuid;
use crate::reading::{Reading, read};

/// What one look at a device came to.
#[derive(Debug)]
pub struct Observation {
    /// Which.
    pub device: DeviceUuid,
    /// What was seen.
    pub reading: Result<Reading, DriverError>,
}

/// How a device last answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Answering,
    Hanging,
    Lost,
}

impl Condition {
    /// By the answer to a look; an odd error says nothing new.
    fn of(reading: &Result<Reading, DriverError>, before: Self) -> Self {
        match reading {
            Ok(_) => Self::Answering,
            Err(DriverError::Lost(_) | DriverError::NoSuchDevice(_)) => Self::Lost,
            Err(DriverError::TimedOut { .. } | DriverError::Hanging { .. }) => Self::Hanging,
            Err(_) => before,
        }
    }
}

/// Remembers how devices were, so that what changes is said once.
#[derive(Debug, Default)]
pub struct Monitor {
    conditions: HashMap<DeviceUuid, Condition>,
}

impl Monitor {
    /// Looks at these devices, all at the same time: it takes as long as the slowest of them, and never longer than the driver's deadline.
    pub fn look(&mut self, driver: &Driver, devices: &[DeviceUuid]) -> (Vec<Observation>, Vec<GpuEvent>) {
        let begun: Vec<_> =
            devices.iter().map(|device| (device, driver.begin(device, "nvmlDeviceGetMemoryInfo", |device| read(device)))).collect();
        let observations: Vec<Observation> = begun
            .into_iter()
            .map(|(device, begun)| Observation { device: device.clone(), reading: begun.and_then(DeviceCall::wait) })
            .collect();
        let events = observations.iter().filter_map(|observation| self.note(observation)).collect();
        (observations, events)
    }

    fn note(&mut self, observation: &Observation) -> Option<GpuEvent> {
        let condition = self.conditions.entry(observation.device.clone()).or_insert(Condition::Answering);
        let before = std::mem::replace(condition, Condition::of(&observation.reading, *condition));
        let incident = match (before, *condition) {
            (before, now) if before == now => return None,
            (_, Condition::Answering) => Incident::Back,
            (_, Condition::Hanging) => Incident::Hanging,
            (_, Condition::Lost) => Incident::Lost,
        };
        Some(GpuEvent { device: Some(observation.device.clone()), incident })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_changes_is_said_once() {
        let device: DeviceUuid = "GPU-1".parse().unwrap();
        let mut monitor = Monitor::default();
        let mut seen = |reading| monitor.note(&Observation { device: device.clone(), reading }).map(|event| event.incident);
        let fine = || {
            Ok(Reading {
                memory_used: carma_core::MiB(1),
                memory_total: carma_core::MiB(2),
                utilisation: None,
                power: None,
                energy: None,
                temperature: None,
                clock: None,
                uncorrected: None,
                processes: Vec::new(),
            })
        };
        let lost = || Err(DriverError::Lost("GPU-1".parse().unwrap()));
        let late = || Err(DriverError::TimedOut { call: "x", after: Duration::ZERO });
        let odd = || Err(DriverError::NotSupported { call: "x" });
        assert_eq!([seen(fine()), seen(late()), seen(late()), seen(odd())], [None, Some(Incident::Hanging), None, None]);
        assert_eq!(
            [seen(lost()), seen(odd()), seen(lost()), seen(fine()), seen(fine())],
            [Some(Incident::Lost), None, None, Some(Incident::Back), None]
        );
    }
}
