//! GPUs that are there and not used, and why.

use std::fmt;

use nvml_wrapper::error::NvmlError;
use serde::Serialize;

use crate::allocation::Exclusion;
use crate::error::DriverError;
use crate::identity::DeviceUuid;

/// A present GPU that is not used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOut {
    /// The driver's number of it.
    pub index: u32,
    /// Its UUID, if it answers.
    pub uuid: Option<DeviceUuid>,
    /// Its name, if it answers.
    pub name: Option<String>,
    /// Why.
    pub reason: Unfit,
}

/// Why a GPU is not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unfit {
    /// It only drives a display.
    DisplayOnly,
    /// Its compute mode prohibits all processes.
    ComputeProhibited,
    /// It fell off the bus, or needs a reset.
    Lost,
    /// It does not answer correctly.
    Silent(String),
    /// We may not use it.
    Excluded(Exclusion),
    /// The manager is told to leave it alone: `manager.gpus.ignore`.
    Ignored,
}

impl Unfit {
    /// Whether the GPU or its driver is broken. The other reasons come from the configuration or the environment.
    pub const fn is_fault(&self) -> bool {
        matches!(self, Self::Lost | Self::Silent(_))
    }

    pub(crate) fn by(error: &DriverError) -> Self {
        match error {
            DriverError::Lost(_) | DriverError::Call { error: NvmlError::GpuLost | NvmlError::ResetRequired, .. } => Self::Lost,
            DriverError::NoPermission { .. } => Self::Excluded(Exclusion::CannotBeOpened),
            error => Self::Silent(error.to_string()),
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DisplayOnly => f.write_str("for a display only"),
            Self::ComputeProhibited => f.write_str("compute mode is PROHIBITED"),
            Self::Lost => f.write_str("fell off the bus or needs a reset"),
            Self::Silent(why) => f.write_str(why),
            Self::Excluded(why) => why.fmt(f),
            Self::Ignored => f.write_str("ignored (manager.gpus.ignore)"),
        }
    }
}
