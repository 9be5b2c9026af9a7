//! The driver that a machine plays: its versions, and what only later drivers have.

use std::str::FromStr;

/// A version of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DriverVersion {
    /// 575, with CUDA 12.9.
    #[default]
    R575,
    /// 615, with CUDA 13.4: it enforces memory limits of control groups.
    R615,
}

/// There is no such version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown emulated driver {0:?}: give 575 or 615")]
pub struct UnknownDriver(String);

impl DriverVersion {
    /// From its number in the state; unknown numbers are the default.
    pub(crate) const fn from_number(number: u32) -> Self {
        match number {
            615 => Self::R615,
            _ => Self::R575,
        }
    }

    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::R575 => 575,
            Self::R615 => 615,
        }
    }

    /// The version of the driver, as tools show it.
    pub(crate) const fn driver(self) -> &'static str {
        match self {
            Self::R575 => "575.57.08",
            Self::R615 => "615.36.02",
        }
    }

    /// The version of its library.
    pub(crate) const fn nvml(self) -> &'static str {
        match self {
            Self::R575 => "12.575.57.08",
            Self::R615 => "13.615.36.02",
        }
    }

    /// The version of CUDA, as 12090 for 12.9.
    pub(crate) const fn cuda(self) -> i32 {
        match self {
            Self::R575 => 12_090,
            Self::R615 => 13_040,
        }
    }

    /// Whether it enforces memory limits of control groups.
    pub(crate) const fn limits_memory(self) -> bool {
        matches!(self, Self::R615)
    }
}

impl FromStr for DriverVersion {
    type Err = UnknownDriver;

    fn from_str(text: &str) -> Result<Self, UnknownDriver> {
        match text.split('.').next() {
            Some("575") => Ok(Self::R575),
            Some("615") => Ok(Self::R615),
            _ => Err(UnknownDriver(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_kept() {
        for version in [DriverVersion::R575, DriverVersion::R615] {
            assert_eq!(version.driver().parse(), Ok(version));
            assert_eq!(DriverVersion::from_number(version.number()), version);
            assert!(version.nvml().ends_with(version.driver()));
        }
        assert!("570".parse::<DriverVersion>().is_err());
    }
}
