//! Switches of GPUs between streams, MPS and MIG: stored, executed by a thread, and reported to the core.

use std::thread;

use carma_core::{CollocationMode, DeviceId, Event, GpuMode, SharingMode, SwitchReason};
use carma_gpu::mig::{self, Layout};

use super::Gpus;
use super::report::GpuChange;
use super::switch::{SwitchOrder, Switched};
use crate::engine::decide::{Decisions, Effect};
use crate::store::{Change, MachineChange};

impl Gpus {
    /// Switches a GPU to another mode, once that is on the disk.
    pub(crate) fn switch_mode(&self, decisions: &mut Decisions, device: DeviceId, to: GpuMode, reason: &SwitchReason) {
        decisions.announce(format!("{device} is switched to {to}: {reason}"));
        let known = self.devices.get(device).filter(|_| self.setup.driver.is_some());
        match known {
            None => mode_refused(decisions, device, "it is no longer there"),
            Some(known) if self.excluded.has(&known.uuid) => mode_refused(decisions, device, "other processes use its MIG instances"),
            Some(_) => {
                decisions.batch.changes.extend(self.change_for(device, to.sharing()).map(Change::MachineChanged));
                decisions.batch.effects.push(Effect::Switch { device, to });
            }
        }
    }

    /// The change that is written down for a GPU in this mode.
    fn change_for(&self, device: DeviceId, mode: SharingMode) -> Option<MachineChange> {
        let gpu = &self.devices.get(device)?.uuid;
        match mode {
            SharingMode::Streams => None,
            SharingMode::Mps => Some(self.mps.change(gpu)),
            SharingMode::Mig => Some(MachineChange::MigInstances { gpu: gpu.clone() }),
        }
    }

    /// Switches a GPU, from a thread that may wait.
    pub(crate) fn carry_out_switch(&mut self, decisions: &mut Decisions, device: DeviceId, to: GpuMode) {
        let (Some(known), Some(driver)) = (self.devices.get(device), self.setup.driver.clone()) else {
            return mode_refused(decisions, device, "it is no longer there");
        };
        let by_mps = matches!(known.mode, CollocationMode::Mps { .. });
        let (gpu, memory, control) = (known.uuid.clone(), known.memory, self.mps.of(&known.uuid));
        let order = SwitchOrder { device, to, gpu, memory, control, by_mps, driver };
        let reports = self.reports.clone();
        let run = move || reports.changed(GpuChange::Switched(Box::new(order.carry_out())));
        match thread::Builder::new().name("switch".to_owned()).spawn(run) {
            Ok(_) => self.scans.begin_switch(),
            Err(error) => mode_refused(decisions, device, &error.to_string()),
        }
    }

    pub(super) fn switched(&mut self, decisions: &mut Decisions, Switched { device, to, result, mode, found }: Switched) {
        self.scans.end_switch();
        let (by_mps, whole) = (matches!(mode, CollocationMode::Mps { .. }), found.is_whole());
        // In any case: what is there now is what must be undone later.
        self.forget_changes(decisions, device, |mode| if mode == SharingMode::Mps { !by_mps } else { whole });
        let now = self.devices.with_gpu(device, found);
        let as_it_was = now == self.devices;
        self.found(decisions, &now);
        match result {
            Ok(()) => match decisions.tell(Event::GpuModeChanged { device, mode }) {
                Ok(()) => decisions.announce(format!("{device} is now shared through {to}")),
                Err(error) => decisions.announce(format!("{device} was switched to {to} too late: {error}")),
            },
            Err(reason) if as_it_was => mode_refused(decisions, device, &reason),
            Err(reason) => {
                decisions.announce(format!("{device} could not be switched to {to}, and its former mode is lost: {reason}"));
                // So that it is not tried again.
                let _ = decisions.tell(Event::ModeRefused { device, reason });
                let _ = decisions.tell(Event::GpuModeChanged { device, mode });
            }
        }
        self.rescan_devices();
    }

    fn forget_changes(&self, decisions: &mut Decisions, device: DeviceId, gone: impl Fn(SharingMode) -> bool) {
        let modes = [SharingMode::Mps, SharingMode::Mig].into_iter().filter(|mode| gone(*mode));
        let changes = modes.filter_map(|mode| self.change_for(device, mode));
        decisions.batch.changes.extend(changes.map(Change::MachineRestored));
    }

    /// GPUs that had an MPS daemon of an earlier manager keep it, where modes may be chosen.
    pub(super) fn keep_mps_modes(&mut self, decisions: &Decisions, changes: &[MachineChange]) {
        if !decisions.scheduler().config().modes.allows(SharingMode::Mps) {
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

    /// Removes the MIG instances of an earlier manager: if MIG is no longer allowed and no job is on them, or if the GPU has no usable instance.
    pub(super) fn remove_unwanted_instances(&mut self, decisions: &mut Decisions, changes: &[MachineChange]) {
        let Some(driver) = self.setup.driver.clone() else { return };
        let may_be_cut = decisions.scheduler().config().modes.allows(SharingMode::Mig);
        for change in changes {
            let MachineChange::MigInstances { gpu } = change else { continue };
            let device = self.devices.by_uuid(gpu).map(|device| device.id);
            // The next manager that has the GPU joins its instances.
            if (may_be_cut && device.is_some()) || self.excluded.has(gpu) {
                continue;
            }
            let on_it =
                |placed: &carma_core::Device| device.is_some_and(|device| placed.id().gpu == device.gpu) && !placed.tenants.is_empty();
            if decisions.scheduler().fleet().devices().any(on_it) {
                continue;
            }
            match mig::apply(&driver, gpu, &Layout::Off) {
                Ok(_) => decisions.batch.changes.push(Change::MachineRestored(change.clone())),
                Err(error) => tracing::warn!(%gpu, "cannot remove MIG instances: {error}"),
            }
            self.rescan_devices();
        }
    }
}

fn mode_refused(decisions: &mut Decisions, device: DeviceId, reason: &str) {
    decisions.announce(format!("{device} keeps its mode: {reason}"));
    let _ = decisions.tell(Event::ModeRefused { device, reason: reason.to_owned() });
}
