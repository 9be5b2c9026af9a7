//! The latest counters of a source that is read by a thread, and how the source is.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::counters::{Counters, STALE, Unit};
use super::problem::Problem;
use crate::lane::held;

/// Values that stay away this long are held back by something.
const HELD: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How a source is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// Nothing has come yet.
    Starting,
    /// Counters come.
    Running,
    /// None come; it is tried again and again.
    Failing(Problem),
}

#[derive(Debug)]
struct Known {
    counters: HashMap<Unit, Counters>,
    status: Status,
    /// When anything came last, and when a value did.
    heard: Instant,
    valued: Instant,
}

/// What a thread has read last, for those who ask.
#[derive(Debug)]
pub(super) struct Latest(Mutex<Known>);

impl Latest {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self(Mutex::new(Known { counters: HashMap::new(), status: Status::Starting, heard: now, valued: now }))
    }

    /// Counters came.
    pub(super) fn put(&self, unit: Unit, counters: Counters) {
        let mut known = held(&self.0);
        known.heard = counters.at;
        if !counters.is_empty() {
            if known.status != Status::Running {
                known.status = Status::Running;
            }
            known.valued = counters.at;
            known.counters.insert(unit, counters);
        }
    }

    /// None come any more.
    pub(super) fn fail(&self, problem: Problem) {
        held(&self.0).status = Status::Failing(problem);
    }

    /// It is tried again; until it fails once more, what failed last is what people are told.
    pub(super) fn begin(&self) {
        let mut known = held(&self.0);
        (known.heard, known.valued) = (Instant::now(), Instant::now());
        // Devices come and go, and not for ever new ones may be remembered.
        known.counters.retain(|_, counters| counters.is_fresh());
    }

    /// Counters of a device that are not too old.
    pub(super) fn counters(&self, unit: &Unit) -> Option<Counters> {
        held(&self.0).counters.get(unit).copied().filter(Counters::is_fresh)
    }

    pub(super) fn status(&self) -> Status {
        let known = held(&self.0);
        match &known.status {
            Status::Failing(problem) => Status::Failing(problem.clone()),
            _ if known.heard.elapsed() > STALE => Status::Failing(Problem::Silent),
            _ if known.valued.elapsed() > HELD => Status::Failing(Problem::Held),
            status => status.clone(),
        }
    }
}

/// Growing pauses between attempts.
#[derive(Debug)]
pub(super) struct Pauses(Duration);

impl Pauses {
    pub(super) const fn new() -> Self {
        Self(FIRST_PAUSE)
    }

    /// How long to wait before the next attempt.
    pub(super) fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(LONGEST_PAUSE);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_minute() {
        let mut pauses = Pauses::new();
        let seconds: Vec<u64> = (0..8).map(|_| pauses.next().as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn old_counters_and_silence_are_told() {
        let latest = Latest::new();
        let unit = Unit { gpu: "GPU-1".parse().unwrap(), instance: None };
        let mut counters = Counters::new(Instant::now());
        counters.set(super::super::fields::by_id(1002).unwrap(), 0.5);
        latest.put(unit.clone(), counters);
        assert_eq!((latest.status(), latest.counters(&unit)), (Status::Running, Some(counters)));
        // A machine that was started a moment ago has no such past.
        if let Some(past) = Instant::now().checked_sub(STALE * 3) {
            counters.at = past;
            latest.put(unit.clone(), counters);
            assert_eq!((latest.status(), latest.counters(&unit)), (Status::Failing(Problem::Silent), None));
            latest.begin();
            assert!(held(&latest.0).counters.is_empty(), "what is too old is forgotten");
            latest.put(unit.clone(), counters);
            latest.put(unit.clone(), Counters::new(Instant::now()));
            assert_eq!((latest.status(), latest.counters(&unit)), (Status::Failing(Problem::Held), None));
        }
    }
}
