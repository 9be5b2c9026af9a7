//! GPUs that are shared by MPS: a daemon each, started by us and stopped when it is no longer wanted.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use carma_core::{CollocationMode, DeviceId, Event, Limits, State};
use carma_gpu::DeviceUuid;
use carma_gpu::mps::{ClientLimits, MpsControl, MpsError, ServerDied};

use super::devices::{Device, Devices};
use super::run::Running;
use super::setup::World;
use crate::store::{Change, MachineChange, Store};

/// How long a daemon that is to stop waits for clients that are not ours.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The MPS daemons of GPUs, for whoever may wait for them.
#[derive(Debug, Clone)]
pub(super) struct MpsDaemons {
    folder: PathBuf,
    program: PathBuf,
    store: Arc<Store>,
}

impl MpsDaemons {
    /// That of a GPU, whether or not it has one.
    pub(super) fn of(&self, gpu: &DeviceUuid) -> MpsControl {
        let folder = self.folder.join(gpu.as_str());
        MpsControl::new(gpu.clone(), folder.join("pipes"), folder.join("logs")).with_program(&self.program)
    }

    /// What is written down of it.
    pub(super) fn change(&self, gpu: &DeviceUuid) -> MachineChange {
        let folder = self.folder.join(gpu.as_str());
        MachineChange::MpsDaemon { gpu: gpu.clone(), pipes: folder.join("pipes"), logs: folder.join("logs") }
    }

    /// GPUs that came and are to be shared by MPS get a daemon each, unless one is at work already. Where that fails, the GPU is shared by streams,
    /// and people are told why.
    pub(super) fn start_for_new(&self, devices: &mut Devices, known: &Devices) -> Vec<String> {
        let by_mps = |device: &&Device| matches!(device.mode, CollocationMode::Mps { .. }) && known.by_uuid(&device.uuid).is_none();
        let new: Vec<Device> = devices.iter().filter(by_mps).cloned().collect();
        let failed = new.into_iter().filter_map(|device| Some((device.id, self.start(&device.uuid).err()?)));
        let told = failed.map(|(device, error)| {
            devices.set_mode(device, CollocationMode::Streams);
            format!("no MPS on {device}: {error}")
        });
        told.collect()
    }

    fn start(&self, gpu: &DeviceUuid) -> Result<(), String> {
        // Written down first: whoever comes after us knows whose the daemon is.
        self.store.write(vec![Change::MachineChanged(self.change(gpu))]).wait().map_err(|error| error.to_string())?;
        match self.of(gpu).start(ClientLimits::default()) {
            // Daemons outlive managers.
            Ok(()) | Err(MpsError::AlreadyRunning(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Running {
    pub(super) fn mps_daemons(&self) -> MpsDaemons {
        let World { mps_folder, mps_program, .. } = &self.setup.world;
        MpsDaemons { folder: mps_folder.clone(), program: mps_program.clone(), store: Arc::clone(&self.store) }
    }

    pub(super) fn mps_control(&self, device: DeviceId) -> Option<MpsControl> {
        let device = self.devices.get(device).filter(|device| matches!(device.mode, CollocationMode::Mps { .. }))?;
        Some(self.mps_daemons().of(&device.uuid))
    }

    /// Daemons that we once started for GPUs that are shared otherwise now are stopped, unless jobs still use them.
    pub(super) fn stop_unwanted_mps(&mut self, changes: Vec<MachineChange>) {
        for change in changes {
            let MachineChange::MpsDaemon { gpu, pipes, logs } = &change else { continue };
            let device = self.devices.by_uuid(gpu);
            let wanted = device.is_some_and(|device| matches!(device.mode, CollocationMode::Mps { .. }));
            if wanted || device.is_some_and(|device| self.has_mps_clients(device.id)) {
                continue;
            }
            let control = MpsControl::new(gpu.clone(), pipes, logs).with_program(&self.setup.world.mps_program);
            match control.stop(PATIENCE) {
                Ok(()) => self.batch.changes.push(Change::MachineRestored(change)),
                Err(error) => eprintln!("carma: the MPS daemon of {gpu} could not be stopped: {error}"),
            }
        }
    }

    fn has_mps_clients(&self, device: DeviceId) -> bool {
        let uses = |state: &State| {
            let granted = state.active().map(|active| active.placement.devices.as_slice()).unwrap_or_default();
            granted.iter().any(|granted| granted.device == device && matches!(granted.limits, Limits::Mps { .. }))
        };
        self.core.scheduler().jobs().any(|job| uses(&job.state))
    }

    pub(super) fn mps_died(&mut self, device: DeviceId, died: &ServerDied) {
        self.announce(format!("{device}: its MPS server {} died", died.pid));
        self.mps_deaths.insert(device, self.clock.now());
        let _ = self.try_tell(Event::MpsServerDied { device });
    }
}
