//! What a job needs of devices, computed from its request, its history and the policy in force.

use std::cell::OnceCell;
use std::ops::Deref;

use super::JobEnd;
use super::power_checks::could_ever_power;
use super::time_checks::lasts;
use crate::JobId;
use crate::config::Config;
use crate::device::Device;
use crate::fleet::{Fleet, Server};
use crate::forecast::InterferenceProfile;
use crate::job::{HostClaim, Job, JobSpec, RankMemory};
use crate::power::Load;
use crate::sharing::{MigLayout, SharingMode};
use crate::units::{MiB, Seconds, Time, Watts};

/// A job's needs at this moment.
#[derive(Debug, Clone)]
pub(crate) struct Demand<'a> {
    /// Its request.
    pub(crate) spec: &'a JobSpec,
    /// What each rank needs, the neediest first.
    pub(crate) ranks: Ranks,
    /// It must start on idle devices.
    pub(crate) needs_idle: bool,
    /// What it claims of the host it is launched on.
    pub(crate) host: HostClaim,
    /// Jobs that it must not share a device with.
    pub(crate) apart_from: &'a [JobId],
    /// When it would end if it started now.
    pub(crate) ends: JobEnd,
    /// How long it should take alone from now on.
    pub(crate) length: Seconds,
    /// When it would start.
    pub(crate) now: Time,
    /// How long a server must last for it; unset: it may start on any.
    pub(crate) lasts: Option<Seconds>,
    /// Servers that end count as any other: to tell whether it is too large, or they end too soon.
    pub(crate) whenever: bool,
    /// Its part in interference, computed when needed: most jobs fail the memory check before.
    pub(crate) profile: OnceCell<InterferenceProfile>,
    /// Its added power, and the limit; unset without a budget.
    pub(crate) power: Option<PowerDemand>,
    /// The mode it requests, where GPUs may be switched to that.
    pub(crate) switch: Option<SharingMode>,
}

/// What one rank adds to power draw, under a budget.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PowerDemand {
    pub(crate) load: Load,
    pub(crate) budget: Watts,
}

/// The needs of all ranks. Most jobs have one rank, and a decision considers many jobs: one rank costs no allocation.
#[derive(Debug, Clone)]
pub(crate) enum Ranks {
    One([RankNeed; 1]),
    Many(Vec<RankNeed>),
}

impl Ranks {
    fn neediest_first(mut self) -> Self {
        if let Self::Many(ranks) = &mut self {
            ranks.sort_by_key(|need| std::cmp::Reverse((need.to_share, need.alone)));
        }
        self
    }
}

impl Deref for Ranks {
    type Target = [RankNeed];
    fn deref(&self) -> &[RankNeed] {
        match self {
            Self::One(rank) => rank,
            Self::Many(ranks) => ranks,
        }
    }
}

/// What one rank needs of its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RankNeed {
    /// Which rank.
    pub(crate) rank: usize,
    /// Free memory on a shared device: need and margin, or the floor.
    pub(crate) to_share: MiB,
    /// Whole memory of an idle device.
    pub(crate) alone: MiB,
    /// Memory reserved for it there.
    pub(crate) reserved: ReservedMemory,
    /// Its known need, if an enforced limit does no harm.
    pub(crate) known: Option<MiB>,
    /// Nothing is known about its memory: what is reserved is a guess.
    pub(crate) unknown: bool,
}

/// The memory reserved for a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReservedMemory {
    /// This much, or all of the device if that is less.
    UpTo(MiB),
    /// The whole device.
    Whole,
}

impl ReservedMemory {
    /// The reserved memory on a device of this size.
    pub(crate) fn on(self, capacity: MiB) -> MiB {
        match self {
            Self::UpTo(memory) => memory.min(capacity),
            Self::Whole => capacity,
        }
    }
}

impl<'a> Demand<'a> {
    /// Works out what the job needs. An estimate above the largest devices requires those, since estimates err;
    /// a known need does not give way.
    pub(crate) fn of(job: &'a Job, config: &Config, fleet: &Fleet, now: Time) -> Self {
        let spec = &job.spec;
        let largest = OnceCell::new();
        let raised = job.climb.floor;
        let whole = spec.exclusive || job.climb.whole_gpu;
        // The published ring policy requires no free memory at all when it knows nothing.
        let floor = if config.mapping.policy.floor || config.admission.reservations { config.admission.floor } else { MiB::ZERO };
        let need = |rank| {
            let need = spec.memory.of_rank(rank, config.mapping.basis);
            let (share, alone, reserved) = match need {
                RankMemory::Known(memory) => (memory + config.admission.margin, memory, memory),
                RankMemory::Estimated { upper, sure } => {
                    let most = *largest.get_or_init(|| fleet.largest_for(spec.gpus as usize, spec.may_span_servers));
                    let doubt = if sure { MiB::ZERO } else { config.admission.doubt_margin };
                    (upper + config.admission.margin + doubt, upper.min(most), upper)
                }
                RankMemory::Unknown => (floor, MiB::ZERO, floor),
            };
            RankNeed {
                rank,
                to_share: share.max(raised),
                alone: alone.max(raised),
                reserved: if whole { ReservedMemory::Whole } else { ReservedMemory::UpTo(reserved.max(raised)) },
                known: if let RankMemory::Known(memory) = need { Some(memory.max(raised)) } else { None },
                unknown: need == RankMemory::Unknown,
            }
        };
        let ranks = if spec.gpus == 1 { Ranks::One([need(0)]) } else { Ranks::Many((0..spec.gpus as usize).map(need).collect()) };
        let ranks = ranks.neediest_first();
        let left = spec.expected_duration.and_then(|_| job.expected_remaining(now));
        Self {
            spec,
            ranks,
            needs_idle: whole,
            host: spec.host_claim(),
            apart_from: &job.apart_from,
            ends: JobEnd { limit: spec.time_limit.map(|limit| now + limit), predicted: left.map(|left| now + left) },
            length: left.unwrap_or(config.queue.unknown_duration),
            now,
            lasts: job.needs_server_for(),
            whenever: false,
            profile: OnceCell::new(),
            power: config.power.budget.map(|budget| PowerDemand { load: Load::of(InterferenceProfile::of(spec)), budget }),
            switch: spec.mode.sharing().filter(|mode| config.modes.allows(*mode)),
        }
    }

    /// Its part in interference.
    pub(crate) fn profile(&self) -> InterferenceProfile {
        *self.profile.get_or_init(|| InterferenceProfile::of(self.spec))
    }

    /// Whether a device that does not offer the mode it requests could be switched to that, and hold this rank then.
    pub(crate) fn could_have(&self, device: &Device, need: &RankNeed) -> bool {
        let instance = || MigLayout::ALL[0].parts(device.spec.memory).first().is_some_and(|part| need.alone <= part.memory);
        self.switch.is_some_and(|mode| {
            let possible = device.id().instance.is_none() && !device.switches.refused.contains(&mode);
            possible && (mode != SharingMode::Mig || self.width() == 1 && !self.needs_idle && instance())
        })
    }

    /// How many devices it wants.
    pub(crate) fn width(&self) -> usize {
        self.ranks.len()
    }
}

/// The devices of a server that the job could use if nothing else ran there, by how long it lasts, what its host has and its power
/// budget allows.
pub(crate) fn usable_devices<'a>(server: &'a Server, demand: &'a Demand<'_>) -> impl Iterator<Item = &'a Device> + Clone {
    let held = demand.host.fits_in(server.host_total()) && lasts(demand, server);
    server.devices.iter().filter(move |device| held && could_ever_power(server, device, demand))
}
