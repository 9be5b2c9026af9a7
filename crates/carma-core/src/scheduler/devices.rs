//! Events about devices and hosts: added, removed, lost, drained, sampled.

use super::action::{Action, Signal};
use super::{EventError, Scheduler};
use crate::config::Config;
use crate::device::{Device, DeviceSpec};
use crate::fleet::Server;
use crate::job::StopReason;
use crate::sharing::CollocationMode;
use crate::telemetry::{Sample, Telemetry, WindowSummary};
use crate::tenant::{ProcessUse, Tenant};
use crate::units::{MiB, Time};
use crate::{AttemptId, DeviceId, ServerId};

impl Scheduler {
    fn known_device(&self, device: DeviceId) -> Result<&Device, EventError> {
        self.fleet.device(device).ok_or(EventError::UnknownDevice(device))
    }

    pub(super) fn known_server(&self, server: ServerId) -> Result<&Server, EventError> {
        self.fleet.server(server).ok_or(EventError::UnknownServer(server))
    }

    pub(super) fn update(&mut self, device: DeviceId, now: Time, change: impl FnOnce(&mut Device)) -> Result<(), EventError> {
        self.fleet.update(device, &self.config, now, change).ok_or(EventError::UnknownDevice(device))
    }

    /// A device that none of our attempts is on.
    fn unused_device(&self, device: DeviceId) -> Result<(), EventError> {
        if self.known_device(device)?.tenants.is_empty() { Ok(()) } else { Err(EventError::InUse(device)) }
    }

    /// Goes by the rules in force from now on, everywhere.
    pub(super) fn apply_rules(&mut self, now: Time) {
        let devices: Vec<DeviceId> = self.fleet.devices().map(Device::id).collect();
        for device in devices {
            self.update_timed(device, now, Device::apply_rules);
            self.look_when_rested(device, now);
        }
        self.restart_time_slices();
        self.reconsider_set_aside(now);
    }

    pub(super) fn gpu_attached(&mut self, spec: DeviceSpec, now: Time, actions: &mut Vec<Action>) -> Result<(), EventError> {
        self.known_server(spec.id.server())?;
        if self.fleet.device(spec.id).is_some() {
            return Err(EventError::DuplicateDevice(spec.id));
        }
        mode_matches_name(spec.id, spec.mode)?;
        let whole = DeviceId { instance: None, ..spec.id };
        if spec.id.instance.is_some() {
            // A GPU with attempts on it cannot have been cut.
            if self.fleet.device(whole).is_some_and(|device| !device.tenants.is_empty()) {
                return Err(EventError::InUse(whole));
            }
        }
        let device = spec.id;
        self.fleet.add_device(spec, &self.config, now);
        // An instance that is created during a mode switch takes no job until the switch ends.
        let to = self.fleet.device(whole).and_then(|whole| whole.switches.to);
        self.update(device, now, |device| device.switches.to = to)?;
        self.limit_power(device, now, actions);
        self.reconsider_set_aside(now);
        Ok(())
    }

    pub(super) fn gpu_detached(&mut self, device: DeviceId, now: Time) -> Result<(), EventError> {
        self.unused_device(device)?;
        self.end_switch(device, now);
        self.fleet.remove_device(device, &self.config, now);
        self.reconsider_set_aside(now);
        Ok(())
    }

    pub(super) fn gpu_mode_changed(&mut self, device: DeviceId, mode: CollocationMode, now: Time) -> Result<(), EventError> {
        self.unused_device(device)?;
        mode_matches_name(device, mode)?;
        self.update(device, now, |device| device.spec.mode = mode)?;
        self.switched(device, now);
        self.reconsider_set_aside(now);
        Ok(())
    }

    /// The device, and its instances if it is a GPU that is partitioned into some.
    fn with_instances(&self, device: DeviceId) -> Result<Vec<DeviceId>, EventError> {
        self.known_device(device)?;
        let server = self.fleet.server(device.server()).into_iter().flat_map(|server| &server.devices);
        let belongs = |other: DeviceId| other == device || (device.instance.is_none() && other.gpu == device.gpu);
        Ok(server.map(Device::id).filter(|other| belongs(*other)).collect())
    }

    fn stop_on(&mut self, device: DeviceId, which: impl Fn(&&Tenant) -> bool, reason: StopReason, now: Time, actions: &mut Vec<Action>) {
        let tenants = self.fleet.device(device).into_iter().flat_map(|device| &device.tenants);
        let attempts: Vec<AttemptId> = tenants.filter(which).map(|tenant| tenant.attempt).collect();
        for attempt in attempts {
            self.stop(attempt, reason, Signal::Kill, now, actions);
        }
    }

    pub(super) fn gpu_lost(&mut self, device: DeviceId, now: Time, actions: &mut Vec<Action>) -> Result<(), EventError> {
        for device in self.with_instances(device)? {
            self.update(device, now, |device| {
                device.lost = true;
                // Earlier readings say nothing about its state after that.
                device.telemetry = Telemetry::Silent;
                device.sampled_at = None;
                device.foreign.clear();
            })?;
            self.stop_on(device, |_| true, StopReason::GpuLost, now, actions);
        }
        // A job that was sized for the lost device may fit another.
        self.reconsider_set_aside(now);
        Ok(())
    }

    pub(super) fn gpu_recovered(&mut self, device: DeviceId, now: Time, actions: &mut Vec<Action>) -> Result<(), EventError> {
        for device in self.with_instances(device)? {
            // A GPU that was reset has forgotten its limit.
            self.update(device, now, |device| (device.lost, device.wanted_limit, device.power_limit) = (false, None, None))?;
            self.limit_power(device, now, actions);
        }
        self.reconsider_set_aside(now);
        Ok(())
    }

    pub(super) fn gpu_drained(&mut self, device: DeviceId, drained: bool, now: Time) -> Result<(), EventError> {
        for device in self.with_instances(device)? {
            self.update(device, now, |device| device.drained = drained)?;
        }
        Ok(())
    }

    /// The device is drained, and attempts on it that can checkpoint move elsewhere.
    pub(super) fn gpu_failing(&mut self, device: DeviceId, now: Time, actions: &mut Vec<Action>) -> Result<(), EventError> {
        self.gpu_drained(device, true, now)?;
        for device in self.with_instances(device)? {
            let tenants = self.fleet.device(device).into_iter().flat_map(|device| &device.tenants);
            let attempts: Vec<AttemptId> = tenants.map(|tenant| tenant.attempt).collect();
            for attempt in attempts {
                if self.jobs.get(&attempt.job).is_some_and(|job| job.spec.may_checkpoint) {
                    self.stop(attempt, StopReason::Moved, Signal::Checkpoint, now, actions);
                }
            }
        }
        Ok(())
    }

    pub(super) fn mps_server_died(&mut self, device: DeviceId, now: Time, actions: &mut Vec<Action>) -> Result<(), EventError> {
        if !matches!(self.known_device(device)?.spec.mode, CollocationMode::Mps { .. }) {
            return Err(EventError::NoMpsServer(device));
        }
        self.stop_on(device, |tenant| tenant.mps_client, StopReason::MpsServerDied, now, actions);
        Ok(())
    }

    pub(super) fn gpu_sampled(&mut self, id: DeviceId, sample: Sample, now: Time, actions: &mut Vec<Action>) -> Result<(), EventError> {
        self.observe(id, now, actions, |device, config| device.sample(sample, config, now))
    }

    pub(super) fn gpu_window(
        &mut self,
        id: DeviceId,
        window: Box<WindowSummary>,
        now: Time,
        actions: &mut Vec<Action>,
    ) -> Result<(), EventError> {
        self.observe(id, now, actions, |device, config| device.summarise(window, config))
    }

    fn observe(
        &mut self,
        id: DeviceId,
        now: Time,
        actions: &mut Vec<Action>,
        change: impl FnOnce(&mut Device, &Config),
    ) -> Result<(), EventError> {
        let config = &self.config;
        let known = |device: &Device| (device.telemetry.memory_used().is_some(), device.telemetry.is_full());
        let improved = self.fleet.update(id, config, now, |device| {
            let (known_before, occupied_before) = (known(device), device.occupied());
            change(device, config);
            known(device) > known_before || device.occupied() < occupied_before
        });
        if improved.ok_or(EventError::UnknownDevice(id))? {
            self.look_again_on(id);
        }
        self.watch_idle(id, now, actions);
        Ok(())
    }

    pub(super) fn processes_seen(
        &mut self,
        device: DeviceId,
        processes: &[ProcessUse],
        now: Time,
        actions: &mut Vec<Action>,
    ) -> Result<(), EventError> {
        let seen = self.update_timed(device, now, |device, config| device.processes(processes, config, now));
        let (differs, new) = seen.ok_or(EventError::UnknownDevice(device))?;
        for attempt in new {
            self.seen(attempt);
            self.judge_idle(attempt, now, actions);
        }
        self.watch_memory(device, now, actions);
        self.relieve_pressure(device, now, actions);
        // The same processes are reported every second.
        if differs {
            self.mark_all_dirty();
        }
        Ok(())
    }

    pub(super) fn host_memory(&mut self, server: ServerId, available: MiB) -> Result<(), EventError> {
        self.known_server(server)?;
        self.fleet.update_host(server, |host| host.set_available(available));
        Ok(())
    }

    pub(super) fn host_short(&mut self, server: ServerId, short: bool, now: Time) -> Result<(), EventError> {
        self.known_server(server)?;
        self.fleet.update_server(server, &self.config, now, |server| server.set_host_short(short));
        Ok(())
    }
}

fn mode_matches_name(device: DeviceId, mode: CollocationMode) -> Result<(), EventError> {
    if device.instance.is_some() == (mode == CollocationMode::Mig) { Ok(()) } else { Err(EventError::ModeOfInstance(device)) }
}
