//! Quotas: how much each user may have at once.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::settings::{QuotaSettings, UserQuotaSettings};
use crate::UserId;
use crate::mapping::Placement;
use crate::units::MiB;

/// How much users may have at once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuotaConfig {
    /// Each user who is not named.
    pub everybody: Quota,
    /// Users with a quota of their own.
    pub users: BTreeMap<UserId, Quota>,
}

/// The most a user may have at once; what is unset is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quota {
    /// Jobs that run.
    pub jobs: Option<u32>,
    /// GPUs held by them; one that is shared counts for each of them.
    pub gpus: Option<u32>,
    /// GPU memory promised to them.
    pub memory: Option<MiB>,
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
        /// How much may be promised.
        limit: MiB,
        /// How much is promised, or is for jobs that are next.
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

    /// What a job cannot have beside what is used already, if anything. What it does not need cannot be too much.
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

impl QuotaConfig {
    /// What this user may have.
    pub fn of(&self, user: UserId) -> Quota {
        self.users.get(&user).copied().unwrap_or(self.everybody)
    }

    /// Whether anybody is limited.
    pub(crate) fn limits_anybody(&self) -> bool {
        self.everybody.limits() || self.users.values().any(Quota::limits)
    }
}

impl QuotaUse {
    /// What an attempt with this placement takes.
    pub fn of(placement: &Placement) -> Self {
        let memory = placement.devices.iter().map(|granted| granted.promised).sum();
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

impl QuotaSettings {
    pub(super) fn over(self, base: &QuotaConfig, check: &mut Checker) -> QuotaConfig {
        let keys = ["quotas.jobs", "quotas.gpus", "quotas.memory"];
        let everybody = quota(keys, (self.jobs, self.gpus, self.memory), base.everybody, check);
        let mut users = base.users.clone();
        for UserQuotaSettings { uid, jobs, gpus, memory } in self.users.unwrap_or_default() {
            let keys = ["quotas.users.jobs", "quotas.users.gpus", "quotas.users.memory"];
            let own = quota(keys, (jobs, gpus, memory), everybody, check);
            let twice = users.insert(UserId(uid), own).is_some();
            if twice {
                check.refuse("quotas.users.uid", uid, "each user once");
            }
        }
        QuotaConfig { everybody, users }
    }
}

type Given = (Option<f64>, Option<f64>, Option<f64>);

/// 0 is no limit.
fn quota(keys: [&'static str; 3], (jobs, gpus, memory): Given, base: Quota, check: &mut Checker) -> Quota {
    let jobs = check.count(keys[0], jobs, base.jobs.unwrap_or(0), 0, MOST);
    let gpus = check.count(keys[1], gpus, base.gpus.unwrap_or(0), 0, MOST);
    let memory = check.memory_up_to(keys[2], memory, base.memory.unwrap_or_default(), MOST_MEMORY);
    Quota { jobs: (jobs > 0).then_some(jobs), gpus: (gpus > 0).then_some(gpus), memory: (memory > MiB::ZERO).then_some(memory) }
}

const MOST: u32 = 1_000_000;
/// A petabyte: more than a user's jobs have together.
const MOST_MEMORY: f64 = 1_073_741_824.0;

impl From<&QuotaConfig> for QuotaSettings {
    fn from(QuotaConfig { everybody, users }: &QuotaConfig) -> Self {
        let written = |Quota { jobs, gpus, memory }: &Quota| {
            (Some(jobs.unwrap_or(0).into()), Some(gpus.unwrap_or(0).into()), Some(memory.unwrap_or_default().0 as f64))
        };
        let user = |(user, quota): (&UserId, &Quota)| {
            let (jobs, gpus, memory) = written(quota);
            UserQuotaSettings { uid: user.0, jobs, gpus, memory }
        };
        let (jobs, gpus, memory) = written(everybody);
        Self { jobs, gpus, memory, users: (!users.is_empty()).then(|| users.iter().map(user).collect()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_job_does_not_need_cannot_be_too_much() {
        let quota = Quota { jobs: Some(3), gpus: Some(2), memory: None };
        let of = |jobs, gpus| QuotaUse { jobs, gpus, memory: MiB(9) };
        assert_eq!(quota.objection(of(1, 2), of(2, 0)), None);
        assert_eq!(quota.objection(of(1, 1), of(2, 2)), Some(OverQuota::Gpus { needed: 1, limit: 2, used: 2 }));
        assert_eq!(quota.objection(of(1, 0), of(2, 5)), None, "it wants no GPU, and a lowered quota stops nobody");
        assert_eq!(quota.objection(of(1, 0), of(3, 0)), Some(OverQuota::Jobs { limit: 3, used: 3 }));
    }
}
