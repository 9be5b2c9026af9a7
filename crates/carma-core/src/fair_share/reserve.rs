//! GPUs that fair share keeps for users below their share, before they ask.
//!
//! Order alone does not make a crowded server fair. A user with few jobs finds every GPU full of jobs of users with many, waits for
//! the first to end, and is slowed down by the others. So a user who holds its share of the GPUs or more starts nothing
//! - beside a user who holds no more of its own share, or
//! - on GPUs that are kept for users below their share: enough for their shares, free already or after the jobs on them end.
//!
//! The user with the lowest long-term usage is exempt. Nothing is kept for users who have been away for too long.
//!
//! The jobs of a server also share its host. So on a server where a user with a lower long-term usage runs, another user has at most
//! one job for each GPU of its share of the server.

use std::collections::{BTreeMap, BTreeSet};

use super::{Account, Ledger};
use crate::config::QueueConfig;
use crate::device::Device;
use crate::fleet::Server;
use crate::obstacle::Obstacle;
use crate::units::{Seconds, Time};
use crate::{DeviceId, GroupId, UserId};

/// How much of their shares users hold, and what is kept for those below.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct FairShareReserve {
    /// Users with running or waiting jobs, now or recently.
    users: BTreeMap<UserId, UserUsage>,
    /// The user with the lowest long-term usage, who is exempt.
    least: Option<UserId>,
    /// The devices that are kept.
    kept: BTreeSet<DeviceId>,
    /// When the first absent user has been away for too long; unset: no user is away.
    pub(crate) ends_at: Option<Time>,
}

/// Usages within this factor count as equal, so that two users do not limit each other in turns.
const MARGIN: f64 = 1.1;

/// The GPU use of a user.
#[derive(Debug, Clone, Copy, PartialEq)]
struct UserUsage {
    /// Its share of all GPUs.
    share: f64,
    /// GPUs held over those of its share.
    held: f64,
    /// Its group, and the long-term usage of both.
    group: (GroupId, u64),
    usage: u64,
}

impl UserUsage {
    /// Whether its long-term usage is clearly lower.
    fn used_less_than(&self, other: &Self) -> bool {
        let ((group, mine), (other_group, theirs)) = (self.group, other.group);
        let (mine, theirs) = if group == other_group { (self.usage, other.usage) } else { (mine, theirs) };
        mine as f64 * MARGIN < theirs as f64
    }
}

/// A user who may have to leave GPUs to others.
#[derive(Clone, Copy)]
pub(crate) struct ReserveBound<'a> {
    reserve: &'a FairShareReserve,
    user: UserId,
    served: UserUsage,
}

impl FairShareReserve {
    /// Reviews all users and devices. Kept devices stay kept where possible, so that they become free.
    pub(crate) fn review<'a>(
        &mut self,
        (ledger, waiting): (&Ledger, impl Iterator<Item = Account>),
        devices: impl Iterator<Item = &'a Device>,
        rules: &QueueConfig,
        now: Time,
    ) {
        let waiting: BTreeSet<Account> = waiting.collect();
        let active: BTreeSet<Account> = ledger.seen_since(now, rules.fair_share_reserve).chain(waiting.iter().copied()).collect();
        if active.iter().all(|account| active.first().is_some_and(|first| first.user == account.user)) {
            // With a single user nothing is kept.
            *self = Self::default();
            return;
        }
        let away = active.iter().filter(|account| !waiting.contains(account));
        self.ends_at =
            away.filter_map(|account| ledger.away_since(*account)).min().map(|since| since + rules.fair_share_reserve + Seconds::TICK);
        let usable: Vec<&Device> = devices.filter(|device| device.may_be_used()).collect();
        let shares = gpu_shares(&active, usable.len(), rules);
        let held = held(&usable);
        let usage = |account: &&Account| (ledger.of_group(account.group), ledger.of_user(**account), **account);
        self.least = active.iter().min_by_key(usage).map(|account| account.user);
        self.users.clear();
        for (account, gpus) in &shares {
            let served = UserUsage {
                share: gpus / usable.len().max(1) as f64,
                // Without usable GPUs, shares are empty.
                held: if *gpus > 0.0 { held.get(&account.user).unwrap_or(&0.0) / gpus } else { 0.0 },
                group: (account.group, ledger.of_group(account.group)),
                usage: ledger.of_user(*account),
            };
            // A user in several groups counts by the share it holds most of.
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
            // The set matters, not its order.
            order.select_nth_unstable(missing);
        }
        self.kept = order.into_iter().take(missing).map(|(_, _, device)| device).collect();
    }

    /// Whether there are several users.
    pub(crate) fn is_active(&self) -> bool {
        !self.users.is_empty()
    }

    /// The limits on a user; unset: it is exempt.
    pub(crate) fn bound(&self, user: UserId) -> Option<ReserveBound<'_>> {
        let served = *self.users.get(&user)?;
        (self.least != Some(user)).then_some(ReserveBound { reserve: self, user, served })
    }
}

/// The devices that users hold; a shared device is split between its users.
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

impl ReserveBound<'_> {
    /// Why the user's jobs must not go to a device, if so.
    pub(crate) fn objection(&self, device: &Device) -> Option<Obstacle> {
        let no_more = |user: UserId| user != self.user && self.reserve.users.get(&user).is_some_and(|other| other.held <= self.served.held);
        let left = || self.reserve.kept.contains(&device.id()) || device.tenants.iter().any(|tenant| no_more(tenant.user));
        (self.served.held >= 1.0 && left()).then_some(Obstacle::ReservedForFairShare)
    }

    /// Why the user's jobs must not start on any GPU of a server, if so: they would take too much of the host from other users.
    pub(crate) fn host_objection(&self, server: &Server) -> Option<Obstacle> {
        let tenants = || server.devices.iter().flat_map(|device| &device.tenants);
        let own = tenants().filter(|tenant| tenant.user == self.user).count();
        let usable = server.devices.iter().filter(|device| device.may_be_used()).count();
        if own == 0 || (own as f64) < self.served.share * usable as f64 {
            return None;
        }
        let less = |user: UserId| self.reserve.users.get(&user).is_some_and(|other| other.used_less_than(&self.served));
        tenants().any(|tenant| less(tenant.user)).then_some(Obstacle::HostReservedForFairShare)
    }
}
