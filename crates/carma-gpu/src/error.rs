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
    /// The library is of another version than the driver in the kernel.
    #[error("NVIDIA's library and the driver in the kernel are of different versions, as after an update: restart the machine")]
    Mismatch,
    /// The system gives us no thread to call the driver on.
    #[error("no thread for calls to the driver: {0}")]
    NoThread(std::io::Error),
    /// A GPU fell off the bus, or needs a reset.
    #[error("{0} is lost: it fell off the bus or needs a reset")]
    Lost(DeviceUuid),
    /// There is no such device.
    #[error("there is no device {0}")]
    NoSuchDevice(DeviceUuid),
    /// A call did not answer in time.
    #[error("no answer from the driver within {} ms ({call})", after.as_millis())]
    TimedOut {
        /// What was asked.
        call: &'static str,
        /// The deadline that passed.
        after: Duration,
    },
    /// An earlier call has not answered yet, so nothing more is asked of that device.
    #[error("the driver has been hanging for {:.1} s ({call})", since.as_secs_f64())]
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

/// What a GPU or its driver may lack, or keep from us.
pub(crate) fn offered<T>(answer: Result<T, NvmlError>) -> Result<Option<T>, NvmlError> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(
            NvmlError::NotSupported
            | NvmlError::FailedToLoadSymbol(_)
            | NvmlError::FunctionNotFound
            | NvmlError::NoData
            | NvmlError::NoPermission,
        ) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What we can do without. Sensors fail in many ways, and drivers differ in how they refuse instances what only whole GPUs have; none of that
/// may hide the rest, unless the GPU or the driver itself is gone.
pub(crate) fn sensed<T>(answer: Result<T, NvmlError>) -> Result<Option<T>, NvmlError> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(error @ (NvmlError::GpuLost | NvmlError::ResetRequired | NvmlError::Uninitialized | NvmlError::DriverNotLoaded)) => Err(error),
        Err(_) => Ok(None),
    }
}
