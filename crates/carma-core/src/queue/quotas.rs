//! Turns within each user's quota: a job without a turn is in no queue, and so blocks no other user.
//!
//! A turn is given when what the user's jobs take that run or stand in a queue leaves enough for one more, and is kept until the
//! job ends or is withdrawn. Among the jobs of one user turns go strictly in order, so that many small jobs cannot keep a
//! large one from its turn for ever.

use std::collections::BTreeMap;

use super::Place;
use crate::config::{OverQuota, Quota, QuotaUse};
use crate::job::Job;
use crate::{JobId, UserId};

/// The accounts of users with a quota.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Quotas {
    accounts: BTreeMap<UserId, Account>,
}

#[derive(Debug, Clone, PartialEq, Default)]
struct Account {
    /// What each job takes that runs or is queued.
    turns: BTreeMap<JobId, QuotaUse>,
    /// The sum of that.
    taken: QuotaUse,
    /// Jobs that wait for a turn, with what they need.
    waiting: BTreeMap<Place, QuotaUse>,
}

impl Account {
    fn give(&mut self, job: JobId, taken: QuotaUse) {
        self.taken = self.taken + taken;
        self.turns.insert(job, taken);
    }
}

impl Quotas {
    /// Asks for a turn, giving back the one it had; [`Quotas::next`] names the job when it has come. The whole quota must
    /// suffice for it, or no job of its user would get a turn again.
    pub(crate) fn ask(&mut self, job: &Job, needed: QuotaUse) {
        self.leave(job);
        self.accounts.entry(job.spec.user).or_default().waiting.insert(Place::of(job), needed);
    }

    /// The next job of the user whose turn has come.
    pub(crate) fn next(&mut self, user: UserId, quota: &Quota) -> Option<JobId> {
        let account = self.accounts.get_mut(&user)?;
        let first = account.waiting.first_entry()?;
        if quota.objection(*first.get(), account.taken).is_some() {
            return None;
        }
        let (place, needed) = first.remove_entry();
        account.give(place.job, needed);
        Some(place.job)
    }

    /// Notes what a job that runs really takes, whether its user may have it or not.
    pub(crate) fn hold(&mut self, job: &Job, taken: QuotaUse) {
        self.leave(job);
        self.accounts.entry(job.spec.user).or_default().give(job.id(), taken);
    }

    /// Gives a turn back, or stops waiting for one.
    pub(crate) fn leave(&mut self, job: &Job) {
        let Some(account) = self.accounts.get_mut(&job.spec.user) else { return };
        account.waiting.remove(&Place::of(job));
        if let Some(taken) = account.turns.remove(&job.id()) {
            account.taken = account.taken - taken;
        }
        if account.turns.is_empty() && account.waiting.is_empty() {
            self.accounts.remove(&job.spec.user);
        }
    }

    /// Gives every job that waits another place, by new rules.
    pub(crate) fn sort_again(&mut self, place: &impl Fn(JobId) -> Option<Place>) {
        for account in self.accounts.values_mut() {
            let again = |(old, needed): (Place, QuotaUse)| Some((place(old.job)?, needed));
            account.waiting = std::mem::take(&mut account.waiting).into_iter().filter_map(again).collect();
        }
    }

    /// Whether the job waits for a turn.
    pub(crate) fn is_waiting(&self, job: &Job) -> bool {
        self.accounts.get(&job.spec.user).is_some_and(|account| account.waiting.contains_key(&Place::of(job)))
    }

    /// Why the job waits for a turn, if it does: what those before it take and are to take leaves too little.
    pub(crate) fn objection(&self, job: &Job, quota: &Quota) -> Option<OverQuota> {
        let (account, place) = (self.accounts.get(&job.spec.user)?, Place::of(job));
        let needed = account.waiting.get(&place)?;
        let used = account.waiting.range(..place).fold(account.taken, |used, (_, before)| used + *before);
        quota.objection(*needed, used).or_else(|| {
            // It needs nothing of what those before it wait for, but turns go in order.
            let (_, first) = account.waiting.first_key_value()?;
            quota.objection(*first, account.taken)
        })
    }

    /// What the job's turn takes, for checks.
    pub(crate) fn turn(&self, job: &Job) -> Option<QuotaUse> {
        self.accounts.get(&job.spec.user)?.turns.get(&job.id()).copied()
    }

    /// Users whose turns do not add up, for checks.
    pub(crate) fn wrong_sums(&self) -> impl Iterator<Item = UserId> + '_ {
        let sum = |account: &Account| account.turns.values().fold(QuotaUse::default(), |sum, turn| sum + *turn);
        self.accounts.iter().filter(move |(_, account)| sum(account) != account.taken).map(|(user, _)| *user)
    }
}
