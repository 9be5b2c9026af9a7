//! Courtesy under fair share: room for users who have less than their share of the GPUs, before they ask.
//!
//! Order alone does not make a crowded server fair. Whoever submits little finds every GPU full of those who submit much, waits for
//! the first to end, and is slowed down by the others. So a user who holds its share of the GPUs or more starts nothing beside one
//! who holds no more of its own, nor on the GPUs that are kept for those who have less than their share: so many that they could have
//! it, free or becoming so as their jobs end. Only who has had least in the long run need not care. Nothing is kept for users who were not here of late.
//!
//! The jobs of a server share its host as well, whatever GPUs they are on. So where somebody runs who has had less in the long run, others
//! have a job for each GPU of their share of the server and no more.

use std::collections::{BTreeMap, BTreeSet};

use super::{Account, Ledger};
use crate::admission::Obstacle;
use crate::config::QueueConfig;
use crate::device::Device;
use crate::fleet::Server;
use crate::units::{Seconds, Time};
use crate::{DeviceId, GroupId, UserId};

/// Who has how much of its share, and what is kept for those who have less than all of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Courtesy {
    /// Users who run something, wait, or did so of late.
    users: BTreeMap<UserId, Served>,
    /// Who has had least in the long run: bound by nobody.
    least: Option<UserId>,
    /// The devices that are kept.
    kept: BTreeSet<DeviceId>,
    /// When the first of those who are away will have been away for too long; unset: nobody is.
    pub(crate) ends_at: Option<Time>,
}

/// Users who stand as near as this stand alike, so that they do not limit each other in turns.
const NOTABLY: f64 = 1.1;

/// What a user has of the GPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Served {
    /// Its share of all GPUs.
    share: f64,
    /// GPUs held over those of its share.
    held: f64,
    /// Its group, and where both stand in the long run.
    group: (GroupId, u64),
    standing: u64,
}

impl Served {
    /// Whether it has had notably less than another.
    fn has_had_less_than(&self, other: &Self) -> bool {
        let ((group, mine), (other_group, theirs)) = (self.group, other.group);
        let (mine, theirs) = if group == other_group { (self.standing, other.standing) } else { (mine, theirs) };
        mine as f64 * NOTABLY < theirs as f64
    }
}

/// A user who may have to leave others room.
#[derive(Clone, Copy)]
pub(crate) struct Bound<'a> {
    courtesy: &'a Courtesy,
    user: UserId,
    served: Served,
}

impl Courtesy {
    /// Looks at all users and devices anew. What was kept stays kept as far as it can, so that it becomes free.
    pub(crate) fn review<'a>(
        &mut self,
        (ledger, waiting): (&Ledger, impl Iterator<Item = Account>),
        devices: impl Iterator<Item = &'a Device>,
        rules: &QueueConfig,
        now: Time,
    ) {
        let waiting: BTreeSet<Account> = waiting.collect();
        let active: BTreeSet<Account> = ledger.seen_since(now, rules.courtesy).chain(waiting.iter().copied()).collect();
        if active.iter().all(|account| active.first().is_some_and(|first| first.user == account.user)) {
            // Where there is nobody else, nothing has to be looked at.
            *self = Self::default();
            return;
        }
        let away = active.iter().filter(|account| !waiting.contains(account));
        self.ends_at = away.filter_map(|account| ledger.away_since(*account)).min().map(|since| since + rules.courtesy + Seconds::TICK);
        let usable: Vec<&Device> = devices.filter(|device| device.exists() && !device.drained).collect();
        let shares = gpu_shares(&active, usable.len(), rules);
        let held = held(&usable);
        let standing = |account: &&Account| (ledger.of_group(account.group), ledger.of_user(**account), **account);
        self.least = active.iter().min_by_key(standing).map(|account| account.user);
        self.users.clear();
        for (account, gpus) in &shares {
            let served = Served {
                share: gpus / usable.len().max(1) as f64,
                // Where no GPU is left, there are shares of nothing.
                held: if *gpus > 0.0 { held.get(&account.user).unwrap_or(&0.0) / gpus } else { 0.0 },
                group: (account.group, ledger.of_group(account.group)),
                standing: ledger.of_user(*account),
            };
            // A user of several groups is served as well as by the least of its shares.
            let least = self.users.entry(account.user).or_insert(served);
            *least = if served.held > least.held { served } else { *least };
        }
        let below = |user: UserId| self.users.get(&user).is_some_and(|served| served.held < 1.0);
        let due = shares.iter().filter(|(account, _)| below(account.user)).map(|(_, gpus)| gpus).sum::<f64>() as usize;
        if due == 0 || self.users.keys().all(|user| below(*user)) {
            self.kept.clear();
            return;
        }
        let gpus = usable.len();
        let others = usable.into_iter().filter(|device| !device.tenants.iter().any(|tenant| below(tenant.user)));
        let mut order: Vec<_> = others.map(|device| (!self.kept.contains(&device.id()), device.tenants.len(), device.id())).collect();
        let missing = due.saturating_sub(gpus - order.len());
        if missing < order.len() {
            // Which are kept matters, not their order.
            order.select_nth_unstable(missing);
        }
        self.kept = order.into_iter().take(missing).map(|(_, _, device)| device).collect();
    }

    /// Whether several users are about.
    pub(crate) fn is_called_for(&self) -> bool {
        !self.users.is_empty()
    }

    /// Whether the user may have to leave others room.
    pub(crate) fn bound(&self, user: UserId) -> Option<Bound<'_>> {
        let served = *self.users.get(&user)?;
        (self.least != Some(user)).then_some(Bound { courtesy: self, user, served })
    }
}

/// The devices that users hold: one that several are on counts for each by halves, thirds and so on.
fn held(devices: &[&Device]) -> BTreeMap<UserId, f64> {
    let mut held = BTreeMap::new();
    for device in devices {
        let users: BTreeSet<UserId> = device.tenants.iter().map(|tenant| tenant.user).collect();
        for user in &users {
            *held.entry(*user).or_default() += 1.0 / users.len() as f64;
        }
    }
    held
}

/// The GPUs that each of these should have.
fn gpu_shares(active: &BTreeSet<Account>, gpus: usize, rules: &QueueConfig) -> Vec<(Account, f64)> {
    let mut groups: BTreeMap<GroupId, f64> = BTreeMap::new();
    for account in active {
        *groups.entry(account.group).or_default() += rules.shares.of_user(account.user);
    }
    let all: f64 = groups.keys().map(|group| rules.shares.of_group(*group)).sum();
    let share = |account: &Account| {
        let of_group = rules.shares.of_user(account.user) / groups.get(&account.group).copied().unwrap_or(1.0);
        gpus as f64 * of_group * rules.shares.of_group(account.group) / all
    };
    active.iter().map(|account| (*account, share(account))).collect()
}

impl Bound<'_> {
    /// What keeps the user's jobs off a device, if anything.
    pub(crate) fn objection(&self, device: &Device) -> Option<Obstacle> {
        let no_more =
            |user: UserId| user != self.user && self.courtesy.users.get(&user).is_some_and(|other| other.held <= self.served.held);
        let left = || self.courtesy.kept.contains(&device.id()) || device.tenants.iter().any(|tenant| no_more(tenant.user));
        (self.served.held >= 1.0 && left()).then_some(Obstacle::LeftToOthers)
    }

    /// What keeps the user's jobs off all GPUs of a server, if anything: its jobs crowd the host of others.
    pub(crate) fn host_objection(&self, server: &Server) -> Option<Obstacle> {
        let tenants = || server.devices.iter().flat_map(|device| &device.tenants);
        let own = tenants().filter(|tenant| tenant.user == self.user).count();
        let usable = server.devices.iter().filter(|device| device.exists() && !device.drained).count();
        if own == 0 || (own as f64) < self.served.share * usable as f64 {
            return None;
        }
        let less = |user: UserId| self.courtesy.users.get(&user).is_some_and(|other| other.has_had_less_than(&self.served));
        tenants().any(|tenant| less(tenant.user)).then_some(Obstacle::HostLeftToOthers)
    }
}
