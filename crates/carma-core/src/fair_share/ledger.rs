//! GPU time that users and groups have used and are about to use: fair share orders users by it.
//!
//! An attempt takes a part of each of its devices. That part times the elapsed time is charged to its user; the charge decays by half
//! every half-life. Running attempts are also charged with their expected remaining use. Without that, of two users with equal usage
//! one could start all jobs before the other starts one.
//!
//! Usage is updated only when an attempt begins or ends. In between, the order of users does not change.

use std::collections::{BTreeMap, BTreeSet};

use super::Account;
use crate::config::QueueConfig;
use crate::units::{Seconds, Time};
use crate::{AttemptId, GroupId};

/// The accounts.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Ledger {
    as_of: Time,
    users: BTreeMap<Account, Entry>,
    groups: BTreeMap<GroupId, Entry>,
    running: BTreeMap<AttemptId, Charge>,
}

/// What an attempt takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Charge {
    pub(crate) account: Account,
    /// GPUs, with what it takes of each.
    pub(crate) weight: f64,
    /// When it should be over.
    pub(crate) due: Time,
}

/// One user or group.
#[derive(Debug, Clone, PartialEq, Default)]
struct Entry {
    /// GPU-seconds used until then, decayed.
    had: f64,
    as_of: Time,
    /// GPUs taken now.
    rate: f64,
    /// Attempts that are not overdue, by when they should be over; the sums of their weights, and of weight times that moment.
    due: BTreeSet<(Time, AttemptId)>,
    due_weight: f64,
    due_moment: f64,
    /// Attempts under way, and when one was last.
    running: usize,
    seen: Time,
    /// Past and predicted use divided by the share, in thousandths of GPU-seconds.
    usage: u64,
}

/// The usage of one account, to store or show.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Reading {
    /// GPU-seconds used, decayed.
    pub(crate) had: f64,
    /// GPUs taken now.
    pub(crate) rate: f64,
    /// GPU-seconds that attempts under way should still take.
    pub(crate) due: f64,
}

/// What is left of a use after this time.
fn decay(passed: Seconds, half_life: Seconds) -> f64 {
    (-passed.get() / half_life.get()).exp2()
}

/// What a steady use of so many GPUs comes to. It decays while it accrues, so it is never above `rate * half_life / ln 2`.
fn accrued(rate: f64, passed: Seconds, half_life: Seconds) -> f64 {
    rate * half_life.get() / std::f64::consts::LN_2 * (1.0 - decay(passed, half_life))
}

/// GPU-seconds below which an account is dropped.
const NEGLIGIBLE: f64 = 0.5;

impl Entry {
    /// Brings it to a later moment: what it takes accrues, and all of it decays.
    fn advance(&mut self, to: Time, half_life: Seconds) {
        let passed = to - self.as_of;
        self.had = self.had * decay(passed, half_life) + accrued(self.rate, passed, half_life);
        self.as_of = self.as_of.max(to);
    }

    fn due(&self) -> f64 {
        (self.due_moment - self.due_weight * self.as_of.get()).max(0.0)
    }

    fn begin(&mut self, attempt: AttemptId, charge: Charge) {
        self.rate += charge.weight;
        self.running += 1;
        self.seen = self.as_of;
        self.due.insert((charge.due, attempt));
        self.due_weight += charge.weight;
        self.due_moment += charge.weight * charge.due.get();
    }

    fn end(&mut self, attempt: AttemptId, charge: Charge) {
        self.rate -= charge.weight;
        self.running -= 1;
        self.seen = self.as_of;
        self.no_longer_due(attempt, charge);
        if self.running == 0 {
            // Sums of fractions do not return to exactly zero.
            self.rate = 0.0;
        }
    }

    fn no_longer_due(&mut self, attempt: AttemptId, charge: Charge) {
        if self.due.remove(&(charge.due, attempt)) {
            self.due_weight -= charge.weight;
            self.due_moment -= charge.weight * charge.due.get();
        }
        if self.due.is_empty() {
            (self.due_weight, self.due_moment) = (0.0, 0.0);
        }
    }

    fn update_usage(&mut self, share: f64) {
        self.usage = ((self.had + self.due()) / share * 1000.0) as u64;
    }

    fn reading(&self) -> Reading {
        Reading { had: self.had, rate: self.rate, due: self.due() }
    }
}

impl Ledger {
    /// Starts to charge an attempt. `had` is what it used before this moment.
    pub(crate) fn begin(&mut self, attempt: AttemptId, charge: Charge, had: f64, now: Time, config: &QueueConfig) {
        self.running.insert(attempt, charge);
        self.entries(charge.account, now, config).for_each(|entry| {
            entry.had += had;
            entry.begin(attempt, charge);
        });
        self.read(now, config);
    }

    /// Stops to charge an attempt that ended at this moment, now or before.
    pub(crate) fn end(&mut self, attempt: AttemptId, ended: Time, now: Time, config: &QueueConfig) {
        let Some(charge) = self.running.remove(&attempt) else { return };
        let too_much = accrued(charge.weight, now - ended, config.half_life);
        self.entries(charge.account, now, config).for_each(|entry| {
            entry.had = (entry.had - too_much).max(0.0);
            entry.end(attempt, charge);
        });
        self.read(now, config);
    }

    /// Adds the stored usage of an account.
    pub(crate) fn credit(&mut self, account: Account, had: f64, as_of: Time, config: &QueueConfig) {
        self.entries(account, as_of, config).for_each(|entry| entry.had += had);
        self.as_of = self.as_of.max(as_of);
    }

    /// Both entries that a user's use goes to, brought up to now.
    fn entries(&mut self, account: Account, now: Time, config: &QueueConfig) -> impl Iterator<Item = &mut Entry> {
        let fresh = || Entry { as_of: now, ..Entry::default() };
        let user = self.users.entry(account).or_insert_with(fresh);
        let group = self.groups.entry(account.group).or_insert_with(fresh);
        user.advance(now, config.half_life);
        group.advance(now, config.half_life);
        [user, group].into_iter()
    }

    /// Reads all accounts as of now.
    pub(crate) fn read(&mut self, now: Time, config: &QueueConfig) {
        self.as_of = self.as_of.max(now);
        let running = &self.running;
        let advance = |entry: &mut Entry, share: f64| {
            entry.advance(now, config.half_life);
            while let Some((_, attempt)) = entry.due.first().filter(|(due, _)| *due <= now).copied() {
                match running.get(&attempt) {
                    Some(charge) => entry.no_longer_due(attempt, *charge),
                    None => drop(entry.due.pop_first()),
                }
            }
            entry.update_usage(share);
        };
        self.users.iter_mut().for_each(|(account, entry)| advance(entry, config.shares.of_user(account.user)));
        self.groups.iter_mut().for_each(|(group, entry)| advance(entry, config.shares.of_group(*group)));
        let matters = |entry: &Entry| entry.running > 0 || entry.had > NEGLIGIBLE;
        self.users.retain(|_, entry| matters(entry));
        self.groups.retain(|_, entry| matters(entry));
    }

    /// A user's usage over its share, within its group: the lowest is next.
    pub(crate) fn of_user(&self, account: Account) -> u64 {
        self.users.get(&account).map_or(0, |entry| entry.usage)
    }

    /// A group's usage over its share: the lowest is next.
    pub(crate) fn of_group(&self, group: GroupId) -> u64 {
        self.groups.get(&group).map_or(0, |entry| entry.usage)
    }

    /// When the accounts were last read.
    pub(crate) const fn as_of(&self) -> Time {
        self.as_of
    }

    /// The past use of an account, as last read.
    pub(crate) fn reading(&self, account: Account) -> Reading {
        self.users.get(&account).map(Entry::reading).unwrap_or_default()
    }

    /// Accounts with running attempts, now or within this time.
    pub(crate) fn seen_since(&self, now: Time, span: Seconds) -> impl Iterator<Item = Account> + '_ {
        let seen = move |entry: &Entry| entry.running > 0 || now - entry.seen <= span;
        self.users.iter().filter(move |(_, entry)| seen(entry)).map(|(account, _)| *account)
    }

    /// When the account's last attempt ended; unset while one runs.
    pub(crate) fn away_since(&self, account: Account) -> Option<Time> {
        self.users.get(&account).filter(|entry| entry.running == 0).map(|entry| entry.seen)
    }

    /// Accounts with usage.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = Account> + '_ {
        self.users.keys().copied()
    }

    /// Whether the attempt is charged.
    pub(crate) fn charges(&self, attempt: AttemptId) -> bool {
        self.running.contains_key(&attempt)
    }

    /// How many attempts are charged, for checks.
    pub(crate) fn len(&self) -> usize {
        self.running.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::keys::Preset;
    use crate::{JobId, UserId};

    const ADA: Account = Account { group: GroupId(1), user: UserId(1) };
    const GRACE: Account = Account { group: GroupId(1), user: UserId(2) };

    fn attempt(job: u64) -> AttemptId {
        AttemptId { job: JobId(job), number: 1 }
    }

    fn charge(account: Account, weight: f64, due: u64) -> Charge {
        Charge { account, weight, due: Time::from_secs(due) }
    }

    #[test]
    fn use_accumulates_and_halves_after_a_half_life() {
        let config = QueueConfig { half_life: Seconds::from_secs(1000), ..Config::from(Preset::Paper).queue };
        let mut ledger = Ledger::default();
        ledger.begin(attempt(1), charge(ADA, 0.5, 10), 0.0, Time::ZERO, &config);
        assert_eq!(ledger.of_user(ADA), 5_000, "what it is about to have counts");
        ledger.end(attempt(1), Time::from_secs(20), Time::from_secs(20), &config);
        let after = ledger.of_user(ADA);
        assert!((9_800..10_000).contains(&after), "{after}: overdue, it has had what it took");
        ledger.read(Time::from_secs(1020), &config);
        assert!(ledger.of_user(ADA).abs_diff(after / 2) <= 1);
        assert_eq!(ledger.of_group(GroupId(1)), ledger.of_user(ADA));
    }

    #[test]
    fn an_attempt_that_ended_before_is_charged_until_its_end() {
        let config = QueueConfig { half_life: Seconds::from_secs(1000), ..Config::from(Preset::Paper).queue };
        let used = |ended: u64, told: u64| {
            let mut ledger = Ledger::default();
            ledger.begin(attempt(1), charge(ADA, 1.0, 0), 0.0, Time::ZERO, &config);
            ledger.end(attempt(1), Time::from_secs(ended), Time::from_secs(told), &config);
            ledger.read(Time::from_secs(2000), &config);
            ledger.of_user(ADA)
        };
        assert!(used(50, 1500).abs_diff(used(50, 50)) <= 1, "{} {}", used(50, 1500), used(50, 50));
        assert!(used(50, 1500) < used(1500, 1500) / 5);
    }

    #[test]
    fn use_is_divided_by_shares_and_summed_for_groups() {
        let mut config = Config::from(Preset::Paper).queue;
        config.shares.users.insert(UserId(2), 4.0);
        let mut ledger = Ledger::default();
        ledger.credit(ADA, 100.0, Time::ZERO, &config);
        ledger.credit(GRACE, 100.0, Time::ZERO, &config);
        ledger.read(Time::ZERO, &config);
        assert_eq!((ledger.of_user(ADA), ledger.of_user(GRACE), ledger.of_group(GroupId(1))), (100_000, 25_000, 200_000));
    }
}
