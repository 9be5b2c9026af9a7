//! The latest counters of a source that a thread reads, and the state of the source.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::counters::{Counters, STALE, Unit};
use super::problem::Problem;
use crate::lane::held;

/// After this long without a value, something else holds the counters.
const HELD: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The state of a source that streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// No data yet.
    Starting,
    /// Counters arrive.
    Running,
    /// No counters arrive; it is retried.
    Failing(Problem),
}

#[derive(Debug)]
struct Inner {
    counters: HashMap<Unit, Counters>,
    status: Status,
    /// When a line last arrived, and when a value did.
    last_line: Instant,
    last_value: Instant,
}

/// The last data of a thread, shared with the callers.
#[derive(Debug)]
pub(super) struct Latest(Mutex<Inner>);

impl Latest {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self(Mutex::new(Inner { counters: HashMap::new(), status: Status::Starting, last_line: now, last_value: now }))
    }

    /// Stores new counters.
    pub(super) fn put(&self, unit: Unit, counters: Counters) {
        let mut inner = held(&self.0);
        inner.last_line = counters.at;
        if !counters.is_empty() {
            if inner.status != Status::Running {
                inner.status = Status::Running;
            }
            inner.last_value = counters.at;
            inner.counters.insert(unit, counters);
        }
    }

    /// Records a failure.
    pub(super) fn fail(&self, problem: Problem) {
        held(&self.0).status = Status::Failing(problem);
    }

    /// Starts another try. Until it succeeds or fails, the last failure is reported.
    pub(super) fn begin(&self) {
        let mut inner = held(&self.0);
        (inner.last_line, inner.last_value) = (Instant::now(), Instant::now());
        // Devices come and go: the map must not grow without bound.
        inner.counters.retain(|_, counters| counters.is_fresh());
    }

    /// Counters of a device that are not too old.
    pub(super) fn counters(&self, unit: &Unit) -> Option<Counters> {
        held(&self.0).counters.get(unit).copied().filter(Counters::is_fresh)
    }

    pub(super) fn status(&self) -> Status {
        let inner = held(&self.0);
        match &inner.status {
            Status::Failing(problem) => Status::Failing(problem.clone()),
            _ if inner.last_line.elapsed() > STALE => Status::Failing(Problem::Silent),
            _ if inner.last_value.elapsed() > HELD => Status::Failing(Problem::Held),
            status => status.clone(),
        }
    }
}

/// Growing pauses between tries.
#[derive(Debug)]
pub(super) struct Backoff(Duration);

impl Backoff {
    pub(super) const fn new() -> Self {
        Self(FIRST_PAUSE)
    }

    /// Delay before the next try.
    pub(super) fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(MAX_PAUSE);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_minute() {
        let mut pauses = Backoff::new();
        let seconds: Vec<u64> = (0..8).map(|_| pauses.next().as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn old_counters_and_silence_are_reported() {
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
            assert!(held(&latest.0).counters.is_empty(), "old counters are dropped");
            latest.put(unit.clone(), counters);
            latest.put(unit.clone(), Counters::new(Instant::now()));
            assert_eq!((latest.status(), latest.counters(&unit)), (Status::Failing(Problem::Held), None));
        }
    }
}
