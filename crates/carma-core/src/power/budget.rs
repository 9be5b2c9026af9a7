//! The power budget of a server: nobody is launched whose draw would pass it.

use super::Load;
use crate::admission::{Demand, JobQuestion, Obstacle};
use crate::device::Device;
use crate::fleet::Server;
use crate::units::Watts;

/// Sums of the same watts in another order differ by less.
const ROUNDING: f64 = 1e-6;

/// Why the server's power does not suffice for the job with a rank on this device, if so. A job of several ranks must find power for
/// as many as the server could take, wherever they go: which devices those are may not matter, or a device that is taken could let
/// the job in.
pub(crate) fn power_objection(question: &JobQuestion<'_>, server: &Server, device: &Device) -> Option<Obstacle> {
    let power = question.demand.power?;
    let draw = match question.demand.width() {
        0 | 1 => server.draw_with(|other| if other.id() == device.id() { power.load } else { Load::NONE }).0,
        ranks => server.predicted_draw().0 + ranks.min(server.devices.len()) as f64 * server.most_added(power.load).0,
    };
    let kept = question.reservation.map_or(0.0, |head| head.kept_of_power(server.spec.id, question.demand.ends_at).0);
    let predicted = Watts(draw + kept).min(server.most_draw());
    (predicted.0 > power.budget.0 + ROUNDING).then_some(Obstacle::PowerBudget { predicted, budget: power.budget })
}

/// Whether the budget would suffice for the job with a rank on this device if nothing else ran on the server.
pub(crate) fn could_ever_power(server: &Server, device: &Device, demand: &Demand<'_>) -> bool {
    demand.power.is_none_or(|power| server.least_budget(device, power.load, demand.width()).0 <= power.budget.0 + ROUNDING)
}

impl Server {
    /// The most watts that a rank of this load adds to one of its devices.
    pub(crate) fn most_added(&self, load: Load) -> Watts {
        let added = self.devices.iter().map(|device| device.draw_alone(load) - device.draw_alone(Load::NONE));
        Watts(added.fold(0.0, f64::max))
    }

    /// The watts beyond which its devices draw nothing, whatever runs.
    fn most_draw(&self) -> Watts {
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
