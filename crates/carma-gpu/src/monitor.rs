//! Reads all devices at the same time, and reports when one is lost, hangs, or recovers.

use std::collections::HashMap;

use crate::driver::{DeviceCall, Driver};
use crate::error::DriverError;
use crate::events::{GpuEvent, Incident};
use crate::identity::DeviceUuid;
use crate::reading::{Reading, read};

/// The result of reading a device.
#[derive(Debug)]
pub struct Observation {
    /// The device.
    pub device: DeviceUuid,
    /// The sample.
    pub reading: Result<Reading, DriverError>,
}

/// The last answer of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// It answers.
    Answering,
    /// Its driver calls hang.
    Hanging,
    /// It is lost.
    Lost,
}

impl Condition {
    /// From the result of a reading; unknown errors change nothing.
    pub fn of(reading: &Result<Reading, DriverError>, before: Self) -> Self {
        match reading {
            Ok(_) => Self::Answering,
            Err(DriverError::Lost(_) | DriverError::NoSuchDevice(_)) => Self::Lost,
            Err(DriverError::TimedOut { .. } | DriverError::Hanging { .. }) => Self::Hanging,
            Err(_) => before,
        }
    }
}

/// Remembers the state of devices, so that each change is logged once.
#[derive(Debug, Default)]
pub struct Monitor {
    conditions: HashMap<DeviceUuid, Condition>,
}

impl Monitor {
    /// A monitor that continues for another: what that one has reported is not reported again.
    pub fn continued(conditions: HashMap<DeviceUuid, Condition>) -> Self {
        Self { conditions }
    }

    /// Reads these devices in parallel: it takes as long as the slowest of them, and at most the driver's deadline.
    pub fn sample(&mut self, driver: &Driver, devices: &[DeviceUuid]) -> (Vec<Observation>, Vec<GpuEvent>) {
        let calls: Vec<_> =
            devices.iter().map(|device| (device, driver.begin(device, "nvmlDeviceGetMemoryInfo", |device| read(device)))).collect();
        let observations: Vec<Observation> = calls
            .into_iter()
            .map(|(device, call)| Observation { device: device.clone(), reading: call.and_then(DeviceCall::wait) })
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
    use std::collections::BTreeSet;
    use std::time::Duration;

    #[test]
    fn changes_are_reported_once() {
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
                throttling: BTreeSet::new(),
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
        let mut next = Monitor::continued(HashMap::from([(device.clone(), Condition::Lost)]));
        let mut seen = |reading| next.note(&Observation { device: device.clone(), reading }).map(|event| event.incident);
        assert_eq!([seen(lost()), seen(fine())], [None, Some(Incident::Back)], "the loss is known already");
    }
}
