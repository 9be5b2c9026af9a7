//! What keeps one job off a device that is open to others.

use super::{Demand, HeadReservation, HostReservation, RankNeed};
use crate::config::Config;
use crate::device::Device;
use crate::fair_share::ReserveBound;
use crate::job::JobSpec;
use crate::obstacle::{Obstacle, PlacementKind};
use crate::policy::{Order, Score, SharingPair};
use crate::sharing::{CollocationMode, RequestedMode};
use crate::tenant::Tenant;
use crate::{DeviceId, JobId};

/// A job, and the constraints on it besides the devices.
#[derive(Clone, Copy)]
pub(crate) struct JobQuestion<'a> {
    /// What the job needs.
    pub(crate) demand: &'a Demand<'a>,
    /// How it would get onto the device.
    pub(crate) kind: PlacementKind,
    /// The rules in force.
    pub(crate) config: &'a Config,
    /// What is kept for heads of the queue, when the job comes after them.
    pub(crate) kept: &'a [HeadReservation],
    /// What is kept of a host for a job without GPUs that comes before it.
    pub(crate) host_kept: Option<HostReservation>,
    /// What it must leave to other users.
    pub(crate) reserve: Option<ReserveBound<'a>>,
    /// The job whose recovery suspends collocation.
    pub(crate) suspended_by: Option<JobId>,
    /// The device placed on last, for policies that go round.
    pub(crate) cursor: Option<DeviceId>,
    /// It is to share only where that saves energy.
    pub(crate) packs: bool,
    /// Waiting jobs per GPU.
    pub(crate) pressure: f64,
}

type Check = fn(&JobQuestion<'_>, &Device) -> Option<Obstacle>;

const CHECKS: [Check; 8] = [suspended, needs_idle, mode, mps_user, policy, apart, reserved, fair_share];

/// Everything that keeps this rank off this device.
pub(crate) fn job_obstacles<'a>(
    question: &'a JobQuestion<'_>,
    need: &'a RankNeed,
    device: &'a Device,
) -> impl Iterator<Item = Obstacle> + 'a {
    CHECKS.iter().filter_map(move |check| check(question, device)).chain(memory(question, need, device))
}

/// The first thing that keeps this rank off this device.
pub(crate) fn first_job_obstacle(question: &JobQuestion<'_>, need: &RankNeed, device: &Device) -> Option<Obstacle> {
    // Memory fails most often, so check it first.
    memory(question, need, device).or_else(|| CHECKS.iter().find_map(|check| check(question, device)))
}

fn memory(q: &JobQuestion<'_>, need: &RankNeed, device: &Device) -> Option<Obstacle> {
    let capacity = device.spec.memory;
    if q.kind == PlacementKind::Idle || q.demand.needs_idle {
        return (need.alone > capacity).then_some(Obstacle::TooSmall { needed: need.alone, capacity });
    }
    // A closed device has no room on record; what it would have is worked out for the explanation.
    let available = device.availability().room.map_or_else(|| device.available(q.config), |room| room.available);
    (need.to_share > available).then_some(Obstacle::Memory { needed: need.to_share, available })
}

fn suspended(q: &JobQuestion<'_>, _: &Device) -> Option<Obstacle> {
    (q.kind == PlacementKind::Share).then_some(q.suspended_by)?.map(|recovering| Obstacle::CollocationSuspended { recovering })
}

fn needs_idle(q: &JobQuestion<'_>, _: &Device) -> Option<Obstacle> {
    (q.kind == PlacementKind::Share && q.demand.needs_idle).then_some(Obstacle::NeedsIdle)
}

fn mode(q: &JobQuestion<'_>, device: &Device) -> Option<Obstacle> {
    mode_objection(q.demand.spec, device)
}

/// Why the device will never do for the job in the mode it has, if so.
pub(crate) fn mode_objection(spec: &JobSpec, device: &Device) -> Option<Obstacle> {
    let wanted = spec.mode;
    match (wanted, device.spec.mode) {
        // The mode before it was partitioned does not determine the mode after joining.
        (RequestedMode::Mps, _) if device.partitioned => Some(Obstacle::WrongMode { wanted }),
        (_, CollocationMode::Mig) if spec.gpus > 1 => Some(Obstacle::MigIsSingle),
        (RequestedMode::Streams, CollocationMode::Mps { exclusive_process: true }) => Some(Obstacle::MpsClientsOnly),
        (RequestedMode::Mps, CollocationMode::Streams | CollocationMode::Mig)
        | (RequestedMode::Mig, CollocationMode::Streams | CollocationMode::Mps { .. }) => Some(Obstacle::WrongMode { wanted }),
        _ => None,
    }
}

fn mps_user(q: &JobQuestion<'_>, device: &Device) -> Option<Obstacle> {
    let CollocationMode::Mps { exclusive_process } = device.spec.mode else { return None };
    if exclusive_process && !device.foreign.is_empty() {
        // A foreign process on an exclusive-process device excludes all others.
        return Some(Obstacle::ForeignProcesses { count: device.foreign.len() });
    }
    if q.demand.spec.mode == RequestedMode::Streams {
        return None;
    }
    let other = device.tenants.iter().find(|tenant| tenant.mps_client && tenant.user != q.demand.spec.user)?;
    Some(Obstacle::MpsOtherUser { serves: other.user })
}

fn policy(q: &JobQuestion<'_>, device: &Device) -> Option<Obstacle> {
    let policy = q.config.mapping.policy;
    (q.kind == PlacementKind::Share).then(|| (policy.objects)(q.demand.spec, &device.tenants).or_else(|| q.predict(device)?.err()))?
}

impl JobQuestion<'_> {
    /// What is kept for other jobs: one that was the head before may pass the head now.
    pub(super) fn kept_for_others(&self) -> impl Iterator<Item = &HeadReservation> {
        self.kept.iter().filter(|kept| kept.head != self.demand.spec.id)
    }

    /// The prediction of a policy for the job beside those on a device.
    pub(crate) fn predict(&self, device: &Device) -> Option<Result<Score, Obstacle>> {
        self.predict_beside(device, &device.tenants)
    }

    /// The same beside only some of them.
    pub(crate) fn predict_beside(&self, device: &Device, tenants: &[Tenant]) -> Option<Result<Score, Obstacle>> {
        let Order::Predicted(prediction) = self.config.mapping.policy.order else { return None };
        let mode = device.spec.mode;
        Some((prediction.of)(&SharingPair {
            newcomer: self.demand.profile(),
            mode,
            tenants,
            limits: self.config.forecast,
            length: self.demand.length,
            now: self.demand.now,
            pressure: self.pressure,
        }))
    }
}

fn apart(q: &JobQuestion<'_>, device: &Device) -> Option<Obstacle> {
    let on_it = |job: &&JobId| device.tenants.iter().any(|tenant| tenant.attempt.job == **job);
    q.demand.apart_from.iter().find(on_it).map(|with| Obstacle::InterferedBefore { with: *with })
}

fn reserved(q: &JobQuestion<'_>, device: &Device) -> Option<Obstacle> {
    let ends = || q.demand.ends.stretched(q.demand.now, device.slowdown_of(q.demand.profile()));
    q.kept_for_others().find_map(|kept| kept.objection(device.id(), if kept.predicted { ends() } else { q.demand.ends }))
}

fn fair_share(q: &JobQuestion<'_>, device: &Device) -> Option<Obstacle> {
    q.reserve?.objection(device)
}
