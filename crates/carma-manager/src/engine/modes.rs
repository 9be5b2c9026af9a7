//! GPUs that are switched between streams, MPS and MIG: written down, carried out where nobody waits, and told to the core.

use std::sync::Arc;
use std::thread;

use carma_core::{CollocationMode, DeviceId, Event, GpuMode, MiB, MigLayout, Part, SharingMode, SwitchReason};
use carma_gpu::mig::{self, Layout, ProfileName, Variant};
use carma_gpu::mps::{ClientLimits, MpsControl, MpsError};
use carma_gpu::{DeviceUuid, Driver};

use super::batch::Effect;
use super::devices::Devices;
use super::input::Input;
use super::mps::PATIENCE;
use super::run::Running;
use crate::store::{Change, MachineChange};

/// A GPU that is to be switched, with all that it takes.
#[derive(Debug)]
pub(super) struct SwitchOrder {
    device: DeviceId,
    to: GpuMode,
    gpu: DeviceUuid,
    memory: MiB,
    /// Its MPS daemon, and whether that is at work now.
    control: MpsControl,
    by_mps: bool,
    driver: Arc<Driver>,
}

/// What became of it.
#[derive(Debug)]
pub(super) struct Switched {
    device: DeviceId,
    to: GpuMode,
    came_to: Result<(), String>,
    /// How the GPU is shared then, and what there is of it; nothing where that could not be looked at.
    mode: CollocationMode,
    found: Devices,
}

impl Running {
    /// Has a GPU switched, once it is written down that it is.
    pub(super) fn switch_mode(&mut self, device: DeviceId, to: GpuMode, reason: &SwitchReason) {
        self.announce(format!("{device} is switched to {to}: {reason}"));
        let known = self.devices.get(device).map(|known| (known.uuid.clone(), known.memory, known.mode));
        let (Some((gpu, memory, mode)), Some(driver)) = (known, self.setup.driver.clone()) else {
            return self.mode_refused(device, "it is no longer there");
        };
        if self.outside.has(&gpu) {
            return self.mode_refused(device, "others use MIG instances of it");
        }
        self.batch.changes.extend(self.change_for(device, to.sharing()).map(Change::MachineChanged));
        let by_mps = matches!(mode, CollocationMode::Mps { .. });
        let order = SwitchOrder { device, to, control: self.mps_daemons().of(&gpu), by_mps, gpu, memory, driver };
        self.batch.effects.push(Effect::Switch(Box::new(order)));
    }

    /// What is written down of a GPU that is shared this way.
    fn change_for(&self, device: DeviceId, mode: SharingMode) -> Option<MachineChange> {
        let gpu = &self.devices.get(device)?.uuid;
        match mode {
            SharingMode::Streams => None,
            SharingMode::Mps => Some(self.mps_daemons().change(gpu)),
            SharingMode::Mig => Some(MachineChange::MigInstances { gpu: gpu.clone() }),
        }
    }

    /// Switches a GPU from a thread of its own: that takes its time.
    pub(super) fn carry_out_switch(&mut self, order: SwitchOrder) {
        let (inputs, device) = (self.inputs.clone(), order.device);
        let run = move || {
            let _ = inputs.send(Input::Switched(order.carry_out()));
        };
        match thread::Builder::new().name("switch".to_owned()).spawn(run) {
            Ok(_) => self.scans.switch_begins(),
            Err(error) => self.mode_refused(device, &error.to_string()),
        }
    }

    pub(super) fn switched(&mut self, Switched { device, to, came_to, mode, found }: Switched) {
        self.scans.switch_ends();
        let (by_mps, whole) = (matches!(mode, CollocationMode::Mps { .. }), found.is_whole());
        // Whatever it came to: what is there is what has to be put back.
        self.forget_changes(device, |mode| if mode == SharingMode::Mps { !by_mps } else { whole });
        let now = self.devices.with_gpu(device, found);
        let as_it_was = now == self.devices;
        self.found(&now);
        match came_to {
            Ok(()) => match self.try_tell(Event::GpuModeChanged { device, mode }) {
                Ok(()) => self.announce(format!("{device} is shared by {to} now")),
                Err(error) => self.announce(format!("{device} is shared by {to} now, which comes too late: {error}")),
            },
            Err(reason) if as_it_was => self.mode_refused(device, &reason),
            Err(reason) => {
                self.announce(format!("{device} is neither shared by {to} nor as it was: {reason}"));
                // So that it is not tried again.
                let _ = self.try_tell(Event::ModeRefused { device, reason });
                let _ = self.try_tell(Event::GpuModeChanged { device, mode });
            }
        }
        self.look_for_devices();
    }

    fn forget_changes(&mut self, device: DeviceId, gone: impl Fn(SharingMode) -> bool) {
        let modes = [SharingMode::Mps, SharingMode::Mig].into_iter().filter(|mode| gone(*mode));
        let changes: Vec<MachineChange> = modes.filter_map(|mode| self.change_for(device, mode)).collect();
        self.batch.changes.extend(changes.into_iter().map(Change::MachineRestored));
    }

    fn mode_refused(&mut self, device: DeviceId, reason: &str) {
        self.announce(format!("{device} stays as it was: {reason}"));
        let _ = self.try_tell(Event::ModeRefused { device, reason: reason.to_owned() });
    }

    /// GPUs that had an MPS daemon when we ended have it still, where modes may be chosen.
    pub(super) fn keep_switched(&mut self, changes: &[MachineChange]) {
        if !self.core.scheduler().config().modes.allows(SharingMode::Mps) {
            return;
        }
        for change in changes {
            if let MachineChange::MpsDaemon { gpu, .. } = change
                && let Some(device) = self.devices.by_uuid(gpu).map(|device| device.id)
            {
                self.devices.set_mode(device, CollocationMode::Mps { exclusive_process: false });
            }
        }
    }

    /// GPUs that we once cut and may no longer are made whole, unless jobs are on their instances; and those that have none, and are of no use so.
    pub(super) fn join_unwanted_instances(&mut self, changes: &[MachineChange]) {
        let Some(driver) = self.setup.driver.clone() else { return };
        let may_be_cut = self.core.scheduler().config().modes.allows(SharingMode::Mig);
        for change in changes {
            let MachineChange::MigInstances { gpu } = change else { continue };
            let device = self.devices.by_uuid(gpu).map(|device| device.id);
            // One that is not for us now is made whole by the next manager that has it.
            if (may_be_cut && device.is_some()) || self.outside.has(gpu) {
                continue;
            }
            let on_it =
                |placed: &carma_core::Device| device.is_some_and(|device| placed.id().gpu == device.gpu) && !placed.tenants.is_empty();
            if self.core.scheduler().fleet().devices().any(on_it) {
                continue;
            }
            match mig::apply(&driver, gpu, &Layout::Off) {
                Ok(_) => self.batch.changes.push(Change::MachineRestored(change.clone())),
                Err(error) => eprintln!("carma: the MIG instances of {gpu} could not be taken away: {error}"),
            }
            self.look_for_devices();
        }
    }
}

impl SwitchOrder {
    fn carry_out(mut self) -> Switched {
        let came_to = self.switch();
        let mode = if self.by_mps { CollocationMode::Mps { exclusive_process: false } } else { CollocationMode::Streams };
        // One that cannot be looked at takes nobody until it can.
        let found = Devices::of_gpu(&self.driver, &self.gpu, self.device, mode).unwrap_or_default();
        Switched { device: self.device, to: self.to, came_to, mode, found }
    }

    fn switch(&mut self) -> Result<(), String> {
        let had_mps = self.by_mps;
        if had_mps && self.to != GpuMode::Mps {
            match self.control.stop(PATIENCE) {
                Ok(()) | Err(MpsError::NotRunning(_)) => self.by_mps = false,
                Err(error) => return Err(error.to_string()),
            }
        }
        if let Err(error) = self.cut() {
            // It is as it was, so it must have its daemon again.
            return Err(if had_mps && self.start_mps().is_err() { format!("{error}, and its MPS daemon is gone") } else { error });
        }
        if self.to == GpuMode::Mps { self.start_mps() } else { Ok(()) }
    }

    fn start_mps(&mut self) -> Result<(), String> {
        match self.control.start(ClientLimits::default()) {
            Ok(()) | Err(MpsError::AlreadyRunning(_)) => {
                self.by_mps = true;
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Cuts the GPU as wanted, or makes it whole.
    fn cut(&self) -> Result<(), String> {
        let state = mig::list(&self.driver, &self.gpu).map_err(|error| error.to_string())?;
        let layout = match self.to {
            GpuMode::Mig(layout) => instances(layout, self.memory),
            GpuMode::Streams | GpuMode::Mps if state.mode == mig::Mode::On => Layout::Off,
            GpuMode::Streams | GpuMode::Mps => return Ok(()),
        };
        mig::apply(&self.driver, &self.gpu, &layout).map(drop).map_err(|error| error.to_string())
    }
}

/// The instances of a layout, as NVIDIA names them on a GPU with this memory.
fn instances(layout: MigLayout, whole: MiB) -> Layout {
    let name = |slices: &u8| ProfileName::new(u32::from(*slices), Part::of(*slices, whole).memory, whole, Variant::Plain);
    Layout::new(layout.slices().iter().map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_the_gpu() {
        let written = |memory| MigLayout::ALL.map(|layout| instances(layout, MiB(memory)).to_string());
        assert_eq!(written(40_960), ["4g.20gb,3g.20gb", "2x3g.20gb", "4g.20gb,2g.10gb,1g.5gb", "3x2g.10gb,1g.5gb", "7x1g.5gb"]);
        assert_eq!(written(81_559), ["4g.40gb,3g.40gb", "2x3g.40gb", "4g.40gb,2g.20gb,1g.10gb", "3x2g.20gb,1g.10gb", "7x1g.10gb"]);
    }
}
