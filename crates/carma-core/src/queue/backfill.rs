//! Conservative backfill: what is kept for the head of the queue while others may pass it.

use crate::admission::{Demand, JobQuestion, Obstacle, Way, job_obstacles};
use crate::config::Config;
use crate::device::{Device, Tenant};
use crate::fleet::{Fleet, OfferKind, Server, Summary};
use crate::mapping::Score;
use crate::units::{MiB, Time};
use crate::{DeviceId, JobId};

/// The devices kept for the head of the queue, and from when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadReservation {
    /// The job they are kept for.
    pub head: JobId,
    /// The devices, in order.
    pub devices: Vec<DeviceId>,
    /// When the head should be able to start; unset when no time limit tells, and then the devices are kept from now on.
    pub from: Option<Time>,
}

impl HeadReservation {
    /// What keeps a later job off a device, if anything: it may pass only where it is gone in time.
    pub(crate) fn objection(&self, device: DeviceId, ends_at: Option<Time>) -> Option<Obstacle> {
        let kept = self.devices.binary_search(&device).is_ok();
        let gone_in_time = matches!((ends_at, self.from), (Some(end), Some(from)) if end <= from);
        (kept && !gone_in_time).then_some(Obstacle::ReservedForHead { head: self.head, from: self.from })
    }

    /// Keeps for the head the devices that are soonest free for it by the time limits of what runs there: in one server
    /// if the head must have that, the earliest server first.
    pub(crate) fn plan(fleet: &Fleet, head: &Demand<'_>, config: &Config, now: Time) -> Option<Self> {
        let ready = |server: &Server| -> Vec<(Ready, DeviceId)> {
            server.devices.iter().filter_map(|device| Some((ready_at(device, head, config, now)?, device.id()))).collect()
        };
        let one = fleet.best(
            0..fleet.servers().len(),
            |summary| {
                summary.may_hold(OfferKind::Capacity, head.width(), |nth| head.ranks[nth].alone).then(|| earliest(summary, head, now))
            },
            |server| soonest(ready(server), head).map(|chosen| (chosen.0.score(), chosen)),
        );
        let chosen = one.or_else(|| {
            let all = || fleet.servers().iter().flat_map(ready).collect();
            head.spec.may_span_servers.then(all).and_then(|devices| soonest(devices, head))
        });
        chosen.map(|(ready, devices)| Self {
            head: head.spec.id,
            devices,
            from: if let Ready::At(time) = ready { Some(time) } else { None },
        })
    }
}

/// No server below the summary is ready for the head before this: unless memory is there already, somebody must go.
fn earliest(summary: &Summary, head: &Demand<'_>, now: Time) -> Score {
    let room = !head.needs_idle && summary.may_hold(OfferKind::Prospect, head.width(), |nth| head.ranks[nth].to_share);
    let ready = if room { Some(now) } else { summary.soonest(head.width()).map(|end| end.max(now)) };
    ready.map_or(Ready::Unknown, Ready::At).score()
}

/// When a device is free for the head. The order says what is sooner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ready {
    At(Time),
    Unknown,
}

impl Ready {
    fn score(self) -> Score {
        match self {
            Self::At(time) => Score(time.milliseconds()),
            Self::Unknown => Score(u64::MAX),
        }
    }
}

/// The soonest devices for all ranks, in order, and when the last of them is ready.
fn soonest(mut devices: Vec<(Ready, DeviceId)>, head: &Demand<'_>) -> Option<(Ready, Vec<DeviceId>)> {
    if devices.len() < head.width() {
        return None;
    }
    devices.sort_unstable();
    devices.truncate(head.width());
    let last = devices.last()?.0;
    let mut chosen: Vec<DeviceId> = devices.into_iter().map(|(_, device)| device).collect();
    chosen.sort_unstable();
    Some((last, chosen))
}

/// When the device could take any rank of the head; `None`: it never could.
fn ready_at(device: &Device, head: &Demand<'_>, config: &Config, now: Time) -> Option<Ready> {
    if device.lost || device.drained || device.partitioned {
        return None;
    }
    let neediest = head.ranks.first()?;
    let way = Way::Idle;
    let question = JobQuestion { demand: head, way, config, reservation: None, suspended_by: None, cursor: None };
    // Other users' tenants leave in time; what the device is does not change.
    let fixed = |obstacle: &Obstacle| !matches!(obstacle, Obstacle::MpsOtherUser { .. } | Obstacle::ForeignProcesses { .. });
    if job_obstacles(&question, neediest, device).any(|obstacle| fixed(&obstacle)) {
        return None;
    }
    let shares = config.mapping.policy.shares && !head.needs_idle;
    let mut available = device.available(config);
    if shares && available >= neediest.to_share {
        return Some(Ready::At(now));
    }
    let mut tenants: Vec<&Tenant> = device.tenants.iter().collect();
    tenants.sort_by_key(|tenant| tenant.ends_at.map_or(Ready::Unknown, Ready::At));
    for tenant in &tenants {
        // A tenant past its limit is being ended.
        let Some(end) = tenant.ends_at else { break };
        available += released_by(tenant, config);
        if shares && available >= neediest.to_share {
            return Some(Ready::At(end.max(now)));
        }
    }
    let idle = tenants.last().map_or(Some(now), |last| last.ends_at);
    Some(match idle {
        Some(end) if device.foreign.is_empty() => Ready::At(end.max(now)),
        _ => Ready::Unknown,
    })
}

fn released_by(tenant: &Tenant, config: &Config) -> MiB {
    if config.admission.reservations { tenant.counted() } else { tenant.attributed() }
}
