//! Signs of life of the manager's threads: each part beats once per turn, and the watchdog measures how long one is silent.

use std::fmt::{self, Display, Formatter};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The longest sleep of an idle part.
pub(crate) const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Number of parts.
const PARTS: usize = 3;

/// A part of the manager that no other can replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The thread that decides.
    Engine,
    /// The thread that notices the ends of attempts.
    Exits,
    /// The thread that writes the store.
    Store,
}

impl Part {
    const ALL: [Self; PARTS] = [Self::Engine, Self::Exits, Self::Store];
}

impl Display for Part {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Engine => "the engine",
            Self::Exits => "the exit watch",
            Self::Store => "the store writer",
        })
    }
}

/// A part that does not respond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stuck {
    /// The part.
    pub part: Part,
    /// For how long.
    pub silent: Duration,
}

impl Display for Stuck {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} has not responded for {}", self.part, carma_format::duration(self.silent.as_secs_f64()))
    }
}

/// The heartbeats of all parts of one manager.
#[derive(Debug, Clone, Default)]
pub struct Heartbeats(Arc<[PartState; PARTS]>);

#[derive(Debug, Default)]
struct PartState {
    /// The part has started and has not ended as planned.
    started: AtomicBool,
    turns: AtomicU64,
    /// Milliseconds of silence that count as stuck; 0 for a healthy part.
    silent: AtomicU64,
}

impl Heartbeats {
    /// The heartbeat of a part that starts now.
    pub fn start(&self, part: Part) -> Heartbeat {
        let heartbeat = Heartbeat { pulses: Arc::clone(&self.0), part };
        heartbeat.beat();
        heartbeat.pulse().started.store(true, Ordering::Relaxed);
        heartbeat
    }

    /// The parts that the watchdog found stuck.
    pub fn stuck(&self) -> impl Iterator<Item = Stuck> {
        stuck(&self.0)
    }

    /// The same for the watchdog, which does not keep them alive.
    pub(crate) fn observe(&self) -> Observer {
        Observer { pulses: Arc::downgrade(&self.0), seen: [(0, Duration::ZERO); PARTS] }
    }
}

fn stuck(pulses: &[PartState; PARTS]) -> impl Iterator<Item = Stuck> {
    Part::ALL.into_iter().zip(pulses).filter_map(|(part, pulse)| {
        let silent = Duration::from_millis(pulse.silent.load(Ordering::Relaxed));
        (!silent.is_zero()).then_some(Stuck { part, silent })
    })
}

/// The heartbeat of one part. A part that ends without [`Self::end`], as by a panic, counts as stuck.
#[derive(Debug)]
pub struct Heartbeat {
    pulses: Arc<[PartState; PARTS]>,
    part: Part,
}

impl Heartbeat {
    fn pulse(&self) -> &PartState {
        &self.pulses[self.part as usize]
    }

    /// One more turn is done.
    pub fn beat(&self) {
        self.pulse().turns.fetch_add(1, Ordering::Relaxed);
    }

    /// The part ends as planned.
    pub fn end(&self) {
        self.pulse().started.store(false, Ordering::Relaxed);
    }
}

/// Measures the silence of all parts.
#[derive(Debug)]
pub(crate) struct Observer {
    pulses: Weak<[PartState; PARTS]>,
    /// The last seen turn of each part, and the silence since.
    seen: [(u64, Duration); PARTS],
}

impl Observer {
    /// Counts a step of time for all parts without a new turn. Returns those that are stuck, silent for at least `tolerated`; none if the manager is gone.
    pub(crate) fn step(&mut self, step: Duration, tolerated: Duration) -> Option<Vec<Stuck>> {
        let pulses = self.pulses.upgrade()?;
        for (pulse, (turn, silent)) in pulses.iter().zip(&mut self.seen) {
            let turns = pulse.turns.load(Ordering::Relaxed);
            let healthy = turns != *turn || !pulse.started.load(Ordering::Relaxed);
            (*turn, *silent) = (turns, if healthy { Duration::ZERO } else { *silent + step });
            let shown = if *silent < tolerated { 0 } else { u64::try_from(silent.as_millis()).unwrap_or(u64::MAX) };
            pulse.silent.store(shown, Ordering::Relaxed);
        }
        Some(stuck(&pulses).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const TOLERATED: Duration = Duration::from_secs(3);

    fn silences(observer: &mut Observer, steps: usize) -> Vec<(Part, u64)> {
        let last = (0..steps).map(|_| observer.step(SECOND, TOLERATED).unwrap()).last().unwrap();
        last.into_iter().map(|stuck| (stuck.part, stuck.silent.as_secs())).collect()
    }

    #[test]
    fn only_a_started_part_without_progress_is_stuck() {
        let heartbeats = Heartbeats::default();
        let mut observer = heartbeats.observe();
        assert_eq!(silences(&mut observer, 10), [], "nothing has started");
        let (engine, exits) = (heartbeats.start(Part::Engine), heartbeats.start(Part::Exits));
        assert_eq!(silences(&mut observer, 3), [], "the first step sees the start");
        engine.beat();
        assert_eq!(silences(&mut observer, 1), [(Part::Exits, 3)]);
        assert_eq!(heartbeats.stuck().map(|stuck| stuck.to_string()).collect::<Vec<_>>(), ["the exit watch has not responded for 3 s"]);
        exits.beat();
        assert_eq!(silences(&mut observer, 1), []);
        assert_eq!(heartbeats.stuck().count(), 0);
    }

    #[test]
    fn only_a_panic_is_an_unexpected_end() {
        let heartbeats = Heartbeats::default();
        let mut observer = heartbeats.observe();
        heartbeats.start(Part::Exits).end();
        drop(heartbeats.start(Part::Engine));
        assert_eq!(silences(&mut observer, 6), [(Part::Engine, 5)]);
    }

    #[test]
    fn the_observer_keeps_no_manager_alive() {
        let mut observer = Heartbeats::default().observe();
        assert_eq!(observer.step(SECOND, TOLERATED), None);
    }
}
