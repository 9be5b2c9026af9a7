//! What a server, or many servers together, could at best offer.

use std::cmp::Reverse;

use super::largest::Largest;
use super::server::Server;
use crate::device::Room;
use crate::job::HostClaim;
use crate::policy::Score;
use crate::units::{MiB, Time, Watts};

/// Widths for which the best offer is kept. A job of another width is held against the next smaller one: what
/// three ranks find together, two find too.
const WIDTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// For each of [`WIDTHS`], the largest memory that this many devices of one server can each offer, plus one; 0: so
/// many there are not.
type Offer = [u32; WIDTHS.len()];

/// Memory for which the best score is kept apart, so that devices too full for a job do not hide how good the others
/// are. A need is held against the next smaller one.
const CLASSES: [MiB; 14] = {
    let gib = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96];
    let mut classes = [MiB(0); 14];
    let mut class = 0;
    while class < classes.len() {
        classes[class] = MiB(gib[class] * 1024);
        class += 1;
    }
    classes
};

/// Bounds for a search: no server below can offer more than this.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Summary {
    idle: Offer,
    room: Offer,
    capacity: Offer,
    /// Memory of devices that may be shared, now or when their gates open.
    after_gate: Offer,
    /// For each of the widths, the earliest time at which this many devices of one server have each lost a tenant.
    soonest: [Time; WIDTHS.len()],
    /// For each of the classes, the best score of a device that may be shared and has this much memory.
    best: [Score; CLASSES.len()],
    /// Some server takes a job without GPUs.
    pub(crate) takes_cpu_job: bool,
    /// The most cores, and the most memory, that a host has.
    pub(crate) host_total: HostClaim,
    /// The most cores, and the most memory, that are not booked on a host.
    pub(crate) host_unbooked: HostClaim,
    /// The most watts that a server has left of its budget.
    power_left: Watts,
    /// When the last server ends.
    last_end: Time,
}

/// Which offer a search needs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OfferKind {
    /// Idle devices.
    Idle,
    /// Devices that may be shared.
    Room,
    /// Devices whatever they do, lost ones left out.
    Capacity,
    /// Devices that may be shared, now or when their gates open.
    AfterGate,
}

impl Summary {
    /// Of no servers.
    pub(super) const EMPTY: Self = Self {
        idle: [0; WIDTHS.len()],
        room: [0; WIDTHS.len()],
        capacity: [0; WIDTHS.len()],
        after_gate: [0; WIDTHS.len()],
        soonest: [Time::MAX; WIDTHS.len()],
        best: [Score(u64::MAX); CLASSES.len()],
        takes_cpu_job: false,
        host_total: HostClaim { cores: 0, memory: MiB::ZERO },
        host_unbooked: HostClaim { cores: 0, memory: MiB::ZERO },
        power_left: Watts(f64::NEG_INFINITY),
        last_end: Time::ZERO,
    };

    pub(super) fn of(server: &Server) -> Self {
        let [mut idle, mut room, mut capacity, mut after_gate] = [Largest::none(0); 4];
        let mut ends = Largest::none(Reverse(Time::MAX));
        let mut best = [Score(u64::MAX); CLASSES.len()];
        for device in &server.devices {
            let availability = device.availability();
            let outlook = availability.outlook;
            availability.idle.into_iter().for_each(|memory| idle.insert(offered(memory)));
            if let Some(Room { available, score }) = availability.room {
                room.insert(offered(available));
                let best = &mut best[class(available)];
                *best = score.min(*best);
            }
            outlook.and_then(|outlook| outlook.available).into_iter().for_each(|memory| after_gate.insert(offered(memory)));
            outlook.and_then(|outlook| outlook.next_end).into_iter().for_each(|end| ends.insert(Reverse(end)));
            if device.exists() {
                capacity.insert(offered(device.spec.memory));
            }
        }
        // A device of a class is also one of each smaller class.
        for class in (1..CLASSES.len()).rev() {
            best[class - 1] = best[class - 1].min(best[class]);
        }
        Self {
            idle: idle.at(WIDTHS),
            room: room.at(WIDTHS),
            capacity: capacity.at(WIDTHS),
            after_gate: after_gate.at(WIDTHS),
            soonest: ends.at(WIDTHS).map(|Reverse(end)| end),
            best,
            takes_cpu_job: server.takes_cpu_job(),
            host_total: server.host_total(),
            host_unbooked: server.host_unbooked(),
            power_left: server.power_left,
            last_end: server.spec.ends.unwrap_or(Time::MAX),
        }
    }

    pub(super) fn merge(&self, other: &Self) -> Self {
        let most = |a: Offer, b: Offer| std::array::from_fn(|width| a[width].max(b[width]));
        Self {
            idle: most(self.idle, other.idle),
            room: most(self.room, other.room),
            capacity: most(self.capacity, other.capacity),
            after_gate: most(self.after_gate, other.after_gate),
            soonest: std::array::from_fn(|width| self.soonest[width].min(other.soonest[width])),
            best: std::array::from_fn(|class| self.best[class].min(other.best[class])),
            takes_cpu_job: self.takes_cpu_job || other.takes_cpu_job,
            host_total: self.host_total.max(other.host_total),
            host_unbooked: self.host_unbooked.max(other.host_unbooked),
            power_left: self.power_left.max(other.power_left),
            last_end: self.last_end.max(other.last_end),
        }
    }

    /// Whether one server might hold ranks with these needs, the largest first. "No" is certain.
    pub(crate) fn may_hold(&self, kind: OfferKind, width: usize, need: impl Fn(usize) -> MiB) -> bool {
        let offer = match kind {
            OfferKind::Idle => &self.idle,
            OfferKind::Room => &self.room,
            OfferKind::Capacity => &self.capacity,
            OfferKind::AfterGate => &self.after_gate,
        };
        WIDTHS.iter().zip(offer).take_while(|(ranks, _)| **ranks <= width).all(|(ranks, offer)| u64::from(*offer) > need(ranks - 1).0)
    }

    /// Whether every server draws more than it may.
    pub(crate) const fn is_out_of_power(&self) -> bool {
        self.power_left.0 < 0.0
    }

    /// No server ends later than this.
    pub(crate) const fn last_end(&self) -> Time {
        self.last_end
    }

    /// No device with room for this much has a better score.
    pub(crate) fn best(&self, need: MiB) -> Score {
        self.best[class(need)]
    }

    /// The earliest time at which a tenant has ended on each of this many devices of one server; unset: unknown.
    pub(crate) fn soonest(&self, width: usize) -> Option<Time> {
        let place = WIDTHS.iter().rposition(|ranks| *ranks <= width)?;
        Some(self.soonest[place]).filter(|time| *time < Time::MAX)
    }

    /// The memory of the largest device.
    pub(super) fn largest(&self) -> MiB {
        MiB(u64::from(self.capacity[0]).saturating_sub(1))
    }
}

/// Memory as an [`Offer`] has it.
fn offered(memory: MiB) -> u32 {
    memory.0.saturating_add(1).try_into().unwrap_or(u32::MAX)
}

/// The largest class that so much memory is enough for.
fn class(memory: MiB) -> usize {
    CLASSES.iter().rposition(|class| *class <= memory).unwrap_or(0)
}
