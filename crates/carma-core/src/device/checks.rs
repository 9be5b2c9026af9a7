//! What keeps a device closed to every job, whichever job it is.

use super::{Device, Gate};
use crate::config::{Config, FirstWindow, Foreign};
use crate::obstacle::{Obstacle, PlacementKind};
use crate::units::Time;

struct Question<'a> {
    device: &'a Device,
    kind: PlacementKind,
    config: &'a Config,
    now: Time,
}

type Check = fn(&Question<'_>) -> Option<Obstacle>;

/// In the order in which people want to see them.
const CHECKS: [Check; 15] = [
    lost,
    partitioned,
    switching,
    drained,
    ending,
    host_short,
    stale,
    unobserved,
    gate,
    idle,
    exclusive,
    foreign,
    job_limit,
    corrected,
    busy,
];

/// Everything that keeps the device closed this way.
pub(crate) fn device_obstacles<'a>(
    device: &'a Device,
    kind: PlacementKind,
    config: &'a Config,
    now: Time,
) -> impl Iterator<Item = Obstacle> + 'a {
    CHECKS.iter().filter_map(move |check| check(&Question { device, kind, config, now }))
}

/// The first thing that keeps the device closed this way.
pub(crate) fn first_device_obstacle(device: &Device, kind: PlacementKind, config: &Config, now: Time) -> Option<Obstacle> {
    device_obstacles(device, kind, config, now).next()
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

fn ending(q: &Question<'_>) -> Option<Obstacle> {
    q.device.ending.then_some(Obstacle::ServerEnding)
}

fn host_short(q: &Question<'_>) -> Option<Obstacle> {
    q.device.host_short.then_some(Obstacle::HostShort)
}

fn unobserved(q: &Question<'_>) -> Option<Obstacle> {
    let telemetry = &q.device.telemetry;
    let enough = match (q.kind, q.config.window.first) {
        (PlacementKind::Share, _) | (PlacementKind::Idle, FirstWindow::Always) => telemetry.is_full(),
        // One reading shows whether another process is there.
        (PlacementKind::Idle, FirstWindow::ToShare) => telemetry.memory_used().is_some(),
    };
    (!enough).then_some(Obstacle::Observing)
}

fn stale(q: &Question<'_>) -> Option<Obstacle> {
    grown_stale(q.device, q.config, q.now)
}

/// Time alone closes a device whose samples stop; the cached availability does not show that.
pub(crate) fn grown_stale(device: &Device, config: &Config, now: Time) -> Option<Obstacle> {
    let age = now - device.sampled_at?;
    (age > config.window.stale_after).then_some(Obstacle::Stale { age })
}

fn gate(q: &Question<'_>) -> Option<Obstacle> {
    let Gate::Closed { by, until } = q.device.gate else { return None };
    q.device.gate.is_closed(q.now).then_some(Obstacle::GateClosed { behind: by, until })
}

fn idle(q: &Question<'_>) -> Option<Obstacle> {
    let must_be = q.kind == PlacementKind::Idle || !q.config.mapping.policy.shares;
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

/// An idle device may still look busy in a window that includes the previous job.
fn busy(q: &Question<'_>) -> Option<Obstacle> {
    if q.kind == PlacementKind::Idle {
        return None;
    }
    let screened = q.config.mapping.policy.screened.then(|| q.config.screen.objection(&q.device.risk)).flatten();
    screened.or_else(|| {
        let (_, score) = q.device.risk.busy()?;
        let cap = q.config.admission.utilisation_cap;
        (score > cap).then_some(Obstacle::UtilisationCap { score, cap })
    })
}
