//! Events of the driver: Xid and ECC errors, changed instances.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::event::EventData;
use nvml_wrapper::{Device, EventSet, Nvml};
use serde::{Deserialize, Serialize};

use crate::driver::{DeviceCall, Driver, find};
use crate::error::DriverError;
use crate::identity::DeviceUuid;
use crate::xid::{Blame, Xid};

/// Duration of one wait for events; a dropped watch ends within this.
const WAIT: Duration = Duration::from_millis(500);

/// Something happened to a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuEvent {
    /// The device; unset if the driver does not report it.
    pub device: Option<DeviceUuid>,
    /// The incident.
    pub incident: Incident,
}

/// An incident on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Incident {
    /// The driver reported an error by number.
    Xid(Xid),
    /// An error in memory was corrected.
    EccCorrected,
    /// An error in memory could not be corrected.
    EccUncorrected,
    /// It fell off the bus, or needs a reset.
    Lost,
    /// It answers again.
    Back,
    /// A call about it has hung for longer than the deadline.
    Hanging,
    /// MIG instances were created or destroyed.
    InstancesChanged,
}

impl Incident {
    /// Whether it shows broken hardware or a broken driver. Errors of programs do not.
    pub fn is_fault(self) -> bool {
        match self {
            Self::Xid(xid) => matches!(xid.blame(), Blame::Gpu | Blame::Lost),
            Self::EccUncorrected | Self::Lost | Self::Hanging => true,
            Self::EccCorrected | Self::Back | Self::InstancesChanged => false,
        }
    }
}

impl fmt::Display for Incident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Xid(xid) => xid.fmt(f),
            Self::EccCorrected => f.write_str("an error in memory was corrected"),
            Self::EccUncorrected => f.write_str("an error in memory could not be corrected"),
            Self::Lost => f.write_str("lost: it fell off the bus or needs a reset"),
            Self::Back => f.write_str("back: it answers again"),
            Self::Hanging => f.write_str("its driver calls hang"),
            Self::InstancesChanged => f.write_str("MIG instances came or went"),
        }
    }
}

/// A watch over the driver's events, on its own thread. It ends when this is dropped.
#[derive(Debug)]
pub struct EventWatch {
    events: Receiver<GpuEvent>,
    /// GPUs without event support.
    pub silent: Vec<DeviceUuid>,
    ended: Arc<AtomicBool>,
}

impl EventWatch {
    /// The next event, if one arrives within this time.
    pub fn next(&self, within: Duration) -> Option<GpuEvent> {
        self.events.recv_timeout(within).ok()
    }

    /// Events since the last call.
    pub fn recent(&self) -> impl Iterator<Item = GpuEvent> {
        self.events.try_iter()
    }
}

impl Drop for EventWatch {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

impl Driver {
    /// Watches these GPUs for events of the driver. A GPU that was lost reports again to watches that start after it is back.
    pub fn watch(&self, gpus: &[DeviceUuid]) -> Result<EventWatch, DriverError> {
        // Each GPU is queried by itself first: one that hangs must not keep the others from being watched.
        let ask = |gpu| self.begin(gpu, "nvmlDeviceGetSupportedEventTypes", |device| device.supported_event_types());
        let asked: Vec<_> = gpus.iter().map(|gpu| (gpu.clone(), ask(gpu))).collect();
        let wanted: Vec<DeviceUuid> =
            asked.into_iter().filter_map(|(gpu, call)| call.and_then(DeviceCall::wait).ok().map(|_| gpu)).collect();
        let mute = gpus.iter().filter(|gpu| !wanted.contains(gpu)).cloned();
        let (watched, mut silent) = self.several_devices("nvmlDeviceRegisterEvents", {
            let wanted = wanted.clone();
            move |nvml| registered(nvml, wanted)
        })?;
        silent.extend(mute);
        let (sender, events) = channel();
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        let watch = move || {
            // Until the receiver is dropped.
            while !end.load(Ordering::Relaxed) && watched.forward(&sender) {}
        };
        thread::Builder::new().name("gpu events".to_owned()).spawn(watch).map_err(DriverError::NoThread)?;
        Ok(EventWatch { events, silent, ended })
    }
}

/// The GPUs of an event set.
struct Watched {
    set: EventSet<'static>,
    /// By the address of their handles: a lost GPU no longer reports its name.
    gpus: Vec<(usize, DeviceUuid)>,
}

fn address(device: &Device<'_>) -> usize {
    // SAFETY: the handle is compared, never used.
    #[expect(unsafe_code, reason = "events name a device by its handle only")]
    unsafe {
        device.handle().addr()
    }
}

/// A set with all GPUs that report events, and those that do not.
fn registered(nvml: &'static Nvml, mut gpus: Vec<DeviceUuid>) -> Result<(Watched, Vec<DeviceUuid>), NvmlError> {
    let wanted = EventTypes::CRITICAL_XID_ERROR
        | EventTypes::SINGLE_BIT_ECC_ERROR
        | EventTypes::DOUBLE_BIT_ECC_ERROR
        | EventTypes::MIG_CONFIG_CHANGE;
    let mut silent = Vec::new();
    // A failed registration invalidates the whole set, so this starts again without the GPU that failed.
    'retry: loop {
        let mut set = nvml.create_event_set()?;
        let mut watched = Vec::new();
        for place in 0..gpus.len() {
            let device = find(nvml, &gpus[place]);
            let types = device.as_ref().ok().and_then(|device| device.supported_event_types().ok()).unwrap_or(EventTypes::empty()) & wanted;
            let registered = match device {
                Ok(device) if !types.is_empty() => {
                    watched.push((address(&device), gpus[place].clone()));
                    device.register_events(types, set).map_err(|error| error.error)
                }
                Ok(_) => Err(NvmlError::NotSupported),
                Err(error) => Err(error),
            };
            let Ok(same) = registered else {
                silent.push(gpus.remove(place));
                continue 'retry;
            };
            set = same;
        }
        return Ok((Watched { set, gpus: watched }, silent));
    }
}

impl Watched {
    /// Waits for an event and forwards it; returns whether to continue.
    fn forward(&self, sender: &Sender<GpuEvent>) -> bool {
        match self.set.wait(WAIT.as_millis() as u32) {
            Ok(event) => self.translate(&event).into_iter().all(|event| sender.send(event).is_ok()),
            Err(NvmlError::Timeout) => true,
            // Samples detect a lost GPU. Here the driver does not report which it is, and repeats the error at once.
            Err(_) => {
                thread::sleep(WAIT);
                true
            }
        }
    }

    fn translate(&self, event: &EventData<'_>) -> Vec<GpuEvent> {
        let handle = address(&event.device);
        let device = self.gpus.iter().find(|(address, _)| *address == handle).map(|(_, uuid)| uuid.clone());
        let xid = match event.event_data {
            Some(XidError::Value(number)) => Some(Incident::Xid(Xid(number))),
            Some(XidError::Unknown) => Some(Incident::Xid(Xid::UNKNOWN)),
            None => None,
        };
        let kinds = [
            (EventTypes::CRITICAL_XID_ERROR, xid),
            (EventTypes::SINGLE_BIT_ECC_ERROR, Some(Incident::EccCorrected)),
            (EventTypes::DOUBLE_BIT_ECC_ERROR, Some(Incident::EccUncorrected)),
            (EventTypes::MIG_CONFIG_CHANGE, Some(Incident::InstancesChanged)),
        ];
        let happened = kinds.into_iter().filter(|(kind, _)| event.event_type.contains(*kind)).filter_map(|(_, incident)| incident);
        happened.map(|incident| GpuEvent { device: device.clone(), incident }).collect()
    }
}
