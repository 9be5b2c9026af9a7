//! Counters of one device, and the identity of that device.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use carma_core::{Fraction, Utilisation};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::fields::{COUNTERS, Field, Measure, profiling};
use crate::identity::DeviceUuid;

/// Older counters are stale.
pub const STALE: Duration = Duration::from_secs(5);
/// DCGM's number for "no value"; numbers above it are reasons for that.
const BLANK: f64 = 140_737_488_355_328.0;

/// The profiling counters of a GPU or an instance, as far as its source has them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counters {
    /// In the order of [`profiling`]: shares from 0 to 1, or bytes a second.
    values: [Option<f64>; COUNTERS],
    /// When they were read.
    pub at: Instant,
}

impl Counters {
    /// None yet.
    pub const fn new(at: Instant) -> Self {
        Self { values: [None; COUNTERS], at }
    }

    /// Sets a field's value. Ignores placeholder values, and fields that are no profiling counters.
    pub fn set(&mut self, field: &Field, value: f64) {
        if !(0.0..BLANK).contains(&value) {
            return;
        }
        // Rounding in the driver gives slightly more than 1.
        let value = if field.measure == Measure::Fraction { value.min(1.0) } else { value.floor() };
        if let Some(place) = place(field) {
            self.values[place] = Some(value);
        }
    }

    /// A field's value.
    pub fn get(&self, field: &Field) -> Option<f64> {
        place(field).and_then(|place| self.values[place])
    }

    /// The monitored metrics among them.
    pub fn utilisation(&self) -> Utilisation {
        let metrics = profiling().iter().zip(self.values).filter_map(|(field, value)| Some((field.counter.as_ref()?.metric?, value)));
        metrics.fold(Utilisation::NONE, |all, (metric, value)| all.with(metric, value.map(Fraction::clamped)))
    }

    /// Whether there is no counter.
    pub fn is_empty(&self) -> bool {
        self.values == [None; COUNTERS]
    }

    /// Whether they are recent enough to be valid now.
    pub fn is_fresh(&self) -> bool {
        self.at.elapsed() < STALE
    }
}

/// The place of a profiling counter's value.
fn place(field: &Field) -> Option<usize> {
    profiling().iter().position(|known| known.id == field.id)
}

impl Serialize for Counters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(COUNTERS))?;
        for (field, value) in profiling().iter().zip(self.values) {
            let Some(counter) = &field.counter else { continue };
            if field.measure == Measure::Fraction {
                map.serialize_entry(counter.name, &value)?;
            } else {
                map.serialize_entry(counter.name, &value.map(|rate| rate as u64))?;
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Counters {
    /// They count as read now.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let values = BTreeMap::<String, Option<f64>>::deserialize(deserializer)?;
        let mut counters = Self::new(Instant::now());
        for field in profiling() {
            let value = field.counter.as_ref().and_then(|counter| *values.get(counter.name)?);
            value.inspect(|value| counters.set(field, *value));
        }
        Ok(counters)
    }
}

/// A GPU or a MIG instance, as sources of counters identify it: the number of an instance is unique within its GPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Unit {
    /// The GPU.
    pub gpu: DeviceUuid,
    /// The number of the GPU instance, if it is one.
    pub instance: Option<u32>,
}

/// A device with wanted counters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Its UUID.
    pub uuid: DeviceUuid,
    /// Its identity for the sources.
    pub unit: Unit,
}

impl Target {
    /// A whole GPU.
    pub fn gpu(uuid: DeviceUuid) -> Self {
        Self { unit: Unit { gpu: uuid.clone(), instance: None }, uuid }
    }

    /// A MIG instance: its own UUID, its GPU's, and the number of its GPU instance.
    pub const fn instance(uuid: DeviceUuid, gpu: DeviceUuid, number: u32) -> Self {
        Self { uuid, unit: Unit { gpu, instance: Some(number) } }
    }
}

#[cfg(test)]
mod tests {
    use carma_core::Metric;

    use super::super::fields::by_id;
    use super::*;

    #[test]
    fn placeholder_values_are_none() {
        let mut counters = Counters::new(Instant::now());
        let smact = by_id(1002).unwrap();
        for blank in [f64::NAN, -1.0, BLANK, BLANK + 3.0, 9_223_372_036_854_775_792.0, f64::INFINITY] {
            counters.set(smact, blank);
        }
        counters.set(by_id(155).unwrap(), 250.0);
        assert!(counters.is_empty());
        counters.set(smact, 1.001);
        assert_eq!(counters.utilisation(), Utilisation::of([(Metric::Smact, 1.0)]));
        counters.set(by_id(1009).unwrap(), 1.5e9);
        assert_eq!(counters.get(by_id(1009).unwrap()), Some(1.5e9));
        let json = serde_json::to_value(counters).unwrap();
        assert_eq!((&json["smact"], &json["pcie_tx"], &json["gract"]), (&1.0.into(), &1_500_000_000.into(), &serde_json::Value::Null));
    }
}
