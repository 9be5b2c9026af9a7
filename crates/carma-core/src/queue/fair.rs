//! The main queue: in order, or in turns between users.
//!
//! Under fair share the order is that in which jobs would start: of the highest priority, the group with the lowest usage, in it the user
//! with the lowest usage, and of this user the first job; then its cost is added to the usage of both, and so on. So jobs of
//! users with equal usage alternate by cost, however many jobs one of them has.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, btree_set};

use super::Place;
use crate::GroupId;
use crate::config::{QueueConfig, Shares};
use crate::device::Device;
use crate::fair_share::{Account, FairShareReserve, Ledger};
use crate::job::{Job, Priority};
use crate::units::{Seconds, Time};

/// The main queue; without fair share all jobs stand in one line.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct FairQueue {
    lines: BTreeMap<Account, BTreeSet<Place>>,
    len: usize,
    /// By how long they should run; of jobs that should run as long, the first comes last.
    lengths: BTreeSet<(Seconds, Reverse<Place>)>,
    /// GPU time of all, in milliseconds.
    work: u128,
    fair: bool,
    shares: Shares,
    pub(crate) ledger: Ledger,
    pub(crate) reserve: FairShareReserve,
}

impl FairQueue {
    const fn account(&self, place: &Place) -> Account {
        if self.fair { place.account } else { Account::ALL_USERS }
    }

    /// Applies new rules; the queue must be empty.
    pub(crate) fn apply_rules(&mut self, fair: bool, shares: &Shares) {
        debug_assert!(self.len == 0);
        (self.fair, self.shares) = (fair, shares.clone());
    }

    /// The first ones, in the order in which they would start.
    pub(crate) fn front(&self, most: usize) -> Self {
        let (shares, ledger, reserve) = (self.shares.clone(), self.ledger.clone(), self.reserve.clone());
        let mut front = Self { fair: self.fair, shares, ledger, reserve, ..Self::default() };
        self.iter().take(most).for_each(|place| front.insert(*place));
        front
    }

    pub(crate) fn insert(&mut self, place: Place) {
        if self.lines.entry(self.account(&place)).or_default().insert(place) {
            self.len += 1;
            self.lengths.insert((place.length, Reverse(place)));
            self.work += work(&place);
        }
    }

    pub(crate) fn remove(&mut self, place: &Place) {
        let account = self.account(place);
        let Some(line) = self.lines.get_mut(&account) else { return };
        if let Some(place) = line.take(place) {
            self.len -= 1;
            self.lengths.remove(&(place.length, Reverse(place)));
            self.work -= work(&place);
        }
        if line.is_empty() {
            self.lines.remove(&account);
        }
    }

    pub(crate) fn contains(&self, place: &Place) -> bool {
        self.lines.get(&self.account(place)).is_some_and(|line| line.contains(place))
    }

    /// The rank of the last in the line of a job, among those of its priority.
    pub(crate) fn last_rank(&self, job: &Job) -> u64 {
        let end = Place::behind_all(job);
        let last = self.lines.get(&self.account(&end)).and_then(|line| line.range(..=end).next_back());
        last.filter(|last| last.priority == end.priority).map_or(0, |last| last.rank)
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Whether what is kept of all jobs together agrees with the jobs, for checks.
    pub(crate) fn adds_up(&self) -> bool {
        let places = || self.lines.values().flatten();
        let lengths = places().all(|place| self.lengths.contains(&(place.length, Reverse(*place))));
        lengths && self.lengths.len() == self.len && self.work == places().map(work).sum()
    }

    /// Accounts with jobs in it.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = Account> + '_ {
        self.lines.keys().copied()
    }

    /// Reviews which users are below their share.
    pub(crate) fn review_reserve<'a>(&mut self, devices: impl Iterator<Item = &'a Device>, rules: &QueueConfig, now: Time) {
        self.reserve.review((&self.ledger, self.lines.keys().copied()), devices, rules, now);
    }

    /// Takes all jobs out.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Place> + use<> {
        (self.len, self.work) = (0, 0);
        self.lengths.clear();
        std::mem::take(&mut self.lines).into_values().flatten()
    }

    /// The longest job (the first of several) if its account is next, and the GPU time of all other jobs in milliseconds.
    pub(crate) fn longest(&self) -> Option<(&Place, u128)> {
        let ((_, Reverse(longest)), first) = (self.lengths.last()?, self.first()?);
        let in_turn = longest.priority == first.priority && self.account(longest) == self.account(first);
        in_turn.then(|| (longest, self.work - work(longest)))
    }

    /// The first job.
    pub(crate) fn first(&self) -> Option<&Place> {
        if !self.fair {
            return self.lines.get(&Account::ALL_USERS)?.first();
        }
        let firsts = self.lines.iter().filter_map(|(account, line)| Some((*account, line.first()?)));
        let next = firsts.min_by_key(|(account, place)| {
            let group = (self.ledger.of_group(account.group), account.group);
            (place.priority, group, self.ledger.of_user(*account), *place)
        });
        next.map(|(_, place)| place)
    }

    /// All jobs, in the order in which they would start.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Place> {
        let (one, many) = if self.fair { (None, Some(self.turns())) } else { (self.lines.get(&Account::ALL_USERS), None) };
        one.into_iter().flatten().chain(many.into_iter().flatten())
    }

    fn turns(&self) -> Turns<'_> {
        let mut turns = Turns { groups: BinaryHeap::new(), members: BTreeMap::new(), shares: &self.shares };
        for (account, line) in &self.lines {
            let mut rest = line.iter();
            let Some(place) = rest.next() else { continue };
            let member = Member { priority: place.priority, usage: self.ledger.of_user(*account), place, rest };
            turns.members.entry(account.group).or_default().push(Reverse(member));
        }
        let firsts = turns.members.iter().filter_map(|(group, members)| Some((*group, members.peek()?.0.priority)));
        turns.groups = firsts.map(|(group, priority)| Reverse((priority, self.ledger.of_group(group), group))).collect();
        turns
    }
}

/// GPU time, in milliseconds.
const fn work(place: &Place) -> u128 {
    place.length.milliseconds() as u128 * place.ranks as u128
}

/// A user among those of its group: by the priority of its first job, then by usage.
#[derive(Debug, Clone)]
struct Member<'a> {
    priority: Reverse<Priority>,
    usage: u64,
    place: &'a Place,
    rest: btree_set::Iter<'a, Place>,
}

impl Member<'_> {
    const fn key(&self) -> (Reverse<Priority>, u64, &Place) {
        (self.priority, self.usage, self.place)
    }
}

impl PartialEq for Member<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Member<'_> {}

impl PartialOrd for Member<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Member<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// Jobs in the order in which they would start.
struct Turns<'a> {
    /// Groups by the priority of their first job, then by usage.
    groups: BinaryHeap<Reverse<(Reverse<Priority>, u64, GroupId)>>,
    members: BTreeMap<GroupId, BinaryHeap<Reverse<Member<'a>>>>,
    shares: &'a Shares,
}

impl<'a> Iterator for Turns<'a> {
    type Item = &'a Place;

    fn next(&mut self) -> Option<&'a Place> {
        let Reverse((_, group_usage, group)) = self.groups.pop()?;
        let members = self.members.get_mut(&group)?;
        let Reverse(Member { usage, place, mut rest, .. }) = members.pop()?;
        let after = |usage: u64, share: f64| usage.saturating_add((place.cost.milliseconds() as f64 / share) as u64);
        if let Some(next) = rest.next() {
            let usage = after(usage, self.shares.of_user(place.account.user));
            members.push(Reverse(Member { priority: next.priority, usage, place: next, rest }));
        }
        if let Some(Reverse(first)) = members.peek() {
            self.groups.push(Reverse((first.priority, after(group_usage, self.shares.of_group(group)), group)));
        }
        Some(place)
    }
}
