//! `[quotas]`: how much each user may use at once.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

use super::account;
use crate::job::Placement;
use crate::keys::{Checker, KeyInfo, Kind, Setting, ZeroIsNone};
use crate::units::MiB;
use crate::{UserId, section};

section! {
    /// How much each user may use at once.
    QuotaSettings => #[derive(Eq)] QuotaConfig {
        /// Maximum number of running jobs of a user. 0: no limit.
        jobs: ZeroIsNone<u32> [0.0..=MOST] = None;
        /// Maximum number of GPUs that a user's jobs hold. A shared GPU counts once for each of them. 0: no limit.
        gpus: ZeroIsNone<u32> [0.0..=MOST] = None;
        /// Maximum GPU memory reserved for a user's jobs. 0: no limit.
        memory: ZeroIsNone<MiB> [0.0..=MOST_MEMORY] = None;
        /// Users with their own quota.
        users: UserQuotas = UserQuotas::default();
    }
}

const MOST: f64 = 1_000_000.0;
/// A petabyte: more than the jobs of a user have together.
const MOST_MEMORY: f64 = 1_073_741_824.0;

/// The quota of one user; omitted keys have the general value.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserQuotaSettings {
    /// The user's number. A file may have the name as `user`.
    #[serde(deserialize_with = "account::number")]
    pub uid: u32,
    /// Maximum number of running jobs; 0: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<f64>,
    /// Maximum number of GPUs held; 0: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<f64>,
    /// Maximum GPU memory reserved, in MiB; 0: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<f64>,
}

/// The quotas of users who have their own, as far as these differ from the general quota. A limit of 0 is no limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserQuotas(BTreeMap<UserId, Quota>);

/// The most a user may use at once; what is unset is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quota {
    /// Jobs that run.
    pub jobs: Option<u32>,
    /// GPUs held by them; a shared GPU counts for each of them.
    pub gpus: Option<u32>,
    /// GPU memory reserved for them.
    pub memory: Option<MiB>,
}

impl QuotaConfig {
    /// What this user may use.
    pub fn of(&self, user: UserId) -> Quota {
        let own = self.users.0.get(&user).copied().unwrap_or_default();
        Quota {
            jobs: own.jobs.or(self.jobs).filter(|limit| *limit > 0),
            gpus: own.gpus.or(self.gpus).filter(|limit| *limit > 0),
            memory: own.memory.or(self.memory).filter(|limit| *limit > MiB::ZERO),
        }
    }

    /// Whether any user is limited.
    pub(crate) fn limits_anybody(&self) -> bool {
        self.jobs.is_some() || self.gpus.is_some() || self.memory.is_some() || self.users.0.keys().any(|user| self.of(*user).limits())
    }
}

impl Setting for UserQuotas {
    type Written = Vec<UserQuotaSettings>;
    type Value = Self;
    const KIND: Kind = Kind::Other("a list of { user = \"ada\", jobs = 20, gpus = 8, memory = 160000 }");

    fn read(written: &Vec<UserQuotaSettings>, _: Option<&Self>, _: &KeyInfo, check: &mut Checker) -> Option<Self> {
        let mut users = BTreeMap::new();
        for (index, UserQuotaSettings { uid, jobs, gpus, memory }) in written.iter().enumerate() {
            let mut limit = |key, given: Option<f64>, most: f64| {
                let fits = |given: &f64| (0.0..=most).contains(given) && given.fract() == 0.0;
                let wrong = given.filter(|given| !fits(given));
                wrong.inspect(|given| check.refuse_item(index, key, given, format!("a whole number from 0 to {most}")));
                given.filter(fits)
            };
            let own = Quota {
                jobs: limit("jobs", *jobs, MOST).map(|limit| limit as u32),
                gpus: limit("gpus", *gpus, MOST).map(|limit| limit as u32),
                memory: limit("memory", *memory, MOST_MEMORY).map(|limit| MiB(limit as u64)),
            };
            if users.insert(UserId(*uid), own).is_some() {
                check.refuse_item(index, "uid", uid, "a list with each user at most once");
            }
        }
        Some(Self(users))
    }

    fn write(value: &Self) -> Option<Vec<UserQuotaSettings>> {
        let number = |limit: Option<u32>| limit.map(f64::from);
        let user = |(user, own): (&UserId, &Quota)| UserQuotaSettings {
            uid: user.0,
            jobs: number(own.jobs),
            gpus: number(own.gpus),
            memory: own.memory.map(|limit| limit.0 as f64),
        };
        Some(value.0.iter().map(user).collect())
    }
}

/// What jobs take of their user's quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QuotaUse {
    /// Jobs.
    pub jobs: u32,
    /// GPUs.
    pub gpus: u32,
    /// GPU memory.
    pub memory: MiB,
}

/// Which part of a quota does not suffice for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "quota", rename_all = "snake_case")]
pub enum OverQuota {
    /// Too many jobs.
    Jobs {
        /// How many may run.
        limit: u32,
        /// How many run or are next.
        used: u32,
    },
    /// Too many GPUs.
    Gpus {
        /// How many the job needs.
        needed: u32,
        /// How many may be held.
        limit: u32,
        /// How many are held, or are for jobs that are next.
        used: u32,
    },
    /// Too much memory.
    Memory {
        /// How much the job needs.
        needed: MiB,
        /// The limit of reserved memory.
        limit: MiB,
        /// Memory that is reserved, or kept for the next jobs.
        used: MiB,
    },
}

impl fmt::Display for OverQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Jobs { limit, used } => return write!(f, "{limit} jobs at once, {used} before it"),
            Self::Gpus { needed, limit, .. } => write!(f, "{limit} GPUs at once, {needed} needed")?,
            Self::Memory { needed, limit, .. } => write!(f, "{limit} of GPU memory at once, {needed} needed")?,
        }
        match self {
            Self::Gpus { used, .. } if *used > 0 => write!(f, ", {used} for jobs before it"),
            Self::Memory { used, .. } if *used > MiB::ZERO => write!(f, ", {used} for jobs before it"),
            _ => Ok(()),
        }
    }
}

impl Quota {
    /// Whether it limits anything.
    pub(crate) fn limits(&self) -> bool {
        *self != Self::default()
    }

    /// The quota that a job would exceed beside the present use, if any. A resource that it does not need cannot exceed a quota.
    pub(crate) fn objection(&self, needed: QuotaUse, used: QuotaUse) -> Option<OverQuota> {
        let sum = used + needed;
        let jobs = self.jobs.filter(|limit| sum.jobs > *limit);
        let gpus = self.gpus.filter(|limit| needed.gpus > 0 && sum.gpus > *limit);
        let memory = self.memory.filter(|limit| needed.memory > MiB::ZERO && sum.memory > *limit);
        None.or(jobs.map(|limit| OverQuota::Jobs { limit, used: used.jobs }))
            .or(gpus.map(|limit| OverQuota::Gpus { needed: needed.gpus, limit, used: used.gpus }))
            .or(memory.map(|limit| OverQuota::Memory { needed: needed.memory, limit, used: used.memory }))
    }
}

impl QuotaUse {
    /// What an attempt with this placement takes.
    pub fn of(placement: &Placement) -> Self {
        let memory = placement.devices.iter().map(|granted| granted.reserved).sum();
        Self { jobs: 1, gpus: placement.devices.len() as u32, memory }
    }
}

impl Add for QuotaUse {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { jobs: self.jobs.saturating_add(other.jobs), gpus: self.gpus.saturating_add(other.gpus), memory: self.memory + other.memory }
    }
}

impl Sub for QuotaUse {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self { jobs: self.jobs.saturating_sub(other.jobs), gpus: self.gpus.saturating_sub(other.gpus), memory: self.memory - other.memory }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unneeded_resources_are_never_too_large() {
        let quota = Quota { jobs: Some(3), gpus: Some(2), memory: None };
        let of = |jobs, gpus| QuotaUse { jobs, gpus, memory: MiB(9) };
        assert_eq!(quota.objection(of(1, 2), of(2, 0)), None);
        assert_eq!(quota.objection(of(1, 1), of(2, 2)), Some(OverQuota::Gpus { needed: 1, limit: 2, used: 2 }));
        assert_eq!(quota.objection(of(1, 0), of(2, 5)), None, "it needs no GPU, and a lowered quota stops no running job");
        assert_eq!(quota.objection(of(1, 0), of(3, 0)), Some(OverQuota::Jobs { limit: 3, used: 3 }));
    }
}
