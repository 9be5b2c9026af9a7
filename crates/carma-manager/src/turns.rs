//! Work of users, in turns: the user who was served least is next, by the time that their work took. So one user's work does not delay another's by
//! more than one piece of it, however much of it there is.
//!
//! ```text
//!  add(user, work) ─► user 1: ▪▪▪▪▪▪▪▪ ┐
//!                     user 2: ▪        ├─► next(): fewest running, then least served, then longest without a turn
//!                     user 3: ▪▪       ┘        │
//!                          ▲                    ▼
//!                          └──── done(user, cost)
//! ```
//!
//! It is a queue without threads or locks. The engine, the readers of the store and the worker threads each have one.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// The manager itself, among users. It is the number of no user.
pub(crate) const OWN: u32 = u32::MAX;

/// How much work may run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Of all users together. A user alone may have all of it.
    pub(crate) shared: usize,
    /// When that is taken, a user with nothing running may still start one, until this much runs.
    pub(crate) most: usize,
}

impl Limits {
    /// This much of all users, and no more.
    pub(crate) const fn at_most(shared: usize) -> Self {
        Self { shared, most: shared }
    }
}

/// The work of users that waits, and what each of them has had.
#[derive(Debug)]
pub(crate) struct Turns<T> {
    limits: Limits,
    users: HashMap<u32, Account<T>>,
    running: usize,
    /// The account of the user who was next last. New users start there: time without work is not saved up.
    level: Duration,
    /// Counts turns, to order users with equal accounts.
    turn: u64,
}

#[derive(Debug)]
struct Account<T> {
    waiting: VecDeque<T>,
    running: usize,
    /// The cost of the user's work so far.
    served: Duration,
    /// The user's last turn, or their arrival.
    last: u64,
}

impl<T> Account<T> {
    fn may_start(&self, full: bool) -> bool {
        !self.waiting.is_empty() && (self.running == 0 || !full)
    }
}

impl<T> Turns<T> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, users: HashMap::new(), running: 0, level: Duration::ZERO, turn: 0 }
    }

    /// Adds work of a user, behind their other work.
    pub(crate) fn add(&mut self, user: u32, work: T) {
        self.account(user).waiting.push_back(work);
    }

    /// Adds work of a user before their other work: the rest of a piece that was done.
    pub(crate) fn add_first(&mut self, user: u32, work: T) {
        self.account(user).waiting.push_front(work);
    }

    /// The next work, if any may start now. `done` must follow.
    pub(crate) fn next(&mut self) -> Option<(u32, T)> {
        self.next_of(|_| true)
    }

    /// The same among some users.
    pub(crate) fn next_of(&mut self, may_start: impl Fn(u32) -> bool) -> Option<(u32, T)> {
        if self.running >= self.limits.most {
            return None;
        }
        let full = self.running >= self.limits.shared;
        let waiting = self.users.iter_mut().filter(|(user, account)| account.may_start(full) && may_start(**user));
        let (user, account) = waiting.min_by_key(|(_, account)| (account.running, account.served, account.last))?;
        let work = account.waiting.pop_front()?;
        self.turn += 1;
        (account.running, account.last) = (account.running + 1, self.turn);
        self.level = self.level.max(account.served);
        self.running += 1;
        Some((*user, work))
    }

    /// A piece of work of a user is done, and took this long.
    pub(crate) fn done(&mut self, user: u32, cost: Duration) {
        let Some(account) = self.users.get_mut(&user) else { return };
        account.running = account.running.saturating_sub(1);
        // Nothing is free: otherwise a user with many small pieces would stay first.
        account.served += cost.max(Duration::from_nanos(1));
        self.running = self.running.saturating_sub(1);
        let level = self.level;
        self.users.retain(|_, account| !account.waiting.is_empty() || account.running > 0 || account.served > level);
    }

    /// Whether any work of some users may start now.
    pub(crate) fn can_start(&self, may_start: impl Fn(u32) -> bool) -> bool {
        let full = self.running >= self.limits.shared;
        let waits = |(user, account): (&u32, &Account<T>)| account.may_start(full) && may_start(*user);
        self.running < self.limits.most && self.users.iter().any(waits)
    }

    /// Takes out the waiting work of a user that is meant.
    pub(crate) fn remove(&mut self, user: u32, is_meant: impl Fn(&T) -> bool) {
        if let Some(account) = self.users.get_mut(&user) {
            account.waiting.retain(|work| !is_meant(work));
        }
    }

    /// Takes out all waiting work.
    pub(crate) fn drain(&mut self) -> Vec<T> {
        self.users.values_mut().flat_map(|account| account.waiting.drain(..)).collect()
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.users.values().all(|account| account.waiting.is_empty())
    }

    fn account(&mut self, user: u32) -> &mut Account<T> {
        self.turn += 1;
        let (level, last) = (self.level, self.turn);
        let account = self.users.entry(user).or_insert_with(|| Account { waiting: VecDeque::new(), running: 0, served: level, last });
        if account.waiting.is_empty() && account.running == 0 {
            account.served = account.served.max(level);
        }
        account
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// The users of the next pieces, one at a time, each with this cost.
    fn served(turns: &mut Turns<u32>, pieces: usize, cost: impl Fn(u32) -> Duration) -> Vec<u32> {
        let next = |_| {
            let (user, _) = turns.next()?;
            turns.done(user, cost(user));
            Some(user)
        };
        (0..pieces).filter_map(next).collect()
    }

    #[test]
    fn a_user_with_one_request_does_not_wait_for_a_hundred_of_another() {
        let mut turns = Turns::new(Limits::at_most(1));
        (0..100).for_each(|work| turns.add(1, work));
        assert_eq!(served(&mut turns, 10, |_| MS), [1; 10]);
        turns.add(2, 0);
        assert_eq!(served(&mut turns, 3, |_| MS)[..2], [2, 1]);
    }

    #[test]
    fn users_with_costly_work_have_fewer_turns() {
        let mut turns = Turns::new(Limits::at_most(1));
        (0..100).for_each(|work| [1, 2].into_iter().for_each(|user| turns.add(user, work)));
        let served = served(&mut turns, 88, |user| if user == 1 { MS * 10 } else { MS });
        assert_eq!(served.iter().filter(|user| **user == 1).count(), 8);
    }

    #[test]
    fn idle_time_earns_no_credit() {
        let mut turns = Turns::new(Limits::at_most(1));
        (0..200).for_each(|work| turns.add(1, work));
        served(&mut turns, 100, |_| MS);
        (0..100).for_each(|work| turns.add(2, work));
        let next = served(&mut turns, 20, |_| MS);
        assert_eq!(next.iter().filter(|user| **user == 1).count(), 10);
    }

    #[test]
    fn a_single_user_takes_the_shared_turns_and_others_still_start_one() {
        let mut turns = Turns::new(Limits { shared: 2, most: 3 });
        (0..9).for_each(|work| turns.add(1, work));
        assert!(turns.next().is_some() && turns.next().is_some() && turns.next().is_none());
        (2..=3).for_each(|user| (0..2).for_each(|work| turns.add(user, work)));
        assert_eq!(turns.next(), Some((2, 0)));
        assert_eq!(turns.next(), None, "that is the most");
        turns.done(1, MS);
        assert_eq!(turns.next(), Some((3, 0)), "before the second of another");
    }

    #[test]
    fn work_is_removed_put_back_and_drained() {
        let mut turns = Turns::new(Limits::at_most(1));
        (0..4).for_each(|work| turns.add(1, work));
        turns.remove(1, |work| *work == 2);
        let (user, first) = turns.next().unwrap();
        turns.add_first(user, first);
        turns.done(user, MS);
        assert_eq!(turns.next(), Some((1, 0)));
        turns.done(1, MS);
        assert_eq!((turns.drain(), turns.is_empty()), (vec![1, 3], true));
        assert!(turns.next_of(|_| true).is_none());
    }

    #[test]
    fn only_users_below_their_limit_are_next() {
        let mut turns = Turns::new(Limits::at_most(1));
        (1..=2).for_each(|user| turns.add(user, user));
        assert_eq!(turns.next_of(|user| user == 2), Some((2, 2)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn no_user_waits_for_more_than_one_piece_of_each_other_user(
            before in prop::collection::vec((1_u32..8, 1_u64..50), 0..200), after in prop::collection::vec((1_u32..8, 1_u64..50), 0..200),
        ) {
            let mut turns = Turns::new(Limits::at_most(1));
            for (user, cost) in &before {
                turns.add(*user, *cost);
            }
            for _ in 0..before.len() / 2 {
                let (user, cost) = turns.next().unwrap();
                turns.done(user, MS * cost as u32);
            }
            // A new user arrives, and all others continue to send.
            turns.add(9, 1);
            for (user, cost) in &after {
                turns.add(*user, *cost);
            }
            let mut passed = Vec::new();
            loop {
                let (user, cost) = turns.next().unwrap();
                turns.done(user, MS * cost as u32);
                if user == 9 { break; }
                prop_assert!(!passed.contains(&user), "{user} had two turns before");
                passed.push(user);
            }
        }

        #[test]
        fn everything_added_comes_once_and_in_the_order_of_its_user(
            added in prop::collection::vec((1_u32..5, 0_u64..20), 0..100), shared in 1_usize..4, beyond in 0_usize..4,
        ) {
            let mut turns = Turns::new(Limits { shared, most: shared + beyond });
            added.iter().enumerate().for_each(|(place, (user, cost))| turns.add(*user, (place, *cost)));
            let (mut seen, mut running) = (Vec::new(), VecDeque::new());
            while seen.len() < added.len() {
                while let Some((user, (place, cost))) = turns.next() {
                    seen.push((user, place));
                    running.push_back((user, cost));
                }
                prop_assert!(running.len() <= shared + beyond && !running.is_empty());
                let (user, cost) = running.pop_front().unwrap();
                turns.done(user, MS * cost as u32);
            }
            for user in 1..5 {
                let places: Vec<usize> = seen.iter().filter(|(of, _)| *of == user).map(|(_, place)| *place).collect();
                prop_assert!(places.is_sorted());
            }
            for (user, cost) in running {
                turns.done(user, MS * cost as u32);
            }
            prop_assert!(turns.is_empty() && turns.running == 0);
        }
    }
}
