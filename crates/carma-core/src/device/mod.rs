//! A GPU or MIG instance as the scheduler sees it: its properties, tenants, reserved memory and telemetry.

mod checks;
mod draw;
mod gate;
mod switches;

pub(crate) use checks::{device_obstacles, first_device_obstacle, grown_stale};
pub(crate) use draw::Basis;
pub use gate::Gate;
pub use switches::Switches;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::forecast::{CoRunners, InterferenceProfile};
use crate::obstacle::{Obstacle, PlacementKind};
use crate::policy::{Facts, Score};
use crate::power::PowerRange;
use crate::risk::Risk;
use crate::sharing::CollocationMode;
use crate::telemetry::{Metric, Sample, Telemetry, WindowSummary};
use crate::tenant::{Owner, ProcessUse, Tenant, TenantMemory};
use crate::units::{Fraction, MiB, Seconds, Time, Watts};
use crate::{AttemptId, DeviceId};

/// What a device is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSpec {
    /// Its name.
    pub id: DeviceId,
    /// Its whole memory.
    pub memory: MiB,
    /// How processes share it.
    pub mode: CollocationMode,
    /// Between which watts its draw lies, if the driver reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<PowerRange>,
    /// The driver can limit the memory of each job on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub limits_memory: bool,
}

impl DeviceSpec {
    /// A GPU that plain processes share, or a MIG instance.
    pub const fn new(id: DeviceId, memory: MiB) -> Self {
        let mode = if id.instance.is_some() { CollocationMode::Mig } else { CollocationMode::Streams };
        Self { id, memory, mode, power: None, limits_memory: false }
    }
}

/// A device with everything known about it.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "facts that hold or not, whatever the others do")]
pub struct Device {
    /// What it is.
    pub spec: DeviceSpec,
    /// It answers no more.
    pub lost: bool,
    /// It takes nothing new, because an operator drained it.
    pub drained: bool,
    /// Its host is short of memory, CPU or disk.
    pub host_short: bool,
    /// Its server ends soon.
    pub ending: bool,
    /// It is partitioned into MIG instances, which are devices of their own.
    pub partitioned: bool,
    /// Its instances could be joined again.
    joinable: bool,
    /// Switches of its sharing mode.
    pub switches: Switches,
    /// Our attempts on it.
    pub tenants: Vec<Tenant>,
    /// Processes on it that are not our attempts there, with their memory where it can be read.
    pub foreign: Vec<ProcessUse>,
    /// The observation gate.
    pub gate: Gate,
    /// What was seen of it.
    pub telemetry: Telemetry,
    /// When the last sample came in, by the scheduler's clock; unset where finished windows come, which stand until replaced.
    pub sampled_at: Option<Time>,
    /// The risk scores of what was seen.
    pub risk: Risk,
    /// Why it takes no more jobs: its tenants interfere more than predicted.
    pub corrected: Option<Obstacle>,
    /// When the last attempt left it: for a window's time, what is seen may be of that one.
    pub(crate) left_at: Option<Time>,
    /// The power limit that the rules give, and that was requested.
    pub(crate) wanted_limit: Option<Watts>,
    /// The power limit that was set for us; unset: the device's own.
    pub power_limit: Option<Watts>,
    /// Memory given back by attempts that ended after the last reading.
    released: MiB,
    availability: Availability,
}

/// What a device can offer to any job; derived from the rest and cached, because searches read it often.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Availability {
    /// It is idle and open, with this whole memory.
    pub idle: Option<MiB>,
    /// It may be shared.
    pub room: Option<Room>,
    /// What can be expected of it, open or not; unset: nothing.
    pub outlook: Option<Outlook>,
    /// It is partitioned, could be joined, and no process is seen on it.
    pub vacant: bool,
}

impl Availability {
    /// Whether a job may fit now that did not fit before.
    pub(crate) fn improves_on(&self, before: &Self) -> bool {
        let idle = self.idle.is_some() && before.idle.is_none();
        let room = self.room.is_some_and(|room| before.room.is_none_or(|before| room.available > before.available));
        idle || room || self.vacant && !before.vacant
    }
}

/// The availability of a device that is neither lost nor drained nor partitioned, on a server that does not end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlook {
    /// Memory that can be reserved, now or when its gate opens; unset: there is another obstacle.
    pub available: Option<MiB>,
    /// The earliest time at which a tenant ends that must end for more room; unset: unknown.
    pub next_end: Option<Time>,
}

/// Room on a device that may be shared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Room {
    /// Memory that can be reserved, without the guard.
    pub available: MiB,
    /// Its place in the policy's order.
    pub score: Score,
}

/// The share of its reserved memory that a new attempt must use before its load counts as known.
const CONFIRMED_SHARE: Fraction = Fraction::clamped(0.7);

impl Device {
    pub(crate) fn new(spec: DeviceSpec) -> Self {
        Self {
            spec,
            lost: false,
            drained: false,
            host_short: false,
            ending: false,
            partitioned: false,
            joinable: false,
            switches: Switches::default(),
            tenants: Vec::new(),
            foreign: Vec::new(),
            gate: Gate::Open,
            telemetry: Telemetry::Silent,
            sampled_at: None,
            risk: Risk::default(),
            corrected: None,
            left_at: None,
            wanted_limit: None,
            power_limit: None,
            released: MiB::ZERO,
            availability: Availability::default(),
        }
    }

    /// Its name.
    pub const fn id(&self) -> DeviceId {
        self.spec.id
    }

    /// Whether jobs could ever run on it: it answers, and it is not permanently partitioned.
    pub const fn exists(&self) -> bool {
        !self.lost && (!self.partitioned || self.joinable)
    }

    /// Whether it may take jobs now or later, as far as is known.
    pub(crate) const fn may_be_used(&self) -> bool {
        self.exists() && !self.drained && !self.ending
    }

    /// What it can offer to any job at all.
    pub const fn availability(&self) -> Availability {
        self.availability
    }

    /// Memory reserved for our attempts.
    pub fn reserved(&self) -> MiB {
        self.tenants.iter().map(|tenant| tenant.reserved).sum()
    }

    /// Memory in use by the last reading, less what has been given back since.
    pub fn occupied(&self) -> MiB {
        self.telemetry.memory_used().unwrap_or_default() - self.released
    }

    /// Memory that counts as used. With reservations that is, for each attempt, the larger of its reserved memory and its
    /// reading, plus what foreign processes are known to use or what the device's reading shows beyond our attempts.
    /// Without, it is the last reading.
    pub fn counted_as_used(&self, reservations: bool) -> MiB {
        if !reservations {
            return self.telemetry.memory_used().unwrap_or_default();
        }
        let ours: MiB = self.tenants.iter().map(Tenant::counted).sum();
        let attributed: MiB = self.tenants.iter().map(Tenant::attributed).sum();
        let outsiders: MiB = self.foreign.iter().filter_map(|process| process.memory).sum();
        ours + outsiders.max(self.occupied() - attributed)
    }

    /// Memory that can still be reserved.
    pub fn available(&self, config: &Config) -> MiB {
        self.available_beside(self.counted_as_used(config.admission.reservations), config)
    }

    /// Memory that could be reserved if this amount counted as used.
    pub(crate) fn available_beside(&self, used: MiB, config: &Config) -> MiB {
        self.spec.memory - config.admission.guard_of(self.spec.memory) - used
    }

    /// It has no attempts, no foreign processes and no memory without an owner.
    pub fn is_idle(&self, config: &Config) -> bool {
        self.tenants.is_empty() && self.foreign.is_empty() && self.occupied() <= config.admission.idle_memory
    }

    pub(crate) fn tenant_mut(&mut self, attempt: AttemptId) -> Option<&mut Tenant> {
        self.tenants.iter_mut().find(|tenant| tenant.attempt == attempt)
    }

    /// Takes in a sample.
    pub(crate) fn sample(&mut self, sample: Sample, config: &Config, now: Time) {
        // A repeated sample is no new reading.
        if self.telemetry.sample(sample, config.window.rule()) {
            self.sampled_at = Some(now);
        }
        self.new_reading(config);
    }

    /// Takes in a finished window.
    pub(crate) fn summarise(&mut self, summary: Box<WindowSummary>, config: &Config) {
        self.telemetry = Telemetry::Summarised(summary);
        self.sampled_at = None;
        self.new_reading(config);
    }

    fn new_reading(&mut self, config: &Config) {
        self.released = MiB::ZERO;
        self.reassess(config);
    }

    /// Goes by these rules from now on.
    pub(crate) fn apply_rules(&mut self, config: &Config) {
        self.telemetry.set_rule(config.window.rule());
        self.switches.refused.clear();
        self.reassess(config);
        self.corrected = self.corrected.filter(|_| config.correction.is_on());
        if let Gate::Closed { by, .. } = self.gate
            && let Some(tenant) = self.tenants.iter().find(|tenant| tenant.attempt == by)
        {
            self.gate = Gate::closed_by(by, config.gate.opens_after(tenant.launched_at, tenant.seen_at));
        }
    }

    fn reassess(&mut self, config: &Config) {
        self.risk = Risk::assess(&self.telemetry, &config.risk);
    }

    /// Lets an attempt in, and closes the gate behind it.
    pub(crate) fn admit(&mut self, tenant: Tenant, config: &Config, now: Time) {
        self.gate = Gate::closed_by(tenant.attempt, config.gate.opens_after(now, None));
        self.tenants.push(tenant);
        self.corrected = None;
    }

    /// Takes an ended attempt off.
    pub(crate) fn dismiss(&mut self, attempt: AttemptId, now: Time) -> Option<Tenant> {
        let place = self.tenants.iter().position(|tenant| tenant.attempt == attempt)?;
        let tenant = self.tenants.remove(place);
        self.released += tenant.attributed();
        self.left_at = Some(now);
        self.gate.open_after(attempt);
        self.corrected = None;
        Some(tenant)
    }

    /// Takes in a list of all processes on the device. Returns whether it differs from the last one, and our attempts that were seen for the first time.
    pub(crate) fn processes(&mut self, list: &[ProcessUse], config: &Config, now: Time) -> (bool, Vec<AttemptId>) {
        let foreign = std::mem::take(&mut self.foreign);
        let memory: Vec<TenantMemory> = self.tenants.iter().map(|tenant| tenant.memory).collect();
        self.tenants.iter_mut().for_each(|tenant| tenant.memory = TenantMemory::Unseen);
        let mut new = Vec::new();
        for process in list {
            let tenant = match process.owner {
                Owner::Attempt(attempt) => self.tenant_mut(attempt),
                Owner::Foreign { .. } => None,
            };
            let Some(tenant) = tenant else {
                self.foreign.push(*process);
                continue;
            };
            tenant.memory.add(process.memory);
            if tenant.seen_at.is_none() {
                tenant.seen_at = Some(now);
                new.push(tenant.attempt);
            }
        }
        for attempt in &new {
            self.gate.seen(*attempt, config.gate.opens_after(now, Some(now)));
        }
        for tenant in &mut self.tenants {
            if let TenantMemory::Reading(memory) = tenant.memory {
                tenant.plateau.note(memory, now);
            }
        }
        self.shorten_gate(config);
        let differs = !new.is_empty() || foreign != self.foreign || !memory.into_iter().eq(self.tenants.iter().map(|tenant| tenant.memory));
        (differs, new)
    }

    /// When the next reservation on it may be trimmed.
    pub(crate) fn trims_at(&self, config: &Config) -> Option<Time> {
        self.tenants.iter().filter_map(|tenant| tenant.trims_at(config.admission.trim_after)).min()
    }

    /// Opens the gate sooner behind a new attempt that uses about what is reserved, on a device that is no busier than predicted.
    fn shorten_gate(&mut self, config: &Config) {
        let Gate::Closed { by, until: Some(until) } = self.gate else { return };
        let newcomer = self.tenants.iter().find(|tenant| tenant.attempt == by);
        let Some((tenant, seen_at)) = newcomer.and_then(|tenant| Some((tenant, tenant.seen_at?))) else { return };
        let TenantMemory::Reading(memory) = tenant.memory else { return };
        let took = memory <= tenant.reserved && memory >= tenant.reserved.share(CONFIRMED_SHARE);
        let predicted: f64 = self.tenants.iter().map(|tenant| tenant.profile.smact).sum();
        if took && self.risk.score(Metric::Smact).is_none_or(|smact| smact.get() <= predicted) {
            self.gate = Gate::closed_by(by, Some(until.min(seen_at + config.gate.confirmed + Seconds::TICK)));
        }
    }

    /// Notes what our attempts use, some time after the last reading that was noted.
    pub(crate) fn note_memory(&mut self, now: Time, apart: Seconds) {
        for tenant in &mut self.tenants {
            if let TenantMemory::Reading(memory) = tenant.memory {
                tenant.growth.note(memory, now, apart);
            }
        }
    }

    /// How long until memory that grows has taken all there is; unset: nothing grows.
    pub(crate) fn time_left(&self, config: &Config) -> Option<Seconds> {
        let rate: f64 = self.tenants.iter().filter_map(|tenant| tenant.growth.rate()).sum();
        let used = self.occupied().max(self.tenants.iter().map(Tenant::attributed).sum());
        (rate > 0.0).then(|| Seconds::new(self.available_beside(used, config).0 as f64 / rate).ok())?
    }

    /// Memory that nothing uses, and whether that is no more than the guard.
    pub(crate) fn free_memory(&self, config: &Config) -> (MiB, bool) {
        let free = self.spec.memory - self.occupied().max(self.tenants.iter().map(Tenant::attributed).sum());
        (free, free <= config.admission.guard_of(self.spec.memory))
    }

    /// How much slower an attempt is predicted to be on it than alone.
    pub fn predicted_slowdown(&self, attempt: AttemptId) -> f64 {
        let Some(me) = self.tenants.iter().find(|tenant| tenant.attempt == attempt) else { return 1.0 };
        let others = self.tenants.iter().filter(|tenant| tenant.attempt != attempt).map(|tenant| tenant.profile);
        CoRunners::of(others).slowdown(me.profile, self.spec.mode)
    }

    /// How much slower a job would be on it than alone.
    pub(crate) fn slowdown_of(&self, job: InterferenceProfile) -> f64 {
        CoRunners::of(self.tenants.iter().map(|tenant| tenant.profile)).slowdown(job, self.spec.mode)
    }

    /// Updates the availability; called after every change of the device.
    pub(crate) fn refresh(&mut self, config: &Config, now: Time) {
        self.tenants.iter_mut().for_each(|tenant| tenant.trim(config.admission.trim_after, now));
        self.joinable = self.partitioned && config.modes.joins() && self.switches.may_join(&config.modes);
        let open = |kind| first_device_obstacle(self, kind, config, now).is_none();
        let idle = open(PlacementKind::Idle).then_some(self.spec.memory);
        let room = open(PlacementKind::Share).then(|| {
            let available = self.available(config);
            Room { available, score: config.mapping.policy.order.score(&Facts { available, risk: &self.risk, tenants: &self.tenants }) }
        });
        let outlook = self.may_be_used().then(|| {
            let gated = || {
                device_obstacles(self, PlacementKind::Share, config, now).all(|obstacle| matches!(obstacle, Obstacle::GateClosed { .. }))
            };
            let available = room.map(|room| room.available).or_else(|| gated().then(|| self.available(config)));
            let ends = || self.tenants.iter().map(|tenant| tenant.ends_at.unwrap_or(Time::MAX));
            // Room on a device that may be shared comes with the first to go, on any other with the last.
            let next = if available.is_some() { ends().min() } else { ends().max() };
            Outlook { available, next_end: Some(next.unwrap_or(Time::ZERO)).filter(|end| *end < Time::MAX) }
        });
        self.availability = Availability { idle, room, outlook, vacant: self.joinable && self.is_idle(config) };
    }
}
