//! Errors of the driver.

use std::time::Duration;

use nvml_wrapper::error::NvmlError;
use thiserror::Error;

use crate::identity::DeviceUuid;

/// An error of the driver, or in reaching it.
#[derive(Debug, Error)]
pub enum DriverError {
    /// There is no NVML library.
    #[error("NVIDIA's library libnvidia-ml.so.1 was not found: {0}")]
    NoLibrary(String),
    /// The library exists, but finds no driver.
    #[error("NVIDIA's library finds no driver: {0}")]
    NoDriver(NvmlError),
    /// The library is of another version than the driver in the kernel.
    #[error("NVIDIA's library and the kernel driver have different versions, probably after an update: restart the machine")]
    Mismatch,
    /// The system gives us no thread to call the driver on.
    #[error("cannot start a thread for driver calls: {0}")]
    NoThread(std::io::Error),
    /// An agent on another server reports this error.
    #[error("{0}")]
    Reported(String),
    /// A GPU fell off the bus, or needs a reset.
    #[error("{0} is lost: it fell off the bus or needs a reset")]
    Lost(DeviceUuid),
    /// There is no such device.
    #[error("device {0} does not exist")]
    NoSuchDevice(DeviceUuid),
    /// A call did not answer in time.
    #[error("no answer from the driver within {} ms ({call})", after.as_millis())]
    TimedOut {
        /// The call.
        call: &'static str,
        /// The deadline that passed.
        after: Duration,
    },
    /// An earlier call has not returned yet, so no other call is made on that device.
    #[error("the driver has been hanging for {:.1} s ({call})", since.as_secs_f64())]
    Hanging {
        /// The pending call.
        call: &'static str,
        /// Its age.
        since: Duration,
    },
    /// We may not.
    #[error("{call} needs more rights: {hint}")]
    NoPermission {
        /// The call.
        call: &'static str,
        /// The remedy.
        hint: &'static str,
    },
    /// The GPU or the driver does not offer it.
    #[error("{call} is not supported by this GPU or driver")]
    NotSupported {
        /// The call.
        call: &'static str,
    },
    /// Any other error.
    #[error("{call}: {error}")]
    Call {
        /// The call.
        call: &'static str,
        /// The driver's error.
        error: NvmlError,
    },
}

impl DriverError {
    /// From the error of a call about a device.
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

/// A value that a GPU or its driver may lack, or deny to us.
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

/// An optional value. Sensors fail in many ways, and drivers refuse instances the values of whole GPUs in different ways; this must not
/// hide the other values, unless the GPU or the driver itself is gone.
pub(crate) fn sensed<T>(answer: Result<T, NvmlError>) -> Result<Option<T>, NvmlError> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(error @ (NvmlError::GpuLost | NvmlError::ResetRequired | NvmlError::Uninitialized | NvmlError::DriverNotLoaded)) => Err(error),
        Err(_) => Ok(None),
    }
}
