//! What goes wrong between us and the driver.

use std::time::Duration;

use nvml_wrapper::error::NvmlError;
use thiserror::Error;

use crate::identity::DeviceUuid;

/// An error of the driver, or in reaching it.
#[derive(Debug, Error)]
pub enum DriverError {
    /// There is no NVML library.
    #[error("NVIDIA's library libnvidia-ml.so.1 is not there: {0}")]
    NoLibrary(String),
    /// The library is there, and finds no driver.
    #[error("NVIDIA's library is there but finds no driver: {0}")]
    NoDriver(NvmlError),
    /// A GPU fell off the bus, or needs a reset.
    #[error("{0} is lost: it fell off the bus or needs a reset")]
    Lost(DeviceUuid),
    /// There is no such device.
    #[error("there is no device {0}")]
    NoSuchDevice(DeviceUuid),
    /// A call did not answer in time.
    #[error("the driver did not answer {call} within {} ms", after.as_millis())]
    TimedOut {
        /// What was asked.
        call: &'static str,
        /// The deadline that passed.
        after: Duration,
    },
    /// An earlier call has not answered yet, so nothing more is asked of that device.
    #[error("the driver has been hanging in {call} for {:.1} s", since.as_secs_f64())]
    Hanging {
        /// What was asked then.
        call: &'static str,
        /// How long ago.
        since: Duration,
    },
    /// We may not.
    #[error("{call} needs more rights: {hint}")]
    NoPermission {
        /// What was asked.
        call: &'static str,
        /// What would help.
        hint: &'static str,
    },
    /// The GPU or the driver does not offer it.
    #[error("{call} is not supported by this GPU or driver")]
    NotSupported {
        /// What was asked.
        call: &'static str,
    },
    /// Any other answer.
    #[error("{call}: {error}")]
    Call {
        /// What was asked.
        call: &'static str,
        /// What was answered.
        error: NvmlError,
    },
}

impl DriverError {
    /// From the answer to a call about a device.
    pub(crate) fn from_answer(call: &'static str, device: Option<&DeviceUuid>, error: NvmlError) -> Self {
        match (error, device) {
            (NvmlError::GpuLost | NvmlError::ResetRequired, Some(device)) => Self::Lost(device.clone()),
            (NvmlError::NotFound, Some(device)) => Self::NoSuchDevice(device.clone()),
            (NvmlError::NoPermission, _) => Self::NoPermission { call, hint: "run it as root" },
            (NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound, _) => Self::NotSupported { call },
            (error, _) => Self::Call { call, error },
        }
    }
}
