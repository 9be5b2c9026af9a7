//! GPUs and instances that appear and disappear.

use std::thread;

use carma_core::{DeviceId, Event, EventError, Placement, Topology};
use carma_gpu::{DriverError, topology};

use super::Gpus;
use super::report::GpuChange;
use super::scans::Scan;
use crate::engine::decide::Decisions;
use crate::host_gpus::Devices;
use crate::store::{Drained, MachineChange};

impl Gpus {
    /// Lists the devices of the driver. Logs why others are not used.
    pub(crate) fn find(&mut self) -> Result<Devices, DriverError> {
        let Some(driver) = &self.setup.driver else { return Ok(Devices::default()) };
        let (devices, excluded) = Devices::find(driver, &self.setup.settings, &mut self.numbers)?;
        excluded.log();
        self.excluded = excluded;
        Ok(devices)
    }

    /// The topology of the devices, if the driver reports it.
    pub(crate) fn topology(&self, devices: &Devices) -> Option<Topology> {
        topology(self.setup.driver.as_ref()?, &devices.gpus()).ok()
    }

    /// Attaches the devices to a new core.
    pub(crate) fn attach(
        &mut self,
        decisions: &mut Decisions,
        found: Devices,
        changes: &[MachineChange],
        drained: Vec<Drained>,
    ) -> Result<(), EventError> {
        // After a failure of the store, the same manager starts again.
        self.devices = found.with_missing(&self.devices, &self.excluded);
        self.keep_mps_modes(decisions, changes);
        if !self.setup.observes {
            for problem in self.mps.start_for_new(&mut self.devices, &Devices::default()) {
                decisions.warn(problem);
            }
        }
        for device in self.devices.iter() {
            decisions.prepare(Event::GpuAttached(self.spec(device)))?;
        }
        self.drained = drained.into_iter().map(|drained| (drained.device, drained)).collect();
        for device in self.drained.keys() {
            // An absent device is drained when it appears.
            let _ = decisions.prepare(Event::GpuDrained { device: *device });
        }
        self.save_numbers();
        Ok(())
    }

    fn save_numbers(&self) {
        // Without the file, GPUs have the driver's numbers after a restart.
        let _ = self.numbers.write(&self.setup.numbers);
    }

    /// Lists the devices again, on a thread that may block.
    pub(crate) fn rescan_devices(&mut self) {
        // After a switch they are listed again anyway.
        let (Some(driver), Some(number)) = (self.setup.driver.clone(), self.scans.begin()) else { return };
        let (settings, mut numbers, reports) = (self.setup.settings.clone(), self.numbers.clone(), self.reports.clone());
        let (daemons, known) = (Some(self.mps.clone()).filter(|_| !self.setup.observes), self.devices.clone());
        let run = move || {
            if let Ok((mut devices, excluded)) = Devices::find(&driver, &settings, &mut numbers) {
                let problems = daemons.map(|daemons| daemons.start_for_new(&mut devices, &known)).unwrap_or_default();
                reports.changed(GpuChange::Found(Scan { number, devices, excluded, numbers, problems }));
            }
        };
        let _ = thread::Builder::new().name("devices".to_owned()).spawn(run);
    }

    pub(super) fn scanned(&mut self, decisions: &mut Decisions, Scan { number, devices, excluded, numbers, problems }: Scan) {
        if self.scans.counts(number) {
            for problem in problems {
                decisions.warn(problem);
            }
            // A lost GPU stays known until it is back. Its samples say that it is lost.
            let mut devices = devices.with_missing(&self.devices, &excluded);
            devices.keep_modes(&self.devices);
            (self.numbers, self.excluded) = (numbers, excluded);
            self.found(decisions, &devices);
        }
    }

    /// New devices are attached. Devices that are not for jobs any more are detached, or lost if attempts are on them.
    pub(crate) fn found(&mut self, decisions: &mut Decisions, now: &Devices) {
        if *now == self.devices {
            return;
        }
        let before = std::mem::replace(&mut self.devices, now.clone());
        for gone in before.iter().filter(|device| now.get(device.id).is_none_or(|new| new.uuid != device.uuid)) {
            if decisions.tell(Event::GpuDetached { device: gone.id }).is_err() {
                let _ = decisions.tell(Event::GpuLost { device: gone.id });
            }
            decisions.announce(format!("{} is no longer used", gone.id));
            self.sampling.forget(gone.id);
        }
        for new in now.iter().filter(|device| before.get(device.id).is_none_or(|old| old.uuid != device.uuid)) {
            if decisions.tell(Event::GpuAttached(self.spec(new))).is_err() {
                // It was lost while attempts were on it, and is known as such.
                let _ = decisions.tell(Event::GpuDetached { device: new.id });
                let _ = decisions.tell(Event::GpuAttached(self.spec(new)));
            }
            let whole = DeviceId { instance: None, ..new.id };
            if self.drained.contains_key(&new.id) || self.drained.contains_key(&whole) {
                let _ = decisions.tell(Event::GpuDrained { device: new.id });
            }
            decisions.announce(format!("{} came: {}", new.id, new.name));
        }
        self.save_numbers();
        self.watch_again(decisions);
    }

    /// Restarts sampling. A GPU that was lost reports events of the driver only to a new watch.
    pub(super) fn watch_again(&mut self, decisions: &mut Decisions) {
        if let Err(error) = self.start_sampling(decisions) {
            decisions.warn(format!("the GPUs cannot be read: {error}"));
        }
    }

    /// An instance that disappeared under attempts is detached with its last attempt, so that its GPU is whole again.
    pub(crate) fn forget_gone_instances(&self, decisions: &mut Decisions, placement: &Placement) {
        let devices = placement.devices.iter().map(|granted| granted.device);
        for device in devices.filter(|device| device.instance.is_some() && self.devices.get(*device).is_none()) {
            // Other attempts may still be on it.
            let _ = decisions.tell(Event::GpuDetached { device });
        }
    }
}
