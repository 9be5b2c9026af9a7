//! The power budget of a server: nobody is launched whose draw would pass it.

use super::Load;
use crate::DeviceId;
use crate::admission::{Demand, JobQuestion, Obstacle};
use crate::fleet::Server;
use crate::units::Watts;

/// Sums of the same watts in another order differ by less.
const ROUNDING: f64 = 1e-6;

/// Why the server's power does not suffice for one rank more on each of these devices, if so.
pub(crate) fn power_objection(question: &JobQuestion<'_>, server: &Server, devices: &[DeviceId]) -> Option<Obstacle> {
    let power = question.demand.power?;
    let draw = server.draw_with(|device| if devices.contains(&device.id()) { power.load } else { Load::NONE });
    let kept = question.reservation.map_or(0.0, |head| head.kept_of_power(server.spec.id, question.demand.ends_at).0);
    let predicted = Watts(draw.0 + kept);
    (predicted.0 > power.budget.0 + ROUNDING).then_some(Obstacle::PowerBudget { predicted, budget: power.budget })
}

/// Whether the budget would suffice for so many ranks of the job if nothing else ran on the server, wherever they go.
pub(crate) fn could_ever_power(server: &Server, demand: &Demand<'_>, ranks: usize) -> bool {
    demand.power.is_none_or(|power| server.least_budget(power.load, ranks).0 <= power.budget.0 + ROUNDING)
}

impl Server {
    /// The most watts that a rank of this load adds to one of its devices.
    pub(crate) fn most_added(&self, load: Load) -> Watts {
        let added = self.devices.iter().map(|device| device.draw_alone(load) - device.draw_alone(Load::NONE));
        Watts(added.fold(0.0, f64::max))
    }

    /// The watts with which so many ranks of this load can run on it, wherever they go, if nothing else does.
    pub(crate) fn least_budget(&self, load: Load, ranks: usize) -> Watts {
        let idle: f64 = self.devices.iter().map(|device| device.draw_alone(Load::NONE)).sum();
        Watts(idle + ranks as f64 * self.most_added(load).0)
    }
}
