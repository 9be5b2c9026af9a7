//! The driver: its library, opened once, and a lane of calls for each device.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use crate::error::DriverError;
use crate::identity::DeviceUuid;
use crate::lane::{Lane, Pending};

/// Long enough for a busy driver, short enough to keep watching the other GPUs.
pub const DEADLINE: Duration = Duration::from_secs(2);

/// The driver of this machine's GPUs.
///
/// Each device has a thread of its own for its calls, so that one that hangs leaves the others in sight. The library is never unloaded: a call
/// that hangs may come back to it at any time.
#[derive(Debug)]
pub struct Driver {
    nvml: &'static Nvml,
    deadline: Duration,
    system: Lane<()>,
    devices: Mutex<HashMap<DeviceUuid, Arc<Lane<Handle>>>>,
}

/// A device's handle, looked up when it is first wanted and again after it was lost.
#[derive(Debug)]
struct Handle {
    nvml: &'static Nvml,
    uuid: DeviceUuid,
    device: Option<Device<'static>>,
}

impl Driver {
    /// Opens the driver's library: the one at this path, or the system's.
    pub fn open(library: Option<&Path>, deadline: Duration) -> Result<Self, DriverError> {
        let library: Option<PathBuf> = library.map(Path::to_owned);
        let thread = |error: std::io::Error| DriverError::NoLibrary(format!("no thread for its calls: {error}"));
        let system = Lane::new("driver", || ()).map_err(thread)?;
        let nvml = system.call("nvmlInit", deadline, move |()| {
            let mut builder = Nvml::builder();
            if let Some(library) = &library {
                builder.lib_path(OsStr::new(library));
            }
            builder.init()
        })?;
        let nvml = nvml.map_err(|error| match error {
            NvmlError::LibloadingError(error) => DriverError::NoLibrary(error.to_string()),
            error => DriverError::NoDriver(error),
        })?;
        Ok(Self { nvml: Box::leak(Box::new(nvml)), deadline, system, devices: Mutex::default() })
    }

    /// How many GPUs the driver knows of.
    pub fn count(&self) -> Result<u32, DriverError> {
        self.system("nvmlDeviceGetCount", Nvml::device_count)
    }

    /// Makes calls about no device in particular.
    pub(crate) fn system<T: Send + 'static>(
        &self,
        call: &'static str,
        act: impl FnOnce(&'static Nvml) -> Result<T, NvmlError> + Send + 'static,
    ) -> Result<T, DriverError> {
        let nvml = self.nvml;
        self.system.call(call, self.deadline, move |()| act(nvml))?.map_err(|error| DriverError::from_answer(call, None, error))
    }

    /// Makes calls about one device, a GPU or a MIG instance.
    pub(crate) fn device<T: Send + 'static>(
        &self,
        uuid: &DeviceUuid,
        call: &'static str,
        act: impl FnOnce(&mut Device<'static>) -> Result<T, NvmlError> + Send + 'static,
    ) -> Result<T, DriverError> {
        self.device_within(self.deadline, uuid, call, act)
    }

    /// The same with another deadline, for what takes the driver long.
    pub(crate) fn device_within<T: Send + 'static>(
        &self,
        deadline: Duration,
        uuid: &DeviceUuid,
        call: &'static str,
        act: impl FnOnce(&mut Device<'static>) -> Result<T, NvmlError> + Send + 'static,
    ) -> Result<T, DriverError> {
        let answer = self.lane(uuid)?.call(call, deadline, move |handle| handle.with(act))?;
        answer.map_err(|error| DriverError::from_answer(call, Some(uuid), error))
    }

    /// Begins calls about one device, so that several devices can be asked at once.
    pub(crate) fn begin<T: Send + 'static>(
        &self,
        uuid: &DeviceUuid,
        call: &'static str,
        act: impl FnOnce(&mut Device<'static>) -> Result<T, NvmlError> + Send + 'static,
    ) -> Result<DeviceCall<T>, DriverError> {
        let pending = self.lane(uuid)?.begin(call, self.deadline, move |handle| handle.with(act))?;
        Ok(DeviceCall { uuid: uuid.clone(), call, pending })
    }

    fn lane(&self, uuid: &DeviceUuid) -> Result<Arc<Lane<Handle>>, DriverError> {
        let mut lanes = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = lanes.get(uuid) {
            return Ok(Arc::clone(lane));
        }
        let handle = Handle { nvml: self.nvml, uuid: uuid.clone(), device: None };
        let lane = Lane::new("gpu", move || handle).map_err(|error| DriverError::NoLibrary(format!("no thread for its calls: {error}")))?;
        let lane = Arc::new(lane);
        lanes.insert(uuid.clone(), Arc::clone(&lane));
        Ok(lane)
    }
}

/// A call about a device whose answer is still to come.
#[derive(Debug)]
pub(crate) struct DeviceCall<T> {
    uuid: DeviceUuid,
    call: &'static str,
    pending: Pending<Result<T, NvmlError>>,
}

impl<T> DeviceCall<T> {
    /// The answer, if it comes before the deadline.
    pub(crate) fn wait(self) -> Result<T, DriverError> {
        self.pending.wait()?.map_err(|error| DriverError::from_answer(self.call, Some(&self.uuid), error))
    }
}

impl Handle {
    fn with<T>(&mut self, act: impl FnOnce(&mut Device<'static>) -> Result<T, NvmlError>) -> Result<T, NvmlError> {
        let mut device = match self.device.take() {
            Some(device) => device,
            None => self.nvml.device_by_uuid(self.uuid.as_str())?,
        };
        let answer = act(&mut device);
        // A device that is lost comes back under another handle.
        let stale = matches!(answer, Err(NvmlError::GpuLost | NvmlError::ResetRequired | NvmlError::InvalidArg | NvmlError::Uninitialized));
        self.device = (!stale).then_some(device);
        answer
    }
}
