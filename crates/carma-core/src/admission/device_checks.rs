//! What keeps a device closed to every job. None of this depends on the job that asks.

use super::{Obstacle, Way};
use crate::config::{Config, FirstWindow, Foreign};
use crate::device::{Device, Gate};
use crate::units::Time;

struct Question<'a> {
    device: &'a Device,
    way: Way,
    config: &'a Config,
    now: Time,
}

type Check = fn(&Question<'_>) -> Option<Obstacle>;

/// In the order in which people want to hear of them.
const CHECKS: [Check; 14] =
    [lost, partitioned, switching, drained, host_short, stale, unobserved, gate, idle, exclusive, foreign, job_limit, corrected, busy];

/// Everything that keeps the device closed this way.
pub(crate) fn device_obstacles<'a>(device: &'a Device, way: Way, config: &'a Config, now: Time) -> impl Iterator<Item = Obstacle> + 'a {
    CHECKS.iter().filter_map(move |check| check(&Question { device, way, config, now }))
}

/// The first thing that keeps the device closed this way.
pub(crate) fn first_device_obstacle(device: &Device, way: Way, config: &Config, now: Time) -> Option<Obstacle> {
    device_obstacles(device, way, config, now).next()
}

fn lost(q: &Question<'_>) -> Option<Obstacle> {
    q.device.lost.then_some(Obstacle::Lost)
}

fn partitioned(q: &Question<'_>) -> Option<Obstacle> {
    q.device.partitioned.then_some(Obstacle::Partitioned)
}

fn switching(q: &Question<'_>) -> Option<Obstacle> {
    q.device.switches.to.map(|to| Obstacle::Switching { to })
}

fn drained(q: &Question<'_>) -> Option<Obstacle> {
    q.device.drained.then_some(Obstacle::Drained)
}

fn host_short(q: &Question<'_>) -> Option<Obstacle> {
    q.device.host_short.then_some(Obstacle::HostShort)
}

fn unobserved(q: &Question<'_>) -> Option<Obstacle> {
    let telemetry = &q.device.telemetry;
    let enough = match (q.way, q.config.window.first) {
        (Way::Share, _) | (Way::Idle, FirstWindow::Always) => telemetry.is_full(),
        // One reading tells whether anybody else is there.
        (Way::Idle, FirstWindow::ToShare) => telemetry.memory_used().is_some(),
    };
    (!enough).then_some(Obstacle::Observing)
}

fn stale(q: &Question<'_>) -> Option<Obstacle> {
    grown_stale(q.device, q.config, q.now)
}

/// Time alone closes a device whose samples stop; a standing that was worked out before does not know.
pub(crate) fn grown_stale(device: &Device, config: &Config, now: Time) -> Option<Obstacle> {
    let age = now - device.heard_at?;
    (age > config.window.stale_after).then_some(Obstacle::Stale { age })
}

fn gate(q: &Question<'_>) -> Option<Obstacle> {
    let Gate::Closed { by, until } = q.device.gate else { return None };
    q.device.gate.is_closed(q.now).then_some(Obstacle::GateClosed { behind: by, until })
}

fn idle(q: &Question<'_>) -> Option<Obstacle> {
    let must_be = q.way == Way::Idle || !q.config.mapping.policy.shares;
    (must_be && !q.device.is_idle(q.config)).then(|| Obstacle::NotIdle {
        jobs: q.device.tenants.len(),
        foreign: q.device.foreign.len(),
        occupied: q.device.occupied(),
    })
}

fn exclusive(q: &Question<'_>) -> Option<Obstacle> {
    let holder = q.device.tenants.iter().find(|tenant| tenant.exclusive)?;
    Some(Obstacle::HeldExclusively { by: holder.attempt.job })
}

fn foreign(q: &Question<'_>) -> Option<Obstacle> {
    let count = q.device.foreign.len();
    (q.config.admission.foreign == Foreign::Avoid && count > 0).then_some(Obstacle::ForeignProcesses { count })
}

fn job_limit(q: &Question<'_>) -> Option<Obstacle> {
    let limit = q.config.admission.jobs_per_gpu?;
    (q.device.tenants.len() >= limit as usize).then_some(Obstacle::JobLimit { limit })
}

fn corrected(q: &Question<'_>) -> Option<Obstacle> {
    q.device.corrected
}

/// An idle device may still look busy in a window that remembers the job before.
fn busy(q: &Question<'_>) -> Option<Obstacle> {
    if q.way == Way::Idle {
        return None;
    }
    let screened = q.config.mapping.policy.screened.then(|| q.config.screen.objection(&q.device.risk)).flatten();
    screened.or_else(|| {
        let (_, score) = q.device.risk.busy()?;
        let cap = q.config.admission.utilisation_cap;
        (score > cap).then_some(Obstacle::UtilisationCap { score, cap })
    })
}
