//! Courtesy under fair share: room for users who have less than their share of the GPUs, before they ask.
//!
//! Order alone does not make a crowded server fair. Whoever submits little finds every GPU full of those who submit much, waits for
//! the first to end, and is slowed down by the others. So a user who has as much of the GPUs as its share, or more, starts nothing
//! on GPUs where one with less runs, nor on the one GPU that is kept for them: free, or else becoming so as its jobs end. As long as
//! nobody has less who was here of late, nothing is kept.

use std::collections::{BTreeMap, BTreeSet};

use super::{Account, Ledger};
use crate::admission::Obstacle;
use crate::config::QueueConfig;
use crate::device::Device;
use crate::units::Time;
use crate::{DeviceId, GroupId, UserId};

/// Who has less than its share, and what is kept for them.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Courtesy {
    /// Those who have less.
    below: BTreeSet<UserId>,
    /// The device that is kept for them.
    pub(crate) kept: Option<DeviceId>,
}

impl Courtesy {
    /// Who has less than its share of so many GPUs, of those who run something, wait, or did so of late; nobody if nobody has more.
    pub(crate) fn users_below(
        ledger: &Ledger,
        waiting: impl Iterator<Item = Account>,
        gpus: usize,
        rules: &QueueConfig,
        now: Time,
    ) -> BTreeSet<UserId> {
        let active: BTreeSet<Account> = ledger.seen_since(now, rules.courtesy).chain(waiting).collect();
        let mut groups: BTreeMap<GroupId, f64> = BTreeMap::new();
        for account in &active {
            *groups.entry(account.group).or_default() += rules.shares.of_user(account.user);
        }
        let all: f64 = groups.keys().map(|group| rules.shares.of_group(*group)).sum();
        let is_below = |account: &&Account| {
            let of_group = rules.shares.of_user(account.user) / groups.get(&account.group).copied().unwrap_or(1.0);
            let share = rules.shares.of_group(account.group) / all * of_group;
            ledger.reading(**account).rate < share * gpus as f64
        };
        let below: BTreeSet<UserId> = active.iter().filter(is_below).map(|account| account.user).collect();
        if below.len() == active.len() { BTreeSet::new() } else { below }
    }

    /// Lets others know who has less. What was kept stays kept until one of them has it.
    pub(crate) fn review<'a>(
        &mut self,
        below: BTreeSet<UserId>,
        device: impl Fn(DeviceId) -> Option<&'a Device>,
        all: impl Iterator<Item = &'a Device>,
    ) {
        self.below = below;
        let mine = |device: &&Device| device.exists() && !device.drained && !self.is_theirs(device);
        self.kept = match self.kept.and_then(device).filter(mine) {
            _ if self.below.is_empty() => None,
            Some(device) => Some(device.id()),
            None => all.filter(mine).min_by_key(|device| (device.tenants.len(), device.id())).map(Device::id),
        };
    }

    /// Whether the user has to leave others room.
    pub(crate) fn binds(&self, user: UserId) -> bool {
        !self.below.is_empty() && !self.below.contains(&user)
    }

    fn is_theirs(&self, device: &Device) -> bool {
        device.tenants.iter().any(|tenant| self.below.contains(&tenant.user))
    }

    /// What keeps a user's job off a device, if anything.
    pub(crate) fn objection(&self, device: &Device) -> Option<Obstacle> {
        (self.kept == Some(device.id()) || self.is_theirs(device)).then_some(Obstacle::LeftToOthers)
    }
}
