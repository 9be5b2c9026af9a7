//! GPUs that are shared by MPS: a daemon each, started by us and stopped when it is no longer wanted.

use std::time::Duration;

use carma_core::{CollocationMode, DeviceId, Event, Limits, State};
use carma_gpu::DeviceUuid;
use carma_gpu::mps::{ClientLimits, MpsControl, MpsError, ServerDied};

use super::run::Running;
use crate::store::{Change, MachineChange};

/// How long a daemon that is to stop waits for clients that are not ours.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

impl Running {
    pub(super) fn mps_control(&self, device: DeviceId) -> Option<MpsControl> {
        let device = self.devices.get(device).filter(|device| matches!(device.mode, CollocationMode::Mps { .. }))?;
        Some(self.mps_daemon(&device.uuid))
    }

    /// The MPS daemon of a GPU, whether or not it has one.
    pub(super) fn mps_daemon(&self, gpu: &DeviceUuid) -> MpsControl {
        let folder = self.setup.world.mps_folder.join(gpu.as_str());
        MpsControl::new(gpu.clone(), folder.join("pipes"), folder.join("logs")).with_program(&self.setup.world.mps_program)
    }

    /// GPUs that are to be shared by MPS get a daemon each, unless one is at work already. Where that fails, the GPU is shared by streams.
    pub(super) fn start_mps(&mut self) {
        if self.setup.observes {
            return;
        }
        let wanted: Vec<DeviceId> =
            self.devices.iter().filter(|device| matches!(device.mode, CollocationMode::Mps { .. })).map(|device| device.id).collect();
        for device in wanted {
            let (Some(control), Some(change)) = (self.mps_control(device), self.mps_change(device)) else { continue };
            // Written down first: whoever comes after us knows whose the daemon is.
            let written = self.store.write(vec![Change::MachineChanged(change)]).wait().map_err(|error| error.to_string());
            let started = || match control.start(ClientLimits::default()) {
                // Daemons outlive managers.
                Err(MpsError::AlreadyRunning(_)) => Ok(()),
                started => started.map_err(|error| error.to_string()),
            };
            if let Err(error) = written.and_then(|()| started()) {
                self.announce(format!("no MPS on {device}: {error}"));
                // While clients are on it, it is tried again.
                if self.try_tell(Event::GpuModeChanged { device, mode: CollocationMode::Streams }).is_ok() {
                    self.devices.set_mode(device, CollocationMode::Streams);
                }
            }
        }
    }

    pub(super) fn mps_change(&self, device: DeviceId) -> Option<MachineChange> {
        let gpu = self.devices.get(device)?.uuid.clone();
        let folder = self.setup.world.mps_folder.join(gpu.as_str());
        Some(MachineChange::MpsDaemon { gpu, pipes: folder.join("pipes"), logs: folder.join("logs") })
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
