//! The power budget of a server: no job is launched that would exceed it.

use super::{Demand, JobQuestion};
use crate::device::Device;
use crate::fleet::Server;
use crate::obstacle::Obstacle;
use crate::power::Load;
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
    let kept: f64 = question.kept_for_others().map(|kept| kept.kept_of_power(server.spec.id, question.demand.ends).0).sum();
    let predicted = Watts(draw + kept).min(server.most_draw());
    (predicted.0 > power.budget.0 + ROUNDING).then_some(Obstacle::PowerBudget { predicted, budget: power.budget })
}

/// Whether the budget would suffice for the job with a rank on this device if nothing else ran on the server.
pub(crate) fn could_ever_power(server: &Server, device: &Device, demand: &Demand<'_>) -> bool {
    demand.power.is_none_or(|power| server.least_budget(device, power.load, demand.width()).0 <= power.budget.0 + ROUNDING)
}
