//! What runs on a device: our attempts with their reserved memory, and other processes.

mod growth;
mod plateau;
mod work;

pub use growth::Growth;
pub use plateau::Plateau;
pub use work::Work;

use serde::{Deserialize, Serialize};

use crate::forecast::InterferenceProfile;
use crate::job::{JobSpec, SharingClass};
use crate::units::{Fraction, MiB, Seconds, Time};
use crate::{AttemptId, UserId};

/// One of our attempts on a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Tenant {
    /// Which attempt.
    pub attempt: AttemptId,
    /// The user.
    pub user: UserId,
    /// Memory reserved for it.
    pub reserved: MiB,
    /// Memory it was last seen to use.
    pub memory: TenantMemory,
    /// How that grew.
    pub growth: Growth,
    /// Whether it has stopped rising.
    pub plateau: Plateau,
    /// Its estimate is good enough, or its memory is limited: on a plateau, the rest of its reservation may go to others.
    pub may_trim: bool,
    /// It is a client of the device's MPS server.
    pub mps_client: bool,
    /// The most memory that the driver lets it have; unset: the driver does not limit it.
    pub driver_limit: Option<MiB>,
    /// When it was launched.
    pub launched_at: Time,
    /// When its process was first seen on the device.
    pub seen_at: Option<Time>,
    /// When its time limit ends it; unset: it may run for ever.
    pub ends_at: Option<Time>,
    /// It has the device for itself.
    pub exclusive: bool,
    /// GPU utilisation expected of it; unknown counts as all.
    pub utilisation: Fraction,
    /// How well it shares; unknown counts as badly.
    pub sharing: SharingClass,
    /// Its part in interference.
    pub profile: InterferenceProfile,
    /// Its work from the launch on, and its predicted speed; unset: unknown.
    pub work: Option<Work>,
    /// Since when it does nothing here; unset: it works, or was not seen yet.
    pub idle_since: Option<Time>,
    /// The share of time in which its kernels ran, where the driver can tell.
    pub(crate) activity: Option<Fraction>,
}

impl Tenant {
    /// An attempt that is being launched, before its devices are known.
    pub(crate) fn newcomer(spec: &JobSpec, attempt: AttemptId, now: Time) -> Self {
        Self {
            attempt,
            user: spec.user,
            reserved: MiB::ZERO,
            memory: TenantMemory::Unseen,
            growth: Growth::default(),
            plateau: Plateau::default(),
            may_trim: spec.memory.is_sure(),
            mps_client: false,
            driver_limit: None,
            launched_at: now,
            seen_at: None,
            ends_at: spec.time_limit.map(|limit| now + limit),
            exclusive: spec.exclusive,
            utilisation: spec.expected_utilisation(),
            sharing: spec.sharing_class(),
            profile: InterferenceProfile::of(spec),
            work: spec.expected_duration.map(|expected| Work::new(expected, now)),
            idle_since: None,
            activity: None,
        }
    }

    /// Lends its compute to other jobs: it counts as idle and not exclusive. Its memory stays reserved.
    pub(crate) fn lend(&mut self) {
        (self.exclusive, self.utilisation, self.sharing, self.profile) =
            (false, Fraction::ZERO, SharingClass::Tiny, InterferenceProfile::IDLE);
    }

    /// Takes its compute back: it counts as expected again.
    pub(crate) fn reclaim(&mut self, spec: &JobSpec) {
        let Self { exclusive, utilisation, sharing, profile, .. } = Self::newcomer(spec, self.attempt, self.launched_at);
        (self.exclusive, self.utilisation, self.sharing, self.profile) = (exclusive, utilisation, sharing, profile);
    }

    /// When its reservation may be trimmed, if its memory does not rise before; unset: not at all, or not before it is seen.
    pub(crate) fn trims_at(&self, after: Option<Seconds>) -> Option<Time> {
        let on_it = self.may_trim && self.reserved > self.plateau.enough();
        after.filter(|_| on_it).and_then(|after| self.plateau.reached_at(after))
    }

    /// Gives back what it has long not used of its reservation.
    pub(crate) fn trim(&mut self, after: Option<Seconds>, now: Time) {
        if self.trims_at(after).is_some_and(|at| at <= now) {
            self.reserved = self.plateau.enough();
        }
    }

    /// Its memory limits at the driver; unset: it has none.
    pub fn memory_limits(&self) -> Option<DriverLimits> {
        self.driver_limit.map(|hard| DriverLimits { soft: self.reserved.min(hard), hard })
    }

    /// Memory beyond what is reserved for it, where the driver may take that back.
    pub fn borrowed(&self) -> MiB {
        self.memory_limits().map_or(MiB::ZERO, |limits| self.attributed() - limits.soft)
    }

    /// The most memory that it was seen to use.
    pub fn peak(&self) -> MiB {
        self.plateau.peak()
    }

    /// Memory that is reserved for it, and that it has not taken yet.
    pub(crate) fn owed(&self) -> MiB {
        self.reserved - self.attributed()
    }

    /// Memory that counts as used by it: what is reserved, or more if it uses more.
    pub fn counted(&self) -> MiB {
        match self.memory {
            TenantMemory::Reading(reading) => reading.max(self.reserved),
            TenantMemory::Unseen | TenantMemory::Unreadable => self.reserved,
        }
    }

    /// How much of the device's reading is its.
    pub fn attributed(&self) -> MiB {
        match self.memory {
            TenantMemory::Unseen => MiB::ZERO,
            // Drivers hide the memory of processes in other containers; the reserved memory is the best guess.
            TenantMemory::Unreadable => self.reserved,
            TenantMemory::Reading(reading) => reading,
        }
    }
}

/// Memory limits of an attempt on a device that the driver enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverLimits {
    /// Guaranteed: what is reserved.
    pub soft: MiB,
    /// Never exceeded. Memory between the two is borrowed.
    pub hard: MiB,
}

/// What the last process list reports about an attempt's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TenantMemory {
    /// No process of it is on the device.
    Unseen,
    /// Its processes are there, but the driver does not say what they use.
    Unreadable,
    /// Its processes use this much together.
    Reading(MiB),
}

impl TenantMemory {
    /// Adds another process of the same attempt.
    pub(crate) fn add(&mut self, memory: Option<MiB>) {
        *self = match (*self, memory) {
            (Self::Unseen, Some(more)) => Self::Reading(more),
            (Self::Reading(sum), Some(more)) => Self::Reading(sum + more),
            (Self::Unreadable, _) | (_, None) => Self::Unreadable,
        };
    }
}

/// A process on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUse {
    /// Its owner.
    pub owner: Owner,
    /// What it uses, where the driver reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MiB>,
}

/// The owner of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// One of our attempts. An attempt that was not placed on the device, or is over, counts as foreign.
    Attempt(AttemptId),
    /// A process that the scheduler did not start.
    Foreign {
        /// Its process number.
        pid: u32,
    },
}
