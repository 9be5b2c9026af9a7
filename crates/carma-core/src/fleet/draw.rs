//! What the devices of a server are predicted to draw together.

use super::server::Server;
use crate::device::{Basis, Device};
use crate::power::Load;
use crate::units::Watts;

impl Server {
    /// The power that all its devices would draw with this additional load on each. On a server without our attempts the measured draw
    /// will not fall when they end, so the model alone counts.
    pub(crate) fn draw_with(&self, more: impl Fn(&Device) -> Load) -> Watts {
        let ours = self.devices.iter().any(|device| !device.tenants.is_empty());
        let basis = if ours { Basis::Measured } else { Basis::Model };
        Watts(self.devices.iter().map(|device| device.draw_with(more(device), basis)).sum())
    }

    /// The watts that all its devices are predicted to draw.
    pub fn predicted_draw(&self) -> Watts {
        self.draw_with(|_| Load::NONE)
    }

    /// The most watts that a rank of this load adds to one of its devices.
    pub(crate) fn most_added(&self, load: Load) -> Watts {
        let added = self.devices.iter().map(|device| device.draw_alone(load) - device.draw_alone(Load::NONE));
        Watts(added.fold(0.0, f64::max))
    }

    /// The watts beyond which its devices draw nothing, whatever runs.
    pub(crate) fn most_draw(&self) -> Watts {
        Watts(self.devices.iter().map(|device| device.draw_alone(Load::FULL)).sum())
    }

    /// The watts with which a job of this load can run with a rank on this device, and others wherever they go, if nothing else does.
    pub(crate) fn least_budget(&self, device: &Device, load: Load, ranks: usize) -> Watts {
        let idle: f64 = self.devices.iter().map(|device| device.draw_alone(Load::NONE)).sum();
        let added = match ranks {
            0 | 1 => device.draw_alone(load) - device.draw_alone(Load::NONE),
            ranks => ranks.min(self.devices.len()) as f64 * self.most_added(load).0,
        };
        Watts(idle + added).min(self.most_draw())
    }
}
