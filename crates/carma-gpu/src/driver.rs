//! The driver: its library, opened once, and a lane of calls for each device.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use crate::allocation::Limits;
use crate::error::DriverError;
use crate::identity::DeviceUuid;
use crate::lane::{Lane, Pending, held};
use crate::limit_calls::Calls;

/// Long enough for a busy driver, short enough to keep watching the other GPUs.
pub const DEADLINE: Duration = Duration::from_secs(2);

/// The driver of this machine's GPUs.
///
/// Each device has its own thread for its calls, so that one that hangs does not block the others. The library is never unloaded: a hanging
/// call may return into it at any time.
#[derive(Debug)]
pub struct Driver {
    nvml: &'static Nvml,
    deadline: Duration,
    limits: Limits,
    /// The name or path that the library was loaded by.
    library: OsString,
    limit_calls: OnceLock<Option<Calls>>,
    system: Lane<()>,
    several: Lane<()>,
    /// By number, while the UUID is not known yet: the call for it can hang, too.
    numbers: Lanes<u32, ()>,
    devices: Lanes<DeviceUuid, Handle>,
}

/// Lanes by the device of their calls; each starts with its first call.
type Lanes<K, S> = Mutex<HashMap<K, Arc<Lane<S>>>>;

/// A device's handle, looked up on first use and again after it was lost.
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
        let loaded = library.clone().map_or_else(|| OsString::from("libnvidia-ml.so.1"), PathBuf::into_os_string);
        let lane = |name| Lane::new(name, || ()).map_err(DriverError::NoThread);
        let (system, several) = (lane("driver")?, lane("gpus")?);
        let nvml = system.call("nvmlInit", deadline, move |()| {
            let mut builder = Nvml::builder();
            if let Some(library) = &library {
                builder.lib_path(OsStr::new(library));
            }
            builder.init()
        })?;
        let nvml = nvml.map_err(|error| match error {
            NvmlError::LibloadingError(error) => DriverError::NoLibrary(error.to_string()),
            NvmlError::LibRmVersionMismatch => DriverError::Mismatch,
            error => DriverError::NoDriver(error),
        })?;
        let (numbers, devices) = (Mutex::default(), Mutex::default());
        let nvml: &'static Nvml = Box::leak(Box::new(nvml));
        let (limits, limit_calls) = (Limits::default(), OnceLock::new());
        Ok(Self { nvml, deadline, limits, library: loaded, limit_calls, system, several, numbers, devices })
    }

    /// Leaves the GPUs out of its inventory that are not for this process.
    #[must_use]
    pub fn limited(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The limits of its inventory.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The calls about memory limits; unset if the library does not have them.
    pub(crate) fn limit_calls(&self) -> Option<Calls> {
        *self.limit_calls.get_or_init(|| Calls::find(&self.library))
    }

    /// The name or path that the library was loaded by.
    pub(crate) fn library(&self) -> &OsStr {
        &self.library
    }

    /// The number of GPUs in the driver.
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

    /// Makes calls about several devices, on a separate lane, because any of these devices may hang.
    pub(crate) fn several_devices<T: Send + 'static>(
        &self,
        call: &'static str,
        act: impl FnOnce(&'static Nvml) -> Result<T, NvmlError> + Send + 'static,
    ) -> Result<T, DriverError> {
        let nvml = self.nvml;
        self.several.call(call, self.deadline, move |()| act(nvml))?.map_err(|error| DriverError::from_answer(call, None, error))
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

    /// The same with another deadline, for slow calls.
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

    /// Begins calls about one device, so that several devices can be queried in parallel.
    pub(crate) fn begin<T: Send + 'static>(
        &self,
        uuid: &DeviceUuid,
        call: &'static str,
        act: impl FnOnce(&mut Device<'static>) -> Result<T, NvmlError> + Send + 'static,
    ) -> Result<DeviceCall<T>, DriverError> {
        let pending = self.lane(uuid)?.begin(call, self.deadline, move |handle| handle.with(act))?;
        Ok(DeviceCall { uuid: Some(uuid.clone()), call, pending })
    }

    /// Begins calls about the GPU of this number, as the driver counts now.
    pub(crate) fn begin_numbered<T: Send + 'static>(
        &self,
        number: u32,
        call: &'static str,
        act: impl FnOnce(&Device<'static>) -> Result<T, NvmlError> + Send + 'static,
    ) -> Result<DeviceCall<T>, DriverError> {
        let nvml = self.nvml;
        let pending = lane(&self.numbers, &number, || ())?.begin(call, self.deadline, move |()| act(&nvml.device_by_index(number)?))?;
        Ok(DeviceCall { uuid: None, call, pending })
    }

    fn lane(&self, uuid: &DeviceUuid) -> Result<Arc<Lane<Handle>>, DriverError> {
        let handle = Handle { nvml: self.nvml, uuid: uuid.clone(), device: None };
        lane(&self.devices, uuid, move || handle)
    }
}

fn lane<K: Eq + Hash + Clone, S: 'static>(
    lanes: &Lanes<K, S>,
    key: &K,
    state: impl FnOnce() -> S + Send + 'static,
) -> Result<Arc<Lane<S>>, DriverError> {
    let mut lanes = held(lanes);
    if let Some(lane) = lanes.get(key) {
        return Ok(Arc::clone(lane));
    }
    let lane = Arc::new(Lane::new("gpu", state).map_err(DriverError::NoThread)?);
    lanes.insert(key.clone(), Arc::clone(&lane));
    Ok(lane)
}

/// A pending call about a device.
#[derive(Debug)]
pub(crate) struct DeviceCall<T> {
    uuid: Option<DeviceUuid>,
    call: &'static str,
    pending: Pending<Result<T, NvmlError>>,
}

impl<T> DeviceCall<T> {
    /// The answer, if it comes before the deadline.
    pub(crate) fn wait(self) -> Result<T, DriverError> {
        self.pending.wait()?.map_err(|error| DriverError::from_answer(self.call, self.uuid.as_ref(), error))
    }
}

impl Handle {
    fn with<T>(&mut self, act: impl FnOnce(&mut Device<'static>) -> Result<T, NvmlError>) -> Result<T, NvmlError> {
        let mut device = match self.device.take() {
            Some(device) => device,
            None => find(self.nvml, &self.uuid)?,
        };
        let answer = act(&mut device);
        // A lost device returns under another handle.
        let stale = matches!(answer, Err(NvmlError::GpuLost | NvmlError::ResetRequired | NvmlError::InvalidArg | NvmlError::Uninitialized));
        self.device = (!stale).then_some(device);
        answer
    }
}

/// Finds a device. A lost GPU may keep the driver from finding another by its UUID, so this goes through all GPUs.
pub(crate) fn find(nvml: &'static Nvml, uuid: &DeviceUuid) -> Result<Device<'static>, NvmlError> {
    let refused = match nvml.device_by_uuid(uuid.as_str()) {
        Err(error @ (NvmlError::GpuLost | NvmlError::ResetRequired | NvmlError::Unknown)) => error,
        answer => return answer,
    };
    let is_meant = |device: &Device<'static>| device.uuid().is_ok_and(|known| known == uuid.as_str());
    let gpus = (0..nvml.device_count()?).filter_map(|number| nvml.device_by_index(number).ok());
    let parts = |gpu: Device<'static>| if uuid.is_instance() { instances(&gpu) } else { vec![gpu] };
    gpus.flat_map(parts).find(is_meant).ok_or(refused)
}

/// The MIG instances of a GPU that the driver lists.
pub(crate) fn instances<'a>(gpu: &Device<'a>) -> Vec<Device<'a>> {
    (0..gpu.mig_device_count().unwrap_or_default()).filter_map(|number| gpu.mig_device_by_index(number).ok()).collect()
}
