//! Counters of one device, and which device they are of.

use std::time::{Duration, Instant};

use carma_core::Fraction;
use serde::Serialize;

use super::fields::Field;
use crate::identity::DeviceUuid;

/// Counters older than this say nothing about now.
pub const STALE: Duration = Duration::from_secs(5);
/// DCGM's number for "no value" and all above it: reasons why there is none.
const BLANK: f64 = 140_737_488_355_328.0;

/// A rate of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(transparent)]
pub struct BytesPerSecond(pub u64);

/// What a GPU or an instance was doing, as far as its source tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// GRACT: time that any engine was busy.
    pub gract: Option<Fraction>,
    /// SMACT: time that multiprocessors had work.
    pub smact: Option<Fraction>,
    /// SMOCC: warps resident on multiprocessors.
    pub smocc: Option<Fraction>,
    /// TENSO: time that the tensor cores were busy.
    pub tensor: Option<Fraction>,
    /// DRAMA: time that the memory was read or written.
    pub drama: Option<Fraction>,
    /// Time that the FP64 pipes were busy.
    pub fp64: Option<Fraction>,
    /// Time that the FP32 pipes were busy.
    pub fp32: Option<Fraction>,
    /// Time that the FP16 pipes were busy.
    pub fp16: Option<Fraction>,
    /// Sent over PCIe.
    pub pcie_tx: Option<BytesPerSecond>,
    /// Received over PCIe.
    pub pcie_rx: Option<BytesPerSecond>,
    /// Sent over NVLink.
    pub nvlink_tx: Option<BytesPerSecond>,
    /// Received over NVLink.
    pub nvlink_rx: Option<BytesPerSecond>,
    /// When they were read.
    #[serde(skip)]
    pub at: Instant,
}

impl Counters {
    /// None yet.
    pub const fn new(at: Instant) -> Self {
        Self {
            gract: None,
            smact: None,
            smocc: None,
            tensor: None,
            drama: None,
            fp64: None,
            fp32: None,
            fp16: None,
            pcie_tx: None,
            pcie_rx: None,
            nvlink_tx: None,
            nvlink_rx: None,
            at,
        }
    }

    /// Takes a field's value; values that stand for none, and fields that are no counters, change nothing.
    pub fn set(&mut self, field: &Field, value: f64) {
        if !(0.0..BLANK).contains(&value) {
            return;
        }
        let (fraction, rate) = (Some(Fraction::clamped(value)), Some(BytesPerSecond(value as u64)));
        match field.id {
            1001 => self.gract = fraction,
            1002 => self.smact = fraction,
            1003 => self.smocc = fraction,
            1004 => self.tensor = fraction,
            1005 => self.drama = fraction,
            1006 => self.fp64 = fraction,
            1007 => self.fp32 = fraction,
            1008 => self.fp16 = fraction,
            1009 => self.pcie_tx = rate,
            1010 => self.pcie_rx = rate,
            1011 => self.nvlink_tx = rate,
            1012 => self.nvlink_rx = rate,
            _ => {}
        }
    }

    /// Whether there is no counter at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::new(self.at)
    }

    /// Whether they still say something about now.
    pub fn is_fresh(&self) -> bool {
        self.at.elapsed() < STALE
    }
}

/// A GPU or a part of it as its counters are told apart: instances have numbers of their own only within their GPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unit {
    /// The GPU.
    pub gpu: DeviceUuid,
    /// The number of the GPU instance, where it is one.
    pub instance: Option<u32>,
}

/// A device whose counters are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// What it is asked by.
    pub uuid: DeviceUuid,
    /// What it is to the sources.
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
    use super::super::fields::by_id;
    use super::*;

    #[test]
    fn values_that_stand_for_none_are_none() {
        let mut counters = Counters::new(Instant::now());
        let smact = by_id(1002).unwrap();
        for blank in [f64::NAN, -1.0, BLANK, BLANK + 3.0, 9_223_372_036_854_775_792.0, f64::INFINITY] {
            counters.set(smact, blank);
        }
        counters.set(by_id(155).unwrap(), 250.0);
        assert!(counters.is_empty());
        // Rounding in the driver gives a little more than all.
        counters.set(smact, 1.001);
        assert_eq!(counters.smact, Some(Fraction::ONE));
        counters.set(by_id(1009).unwrap(), 1.5e9);
        assert_eq!(counters.pcie_tx, Some(BytesPerSecond(1_500_000_000)));
    }
}
