//! Power limits of GPUs: requested when the rules change them, and relied on once they are set.

use super::action::Action;
use super::{EventError, Scheduler};
use crate::DeviceId;
use crate::admission::Demand;
use crate::device::Device;
use crate::mapping;
use crate::units::{Time, Watts};

impl Scheduler {
    /// Requests the power limit that the rules give a GPU, unless it was requested before.
    pub(super) fn limit_power(&mut self, device: DeviceId, now: Time, actions: &mut Vec<Action>) {
        let limit = self.config.power.cap;
        let other = self.fleet.device(device).is_some_and(|known| known.wanted_limit != limit);
        // Instances have no limit of their own.
        if other && device.instance.is_none() {
            self.fleet.update(device, &self.config, now, |device| device.wanted_limit = limit);
            actions.push(Action::LimitPower { device, limit });
        }
    }

    /// The same of all GPUs.
    pub(super) fn limit_all_power(&mut self, now: Time, actions: &mut Vec<Action>) {
        let devices: Vec<DeviceId> = self.fleet.devices().filter(|device| !device.lost).map(Device::id).collect();
        for device in devices {
            self.limit_power(device, now, actions);
        }
    }

    pub(super) fn power_limited(&mut self, device: DeviceId, limit: Option<Watts>, now: Time) -> Result<(), EventError> {
        self.update(device, now, |device| device.power_limit = limit)?;
        // What drew too much may do now.
        self.reconsider_set_aside(now);
        Ok(())
    }

    /// The least budget with which the job could run, and the budget, where the budget is the only permanent obstacle.
    pub(super) fn too_much_power(&self, demand: &Demand<'_>) -> Option<(Watts, Watts)> {
        let power = demand.power.filter(|_| !mapping::could_ever_fit(&self.fleet, demand))?;
        if !mapping::could_ever_fit(&self.fleet, &Demand { power: None, ..demand.clone() }) {
            return None;
        }
        let needed = |device: &Device| Some(self.fleet.server(device.id().server())?.least_budget(device, power.load, demand.width()));
        // A device that the budget suffices for is none that the job could use.
        let needed = self.fleet.devices().filter_map(needed).filter(|needed| *needed > power.budget);
        Some((needed.min()?, power.budget))
    }
}
