//! The manager's own time. It never goes back, even if the wall clock does, and continues after restarts.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use carma_core::{Seconds, Time};

use crate::units::UnixMillis;

/// A thousand years, in seconds.
const LATEST: f64 = 1000.0 * 366.0 * 86_400.0;

/// The wall clock is adjusted by less all the time. Milliseconds.
const JUMP: i64 = 1_000;

/// The time of the core, and the wall clock. Emulated GPUs may run faster than real time: then both are their time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    base: Time,
    since: Instant,
    wall: UnixMillis,
    speed: f64,
}

impl Clock {
    /// Continues from this time.
    pub(crate) fn from(base: Time, speed: f64) -> Self {
        Self { base, since: Instant::now(), wall: UnixMillis::now(), speed }
    }

    /// The same with a wall clock of at least this: an emulated one is ahead, and must not go back at a restart.
    pub(crate) fn not_before(self, wall: UnixMillis) -> Self {
        Self { wall: if self.is_real() { self.wall } else { self.wall.max(wall) }, ..self }
    }

    /// More time has passed than this clock knows.
    pub(crate) fn advance(&mut self, span: Seconds) {
        self.base = self.base + span;
        if !self.is_real() {
            self.wall = UnixMillis(self.wall.0.saturating_add(span.milliseconds()));
        }
    }

    /// Now.
    pub(crate) fn now(&self) -> Time {
        self.base + self.passed()
    }

    /// The wall clock's time; an emulated one is ahead of it.
    pub(crate) fn wall(&self) -> UnixMillis {
        if self.is_real() { UnixMillis::now() } else { UnixMillis(self.wall.0.saturating_add((self.passed().get() * 1000.0) as u64)) }
    }

    /// Real time until then.
    pub(crate) fn until(&self, time: Time) -> Duration {
        self.real(time - self.now())
    }

    /// The real duration of a span.
    pub(crate) fn real(&self, span: Seconds) -> Duration {
        Duration::from_secs_f64(span.get() / self.speed)
    }

    /// The core's time at a moment of the real wall clock: as many seconds from now, which are the GPUs' seconds.
    pub(crate) fn at(&self, moment: UnixMillis) -> Time {
        let now = UnixMillis::now();
        // A later time means never, and can still be stored.
        let milliseconds = |span: u64| Seconds::new((span as f64 / 1000.0).min(LATEST)).unwrap_or(Seconds::ZERO);
        if moment >= now {
            self.now() + milliseconds(moment.0 - now.0)
        } else {
            Time::ZERO + (self.now() - (Time::ZERO + milliseconds(now.0 - moment.0)))
        }
    }

    /// How far the wall clock was set since this was last asked, in milliseconds; a host that slept looks the same. Unset if it was not. The time of
    /// emulated GPUs that run faster is not that of the wall clock.
    pub(crate) fn take_jump(&mut self) -> Option<i64> {
        let expected = self.wall.0.saturating_add(self.since.elapsed().as_millis() as u64);
        let jump = UnixMillis::now().0.cast_signed() - expected.cast_signed();
        if !self.is_real() || jump.abs() < JUMP {
            return None;
        }
        self.wall = UnixMillis(self.wall.0.saturating_add_signed(jump));
        Some(jump)
    }

    /// How much faster than real time the GPUs run.
    pub(crate) fn speed(&self) -> f64 {
        self.speed
    }

    /// Whether its seconds are those of the wall clock.
    pub(crate) fn is_real(&self) -> bool {
        (self.speed - 1.0).abs() < f64::EPSILON
    }

    fn passed(&self) -> Seconds {
        Seconds::new(self.since.elapsed().as_secs_f64() * self.speed).unwrap_or(Seconds::ZERO)
    }
}

/// The present clock, for other threads.
#[derive(Debug, Clone)]
pub(crate) struct SharedClock(Arc<RwLock<Clock>>);

impl SharedClock {
    /// The real wall clock, until there is another.
    pub(crate) fn new() -> Self {
        Self(Arc::new(RwLock::new(Clock::from(Time::ZERO, 1.0))))
    }

    pub(crate) fn set(&self, clock: Clock) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = clock;
    }

    pub(crate) fn wall(&self) -> UnixMillis {
        self.0.read().unwrap_or_else(PoisonError::into_inner).wall()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulated_clock_runs_faster_also_in_texts() {
        let since = Instant::now().checked_sub(Duration::from_secs(2)).unwrap();
        let clock = Clock { since, ..Clock::from(Time::from_secs(100), 60.0) };
        let now = clock.now();
        assert!(now >= Time::from_secs(220) && now < Time::from_secs(280), "{now}");
        assert!(clock.wall().0 >= clock.wall.0 + 120_000);
        assert!(clock.until(now + Seconds::from_secs(60)) <= Duration::from_secs(1));
        assert_eq!(clock.at(UnixMillis(0)), Time::ZERO);
        assert!(clock.at(UnixMillis(UnixMillis::now().0 + 10_000)) > now);
        let later = UnixMillis(clock.wall().0 + 1_000_000);
        assert!(clock.not_before(later).wall() >= later);
    }

    #[test]
    fn a_changed_wall_clock_is_noticed_once() {
        const DAY: u64 = 86_400_000;
        let clock = Clock::from(Time::ZERO, 1.0);
        assert_eq!(Clock { ..clock }.take_jump(), None);
        for (was, sign) in [(clock.wall.0 - DAY, 1), (clock.wall.0 + DAY, -1)] {
            let mut jumped = Clock { wall: UnixMillis(was), ..clock };
            let jump = jumped.take_jump().unwrap() * sign;
            assert!((86_399_000..86_401_000).contains(&jump), "{jump}");
            assert_eq!(jumped.take_jump(), None);
            assert!(jumped.now() < Time::from_secs(60), "the core's time does not jump");
        }
        assert_eq!(Clock { wall: UnixMillis(0), speed: 60.0, ..clock }.take_jump(), None);
    }
}
