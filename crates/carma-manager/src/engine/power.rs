//! Power limits of GPUs: written down, set where the rules want them and we may, and put back when they are no longer wanted.

use carma_core::{DeviceId, Event, Watts};
use carma_gpu::PowerLimitChange;

use super::run::Running;
use crate::store::{Change, MachineChange};

impl Running {
    /// Takes over the limits that were set before us, and sees to those that the rules want now.
    pub(super) fn begin_power_limits(&mut self, changes: Vec<MachineChange>) {
        let limits =
            changes.into_iter().filter_map(|change| if let MachineChange::PowerLimit(limit) = change { Some(limit) } else { None });
        self.power_limits = limits.map(|limit| (limit.gpu().clone(), limit)).collect();
        let wanted = self.core.scheduler().config().power.cap;
        let gpus: Vec<DeviceId> = self.devices.iter().map(|device| device.id).filter(|device| device.instance.is_none()).collect();
        for device in gpus {
            self.limit_power(device, wanted);
        }
    }

    /// Sets the most that a GPU may draw, or puts back what it was.
    pub(super) fn limit_power(&mut self, device: DeviceId, limit: Option<Watts>) {
        let (Some(driver), Some(known)) = (self.setup.driver.clone(), self.devices.get(device)) else { return };
        let gpu = known.uuid.clone();
        let earlier = self.power_limits.get(&gpu).cloned();
        if self.setup.observes || (limit.is_none() && earlier.is_none()) {
            return;
        }
        let Some(limit) = limit else { return self.restore_power_limit(device, earlier) };
        let made = PowerLimitChange::plan(&driver, &gpu, limit, earlier.as_ref()).map_err(|error| error.to_string()).and_then(|change| {
            // Written down first: whoever comes after us knows what to put back.
            let written = vec![Change::MachineChanged(MachineChange::PowerLimit(change.clone()))];
            self.store.write(written).wait().map_err(|error| error.to_string())?;
            change.make(&driver).map_err(|error| error.to_string())?;
            Ok(change)
        });
        match made {
            Ok(change) => {
                let replaced = self.power_limits.insert(gpu, change.clone()).filter(|replaced| *replaced != change);
                self.batch.changes.extend(replaced.map(|replaced| Change::MachineRestored(MachineChange::PowerLimit(replaced))));
                let _ = self.try_tell(Event::PowerLimited { device, limit: Some(change.limit()) });
            }
            Err(error) => self.announce(format!("{device} cannot be limited to {limit}: {error}")),
        }
    }

    fn restore_power_limit(&mut self, device: DeviceId, change: Option<PowerLimitChange>) {
        let (Some(driver), Some(change)) = (self.setup.driver.clone(), change) else { return };
        match change.restore(&driver) {
            Ok(()) => {
                self.power_limits.remove(change.gpu());
                self.batch.changes.push(Change::MachineRestored(MachineChange::PowerLimit(change)));
                let _ = self.try_tell(Event::PowerLimited { device, limit: None });
            }
            Err(error) => self.announce(format!("the power limit of {device} cannot be put back: {error}")),
        }
    }

    /// Puts back every limit before we end. One that cannot be is put back by who comes after us.
    pub(super) fn restore_power_limits(&mut self) {
        let Some(driver) = self.setup.driver.clone() else { return };
        let restored = std::mem::take(&mut self.power_limits).into_values().filter(|change| change.restore(&driver).is_ok());
        let changes: Vec<Change> = restored.map(|change| Change::MachineRestored(MachineChange::PowerLimit(change))).collect();
        if !changes.is_empty() {
            let _ = self.store.write(changes).wait();
        }
    }
}
