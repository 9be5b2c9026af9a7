//! MPS daemons, one for each GPU that is shared by MPS: started by the manager, and stopped when no longer wanted.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use carma_core::{CollocationMode, DeviceId, Limits, State};
use carma_gpu::DeviceUuid;
use carma_gpu::mps::{ClientLimits, MpsControl, MpsError};

use super::Gpus;
use crate::engine::decide::Decisions;
use crate::host_gpus::{Device, Devices};
use crate::store::{Change, MachineChange, Store};
use crate::world::World;

/// How long a stopping daemon waits for foreign clients.
pub(super) const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The MPS daemons of all GPUs.
#[derive(Debug, Clone)]
pub(super) struct MpsDaemons {
    folder: PathBuf,
    program: PathBuf,
    store: Arc<Store>,
}

impl MpsDaemons {
    pub(super) fn new(world: &World, store: Arc<Store>) -> Self {
        Self { folder: world.mps_folder.clone(), program: world.mps_program.clone(), store }
    }

    /// The daemon of a GPU, running or not.
    pub(super) fn of(&self, gpu: &DeviceUuid) -> MpsControl {
        let folder = self.folder.join(gpu.as_str());
        MpsControl::new(gpu.clone(), folder.join("pipes"), folder.join("logs")).with_program(&self.program)
    }

    /// The change that is written down for it.
    pub(super) fn change(&self, gpu: &DeviceUuid) -> MachineChange {
        let folder = self.folder.join(gpu.as_str());
        MachineChange::MpsDaemon { gpu: gpu.clone(), pipes: folder.join("pipes"), logs: folder.join("logs") }
    }

    /// Starts a daemon for each new GPU with MPS mode, unless one runs already. Where that fails, the GPU is shared by streams,
    /// and the answer says why.
    pub(super) fn start_for_new(&self, devices: &mut Devices, known: &Devices) -> Vec<String> {
        let by_mps = |device: &&Device| matches!(device.mode, CollocationMode::Mps { .. }) && known.by_uuid(&device.uuid).is_none();
        let new: Vec<Device> = devices.iter().filter(by_mps).cloned().collect();
        let failed = new.into_iter().filter_map(|device| Some((device.id, self.start(&device.uuid).err()?)));
        let messages = failed.map(|(device, error)| {
            devices.set_mode(device, CollocationMode::Streams);
            format!("no MPS on {device}: {error}")
        });
        messages.collect()
    }

    /// Stops daemons, on a thread of its own.
    fn stop_all(&self, daemons: Vec<(DeviceUuid, MpsControl, MachineChange)>) -> Option<JoinHandle<()>> {
        if daemons.is_empty() {
            return None;
        }
        let store = Arc::clone(&self.store);
        let run = move || {
            for (gpu, control, change) in daemons {
                let stopped = control.stop(STOP_TIMEOUT).map_err(|error| error.to_string());
                let stopped =
                    stopped.and_then(|()| store.write([Change::MachineRestored(change)]).wait().map_err(|error| error.to_string()));
                match stopped {
                    Ok(()) => tracing::info!(%gpu, "stopped the MPS daemon, which is no longer wanted"),
                    Err(error) => tracing::warn!(%gpu, "cannot stop the MPS daemon: {error}"),
                }
            }
        };
        let thread = thread::Builder::new().name("stop mps".to_owned()).spawn(run);
        thread.inspect_err(|error| tracing::warn!("cannot stop MPS daemons: {error}")).ok()
    }

    fn start(&self, gpu: &DeviceUuid) -> Result<(), String> {
        // Written down first, so that the next manager knows the daemon.
        self.store.write(vec![Change::MachineChanged(self.change(gpu))]).wait().map_err(|error| error.to_string())?;
        match self.of(gpu).start(ClientLimits::default()) {
            // Daemons outlive managers.
            Ok(()) | Err(MpsError::AlreadyRunning(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Gpus {
    /// The MPS daemon of a device that is shared by one.
    pub(crate) fn mps_control(&self, device: DeviceId) -> Option<MpsControl> {
        let device = self.devices.get(device).filter(|device| matches!(device.mode, CollocationMode::Mps { .. }))?;
        Some(self.mps.of(&device.uuid))
    }

    /// Daemons that an earlier manager started for GPUs that are shared otherwise now are to be stopped.
    pub(super) fn find_unwanted_mps(&mut self, changes: &[MachineChange]) {
        let is_daemon = |change: &&MachineChange| matches!(change, MachineChange::MpsDaemon { .. });
        self.unwanted_mps = changes.iter().filter(is_daemon).cloned().collect();
    }

    /// Stops unwanted daemons that no job uses, on a thread: it may take a while. The next manager tries again if it fails.
    pub(crate) fn stop_unwanted_mps(&mut self, decisions: &Decisions) -> Option<JoinHandle<()>> {
        if self.unwanted_mps.is_empty() || self.scans.is_switching() {
            return None;
        }
        let (mut used, mut unused) = (Vec::new(), Vec::new());
        for change in std::mem::take(&mut self.unwanted_mps) {
            let MachineChange::MpsDaemon { gpu, pipes, logs } = &change else { continue };
            let device = self.devices.by_uuid(gpu);
            if device.is_some_and(|device| matches!(device.mode, CollocationMode::Mps { .. })) {
                // It is wanted again.
            } else if device.is_some_and(|device| has_mps_clients(decisions, device.id)) {
                used.push(change);
            } else {
                unused.push((gpu.clone(), MpsControl::new(gpu.clone(), pipes, logs).with_program(&self.mps.program), change));
            }
        }
        self.unwanted_mps = used;
        self.mps.stop_all(unused)
    }
}

fn has_mps_clients(decisions: &Decisions, device: DeviceId) -> bool {
    let uses = |state: &State| {
        let granted = state.active().map(|active| active.placement.devices.as_slice()).unwrap_or_default();
        granted.iter().any(|granted| granted.device == device && matches!(granted.limits, Limits::Mps { .. }))
    };
    decisions.scheduler().jobs().any(|job| uses(&job.state))
}
