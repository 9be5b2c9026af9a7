//! The queue: who is next, who may pass, and how users share.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::section::settings;
use crate::units::Seconds;
use crate::{GroupId, UserId};

settings!(
    /// The queue.
    QueueSettings {
        /// Who is next: `submission`, `least_attained` or `shortest`.
        order: QueueOrder,
        /// GPU-seconds of work that a second of waiting outweighs, so that nobody waits for ever.
        ageing: f64,
        /// Seconds that a job should take of which nobody knows how long it takes.
        unknown_duration: f64,
        /// Users have turns by what they have had of late, whoever submitted more.
        fair_share: bool,
        /// What a user has had counts half after so many seconds.
        half_life: f64,
        /// GPUs are left to users who have less than their share and were here within so many seconds; 0: none.
        courtesy: f64,
        /// Users and groups whose share is not 1.
        shares: Vec<ShareSettings>,
        /// How many jobs behind a waiting head are looked at for one that may pass; 0: strictly in order.
        backfill: f64,
        /// GPUs are kept for a waiting head once it has waited so many seconds; before, others may pass it freely.
        reserve_after: f64,
        /// The longest job is next once all other work, on each GPU, is less than so many times its own; 0: never.
        critical: f64,
        /// Seconds between telling a job to stop and killing it.
        grace: f64,
    }
);

/// The share of a user within its group, or of a group beside others.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShareSettings {
    /// The user's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The group's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// The share; others have 1.
    pub share: f64,
}

/// The shares that are not 1.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Shares {
    /// Of users, each within its group.
    pub users: BTreeMap<UserId, f64>,
    /// Of groups.
    pub groups: BTreeMap<GroupId, f64>,
}

impl Shares {
    /// A user's share within its group.
    pub fn of_user(&self, user: UserId) -> f64 {
        self.users.get(&user).copied().unwrap_or(1.0)
    }

    /// A group's share.
    pub fn of_group(&self, group: GroupId) -> f64 {
        self.groups.get(&group).copied().unwrap_or(1.0)
    }

    fn check(settings: &[ShareSettings], check: &mut Checker) -> Self {
        let mut shares = Self::default();
        for one in settings {
            let share = check.number("queue.shares", Some(one.share), 1.0, 0.01, 1000.0, "");
            match (one.uid, one.gid) {
                (Some(user), None) => drop(shares.users.insert(UserId(user), share)),
                (None, Some(group)) => drop(shares.groups.insert(GroupId(group), share)),
                (Some(_), Some(_)) => check.refuse("queue.shares", "a share of both uid and gid", "one of them"),
                (None, None) => check.refuse("queue.shares", "a share of nobody", "its uid or gid"),
            }
        }
        shares
    }
}

impl From<&Shares> for Vec<ShareSettings> {
    fn from(shares: &Shares) -> Self {
        let user = |(user, share): (&UserId, &f64)| ShareSettings { uid: Some(user.0), gid: None, share: *share };
        let group = |(group, share): (&GroupId, &f64)| ShareSettings { uid: None, gid: Some(group.0), share: *share };
        shares.users.iter().map(user).chain(shares.groups.iter().map(group)).collect()
    }
}

/// The queue.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueConfig {
    /// Who is next.
    pub order: QueueOrder,
    /// GPU-seconds of work that a second of waiting outweighs.
    pub ageing: f64,
    /// How long a job should take of which nobody knows.
    pub unknown_duration: Seconds,
    /// Users have turns by what they have had of late.
    pub fair_share: bool,
    /// What a user has had counts half after this.
    pub half_life: Seconds,
    /// GPUs are left to users who have less than their share and were here within this time; zero: none.
    pub courtesy: Seconds,
    /// Users and groups whose share is not 1.
    pub shares: Shares,
    /// Who may pass the head.
    pub discipline: Discipline,
    /// GPUs are kept for a waiting head once it has waited this long.
    pub reserve_after: Seconds,
    /// The longest job is next once all other work, on each GPU, is less than so many times its own.
    pub critical: f64,
    /// After being told to stop, a job has this long before it is killed.
    pub grace: Seconds,
}

/// Who is next, among jobs of one priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueOrder {
    /// Who was submitted first.
    #[default]
    Submission,
    /// Who has had the least GPU time.
    LeastAttained,
    /// Who is expected to need the least GPU time still.
    Shortest,
}

/// Who may start before the head of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discipline {
    /// Nobody.
    Fifo,
    /// Jobs that leave what is kept for the head intact, looked for among so many behind it.
    Backfill {
        /// How many.
        depth: u32,
    },
}

impl Discipline {
    /// How many jobs behind the head are looked at; 0: none.
    pub(crate) const fn depth(self) -> u32 {
        match self {
            Self::Fifo => 0,
            Self::Backfill { depth } => depth,
        }
    }

    pub(crate) const fn of_depth(depth: u32) -> Self {
        if depth == 0 { Self::Fifo } else { Self::Backfill { depth } }
    }
}

impl QueueConfig {
    /// Strictly in order of submission, as published.
    pub(super) const fn published() -> Self {
        Self {
            order: QueueOrder::Submission,
            ageing: 1.0,
            unknown_duration: Seconds::from_secs(3600),
            fair_share: false,
            half_life: Seconds::from_secs(7 * 86_400),
            courtesy: Seconds::from_secs(14_400),
            shares: Shares { users: BTreeMap::new(), groups: BTreeMap::new() },
            discipline: Discipline::Fifo,
            reserve_after: Seconds::ZERO,
            critical: 0.0,
            grace: Seconds::from_secs(30),
        }
    }
}

impl QueueSettings {
    pub(super) fn over(self, base: &QueueConfig, check: &mut Checker) -> QueueConfig {
        let depth = check.count("queue.backfill", self.backfill, base.discipline.depth(), 0, 10_000);
        let shares = self.shares.map(|shares| Shares::check(&shares, check));
        QueueConfig {
            order: self.order.unwrap_or(base.order),
            ageing: check.number("queue.ageing", self.ageing, base.ageing, 0.001, 1000.0, ""),
            unknown_duration: check.seconds("queue.unknown_duration", self.unknown_duration, base.unknown_duration, 1.0, 31_536_000.0),
            fair_share: self.fair_share.unwrap_or(base.fair_share),
            half_life: check.seconds("queue.half_life", self.half_life, base.half_life, 60.0, 31_536_000.0),
            courtesy: check.seconds("queue.courtesy", self.courtesy, base.courtesy, 0.0, 31_536_000.0),
            shares: shares.unwrap_or_else(|| base.shares.clone()),
            discipline: Discipline::of_depth(depth),
            reserve_after: check.seconds("queue.reserve_after", self.reserve_after, base.reserve_after, 0.0, 31_536_000.0),
            critical: check.number("queue.critical", self.critical, base.critical, 0.0, 10.0, ""),
            grace: check.seconds("queue.grace", self.grace, base.grace, 0.0, 3600.0),
        }
    }
}

impl From<&QueueConfig> for QueueSettings {
    fn from(queue: &QueueConfig) -> Self {
        Self {
            order: Some(queue.order),
            ageing: Some(queue.ageing),
            unknown_duration: Some(queue.unknown_duration.get()),
            fair_share: Some(queue.fair_share),
            half_life: Some(queue.half_life.get()),
            courtesy: Some(queue.courtesy.get()),
            shares: Some((&queue.shares).into()),
            backfill: Some(queue.discipline.depth().into()),
            reserve_after: Some(queue.reserve_after.get()),
            critical: Some(queue.critical),
            grace: Some(queue.grace.get()),
        }
    }
}
