//! The lease of an agent: until when it may run attempts without an answer of its manager. All times are since boot.

use std::collections::VecDeque;
use std::time::Duration;

/// Beats in the time of a lease.
const RENEWALS_PER_LEASE: u32 = 10;
/// The longest time between two beats.
const LONGEST: Duration = Duration::from_secs(5);

/// Beats without an answer, and the lease that answers renew.
#[derive(Debug)]
pub(super) struct Lease {
    length: Duration,
    until: Duration,
    /// Numbers and times of beats without an answer.
    pending: VecDeque<(u64, Duration)>,
    next: u64,
    last_beat: Duration,
}

impl Lease {
    /// A lease of this length from now on.
    pub(super) fn new(length: Duration, now: Duration) -> Self {
        Self { length, until: now + length, pending: VecDeque::new(), next: 1, last_beat: now }
    }

    pub(super) fn until(&self) -> Duration {
        self.until
    }

    pub(super) fn is_over(&self, now: Duration) -> bool {
        now > self.until
    }

    /// The manager grants a lease of this length. It counts from the question, as the manager counts from when it heard it: an answer may have waited
    /// for long in an agent that was stopped.
    pub(super) fn granted(&mut self, length: Duration, asked: Duration) {
        self.length = length;
        self.pending.clear();
        self.until = asked + length;
    }

    /// The manager is there, and has nothing running here.
    pub(super) fn extend(&mut self, now: Duration) {
        self.until = self.until.max(now + self.length);
    }

    /// The number of the next beat, if it is due.
    pub(super) fn beat(&mut self, now: Duration) -> Option<u64> {
        if now.saturating_sub(self.last_beat) < (self.length / RENEWALS_PER_LEASE).min(LONGEST) {
            return None;
        }
        let number = self.next;
        (self.next, self.last_beat) = (number + 1, now);
        self.pending.push_back((number, now));
        Some(number)
    }

    /// A beat has an answer: the lease counts from when that beat was sent.
    pub(super) fn answered(&mut self, number: u64) {
        while let Some((_, sent)) = self.pending.front().copied().filter(|(beat, _)| *beat <= number) {
            self.pending.pop_front();
            self.until = sent + self.length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_counts_from_the_question_and_not_from_the_answer() {
        let at = Duration::from_secs;
        let mut lease = Lease::new(at(300), at(0));
        lease.granted(at(4), at(10));
        assert!(!lease.is_over(at(14)) && lease.is_over(at(15)), "however late the answer was read");
        let first = lease.beat(at(11)).unwrap();
        assert_eq!(lease.beat(at(11)), None, "not due yet");
        let second = lease.beat(at(12)).unwrap();
        lease.answered(first);
        assert!(lease.is_over(at(16)));
        lease.answered(second);
        assert!(!lease.is_over(at(16)) && lease.is_over(at(17)));
        lease.answered(second);
        assert_eq!(lease.until(), at(16));
    }
}
