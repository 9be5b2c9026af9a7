//! Why a GPU runs below its requested clocks.

use std::collections::BTreeSet;
use std::fmt;

use nvml_wrapper::Device;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::error::NvmlError;
use serde::{Deserialize, Serialize};

use crate::error::sensed;

/// Why a GPU runs below its clocks, in three kinds. An idle GPU, set clocks and synchronised clocks are no reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Throttling {
    /// It draws as much power as it may, or the server's power supply asks for less.
    Power,
    /// It is too hot.
    Thermal,
    /// The hardware slows it down for another reason.
    Hardware,
}

impl Throttling {
    /// All reasons.
    pub const ALL: [Self; 3] = [Self::Power, Self::Thermal, Self::Hardware];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Power => "power",
            Self::Thermal => "thermal",
            Self::Hardware => "hardware",
        }
    }

    /// From the driver's bits.
    fn of(reasons: ThrottleReasons) -> BTreeSet<Self> {
        let thermal = ThrottleReasons::SW_THERMAL_SLOWDOWN | ThrottleReasons::HW_THERMAL_SLOWDOWN;
        let power = ThrottleReasons::SW_POWER_CAP | ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN;
        // The driver sets this bit also beside the two that name the reason.
        let explained = ThrottleReasons::HW_THERMAL_SLOWDOWN | ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN;
        let hardware = reasons.contains(ThrottleReasons::HW_SLOWDOWN) && !reasons.intersects(explained);
        let kinds = [(Self::Power, reasons.intersects(power)), (Self::Thermal, reasons.intersects(thermal)), (Self::Hardware, hardware)];
        kinds.into_iter().filter(|(_, applies)| *applies).map(|(kind, _)| kind).collect()
    }
}

impl fmt::Display for Throttling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The present reasons; unset if the device does not report them, as MIG instances.
pub(crate) fn throttling(device: &Device<'_>) -> Result<Option<BTreeSet<Throttling>>, NvmlError> {
    Ok(sensed(device.current_throttle_reasons())?.map(Throttling::of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slowdown_of_the_hardware_counts_by_its_reason() {
        let of = |bits: u64| Throttling::of(ThrottleReasons::from_bits_truncate(bits)).into_iter().collect::<Vec<_>>();
        assert_eq!(of(0), []);
        assert_eq!(of(1 | 2 | 16), [], "idle, clocks that were set, clocks of a group");
        assert_eq!((of(4), of(0x20), of(8)), (vec![Throttling::Power], vec![Throttling::Thermal], vec![Throttling::Hardware]));
        assert_eq!((of(8 | 0x40), of(8 | 0x80)), (vec![Throttling::Thermal], vec![Throttling::Power]));
        assert_eq!(of(4 | 8 | 0x40), [Throttling::Power, Throttling::Thermal]);
    }
}
