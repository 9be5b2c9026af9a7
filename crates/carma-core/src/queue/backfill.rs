//! Conservative backfill: what is kept for the head of the queue while others may pass it.

use std::cell::Cell;

use crate::DeviceId;
use crate::admission::{HeadReservation, JobQuestion, RankNeed, job_obstacles, mode_objection, usable_devices};
use crate::device::{Device, Gate, device_obstacles, grown_stale};
use crate::fleet::{Fleet, OfferKind, Server, Summary};
use crate::obstacle::{Obstacle, PlacementKind};
use crate::policy::Score;
use crate::tenant::Tenant;
use crate::units::{MiB, Time};

/// Servers to check for a reservation, the best bound first, before the soonest of them is taken.
const SERVERS_PLANNED: usize = 24;

/// Which ends of running attempts a plan goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownEnds {
    /// Their time limits: no attempt ends later.
    Limits,
    /// Predictions.
    Predicted,
}

/// Keeps for the head the devices that are soonest free for it by the ends of what runs there: in one server
/// if the head must have that, the earliest server first. `question` is the head's, whichever way.
pub(crate) fn plan_reservation(fleet: &Fleet, question: JobQuestion<'_>, ends: KnownEnds, now: Time) -> HeadReservation {
    let (alone, sharing) = (JobQuestion { kind: PlacementKind::Idle, ..question }, JobQuestion { kind: PlacementKind::Share, ..question });
    let planner = Planner { fleet, alone, sharing, ends, now };
    let usable = |server| usable_devices(server, question.demand);
    // With predicted progress a GPU may be ready much later than its memory is, so bounds skip few servers.
    let found = Cell::new(0);
    let enough = || question.config.mapping.policy.predicts() && found.get() >= SERVERS_PLANNED;
    let one = fleet.best(
        0..fleet.servers().len(),
        |summary| if enough() { None } else { planner.earliest(summary) },
        |server| {
            let chosen = planner.soonest(&usable(server)).filter(|(ready, _)| planner.in_time(*ready, server))?;
            found.set(found.get() + 1);
            Some((chosen.0.score(), chosen))
        },
    );
    let spec = question.demand.spec;
    let everywhere = || planner.soonest(&fleet.servers().iter().flat_map(usable));
    let chosen = one.or_else(|| spec.may_span_servers.then(everywhere).flatten());
    let (ready, devices) = chosen.unwrap_or((Ready::Unknown, Vec::new()));
    let servers = devices.iter().filter_map(|device| fleet.server(device.server()));
    let power = question.demand.power.and_then(|power| servers.map(|server| server.most_added(power.load)).max()).unwrap_or_default();
    HeadReservation {
        head: spec.id,
        devices,
        from: if let Ready::At(time) = ready { Some(time) } else { None },
        host: question.demand.host,
        predicted: ends == KnownEnds::Predicted,
        power,
    }
}

/// When a device is free for a rank of the head. The smaller value is sooner.
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

struct Planner<'a> {
    fleet: &'a Fleet,
    alone: JobQuestion<'a>,
    sharing: JobQuestion<'a>,
    ends: KnownEnds,
    now: Time,
}

impl Planner<'_> {
    /// No server below the summary is ready for the head before this. Unless memory is free already, a tenant must end on
    /// one device at least, or on all if the head does not share. `None`: no server below could ever hold it.
    fn earliest(&self, summary: &Summary) -> Option<Score> {
        let ranks = &self.alone.demand.ranks;
        let host = self.alone.demand.host.fits_in(summary.host_total);
        if !host || !summary.may_hold(OfferKind::Capacity, ranks.len(), |nth| ranks[nth].alone) {
            return None;
        }
        if self.ends == KnownEnds::Predicted {
            // Summaries know time limits only.
            return Some(Ready::At(self.now).score());
        }
        let shares = self.alone.config.mapping.policy.shares && !self.alone.demand.needs_idle;
        let room = shares && summary.may_hold(OfferKind::AfterGate, ranks.len(), |nth| ranks[nth].to_share);
        let emptied = if shares { 1 } else { ranks.len() };
        let ready = if room { Some(self.now) } else { summary.soonest(emptied).map(|end| end.max(self.now)) };
        Some(ready.map_or(Ready::Unknown, Ready::At).score())
    }

    /// Whether the server lasts long enough for the head from then on.
    fn in_time(&self, ready: Ready, server: &Server) -> bool {
        let Ready::At(time) = ready else { return true };
        self.alone.demand.lasts.is_none_or(|needed| server.spec.ends.is_none_or(|ends| time + needed <= ends))
    }

    /// The soonest of these devices for all ranks, in order, and when the last of them is ready. The neediest rank chooses
    /// first: whatever is ready for it is ready for the others too.
    fn soonest<'a>(&self, devices: &(impl Iterator<Item = &'a Device> + Clone)) -> Option<(Ready, Vec<DeviceId>)> {
        let mut chosen: Vec<DeviceId> = Vec::with_capacity(self.alone.demand.width());
        let mut last = Ready::At(self.now);
        // Latest first, so that the soonest is taken from the end; computed again when a rank needs less.
        let mut ready: Vec<(Ready, DeviceId)> = Vec::new();
        let mut before: Option<&RankNeed> = None;
        for need in self.alone.demand.ranks.iter() {
            if before.is_none_or(|before| (before.to_share, before.alone) != (need.to_share, need.alone)) {
                let free = devices.clone().filter(|device| !chosen.contains(&device.id()));
                ready = free.filter_map(|device| Some((self.ready_at(device, need)?, device.id()))).collect();
                ready.sort_unstable_by(|a, b| b.cmp(a));
                before = Some(need);
            }
            let (at, device) = ready.pop()?;
            last = last.max(at);
            chosen.push(device);
        }
        chosen.sort_unstable();
        Some((last, chosen))
    }

    /// When the device could take the rank; `None`: not as it is, or as long as it is drained or its server ends.
    fn ready_at(&self, device: &Device, need: &RankNeed) -> Option<Ready> {
        let config = self.alone.config;
        // Tenants of other users and foreign processes may end; the device's own properties do not change.
        let passing = |obstacle: &Obstacle| match obstacle {
            Obstacle::MpsOtherUser { .. } | Obstacle::ForeignProcesses { .. } => true,
            Obstacle::WrongMode { .. } | Obstacle::MpsClientsOnly => self.alone.demand.could_have(device, need),
            _ => false,
        };
        if !device.may_be_used() || job_obstacles(&self.alone, need, device).any(|obstacle| !passing(&obstacle)) {
            return None;
        }
        if device.host_short || device.telemetry.memory_used().is_none() || grown_stale(device, config, self.now).is_some() {
            return Some(Ready::Unknown);
        }
        if device.partitioned || mode_objection(self.alone.demand.spec, device).is_some() {
            // It must be switched first, and may not be switched before its minimum interval is over.
            let rested = device.switches.changed_at.map_or(self.now, |changed| changed + config.modes.every);
            return Some(self.empty_at(device).max(Ready::At(rested)));
        }
        if self.ends == KnownEnds::Predicted {
            return Some(self.predicted_room(device, need).map_or(Ready::Unknown, Ready::At));
        }
        let shared = self.gate_opens(device).filter(|_| self.may_share(device, need)).and_then(|gate| self.room_at(device, need, gate));
        Some(shared.map_or_else(|| self.empty_at(device), Ready::At))
    }

    /// When enough tenants with a time limit have ended for the rank to share the device, not before its gate opens.
    fn room_at(&self, device: &Device, need: &RankNeed, gate: Time) -> Option<Time> {
        let config = self.sharing.config;
        let mut ends: Vec<(Time, MiB)> = Vec::with_capacity(device.tenants.len());
        for tenant in &device.tenants {
            let released = if config.admission.reservations { tenant.counted() } else { tenant.attributed() };
            ends.extend(tenant.ends_at.map(|end| (end, released)));
        }
        ends.sort_unstable();
        let mut used = device.counted_as_used(config.admission.reservations);
        let fits = |used| device.available_beside(used, config) >= need.to_share;
        if fits(used) {
            return Some(gate);
        }
        let gone = ends.into_iter().find(|(_, released)| {
            used = used - *released;
            fits(used)
        });
        gone.map(|(end, _)| end.max(gate))
    }

    /// When enough tenants are predicted to have ended for the rank to share the device, or to have it alone.
    fn predicted_room(&self, device: &Device, need: &RankNeed) -> Option<Time> {
        let config = self.sharing.config;
        let mut tenants: Vec<(Time, &Tenant)> = Vec::with_capacity(device.tenants.len());
        for tenant in &device.tenants {
            tenants.push((tenant.work?.ends_at(self.now), tenant));
        }
        tenants.sort_by_key(|(end, _)| std::cmp::Reverse(*end));
        let mut left: Vec<Tenant> = tenants.iter().map(|(_, tenant)| (*tenant).clone()).collect();
        let (mut used, mut ready) = (device.counted_as_used(true), self.gate_opens(device).unwrap_or(self.now));
        while let Some((end, _)) = tenants.pop() {
            let welcome = || self.sharing.predict_beside(device, &left).is_none_or(|answer| answer.is_ok());
            if !self.sharing.demand.needs_idle && device.available_beside(used, config) >= need.to_share && welcome() {
                return Some(ready);
            }
            ready = ready.max(end);
            left.pop().into_iter().for_each(|gone| used = used - gone.counted());
        }
        (need.alone <= device.spec.memory && used <= config.admission.idle_memory).then_some(ready)
    }

    /// When the last tenant of the device, or of its instances, has ended.
    fn empty_at(&self, device: &Device) -> Ready {
        let instances = self.fleet.instances(device);
        let tenants = || device.tenants.iter().chain(instances.clone().flat_map(|instance| &instance.tenants));
        let attributed: MiB = tenants().map(Tenant::attributed).sum();
        let unknown = instances.clone().any(|instance| instance.lost || instance.drained || self.empty_at(instance) == Ready::Unknown);
        // Foreign processes, and memory without an owner, have no time limit.
        if unknown || !device.foreign.is_empty() || device.occupied() - attributed > self.alone.config.admission.idle_memory {
            return Ready::Unknown;
        }
        let last = tenants().map(|tenant| tenant.ends_at.unwrap_or(Time::MAX)).max();
        let last = last.unwrap_or(self.now).max(self.now);
        if last < Time::MAX { Ready::At(last) } else { Ready::Unknown }
    }

    /// Whether only memory and the gate keep the head from sharing the device. Other obstacles, such as load, have no known
    /// end before the device is empty.
    fn may_share(&self, device: &Device, need: &RankNeed) -> bool {
        let mut closed = device_obstacles(device, PlacementKind::Share, self.sharing.config, self.now);
        let mut unwelcome = job_obstacles(&self.sharing, need, device);
        closed.all(|obstacle| matches!(obstacle, Obstacle::GateClosed { .. }))
            && unwelcome.all(|obstacle| matches!(obstacle, Obstacle::Memory { .. }))
    }

    /// When the gate opens: by its timer, or at the latest when the attempt it closed behind ends.
    fn gate_opens(&self, device: &Device) -> Option<Time> {
        let opens = match device.gate {
            Gate::Open => Some(self.now),
            Gate::Closed { until: Some(until), .. } => Some(until),
            Gate::Closed { by, until: None } => device.tenants.iter().find(|tenant| tenant.attempt == by)?.ends_at,
        };
        opens.map(|opens| opens.max(self.now))
    }
}
