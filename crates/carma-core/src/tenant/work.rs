//! The predicted progress of an attempt.

use crate::units::{Seconds, Time};

/// An attempt that runs longer than expected has at least this part of its work left.
const LEAST_PART: u64 = 10;
/// A report of less says little about the whole.
const LEAST_SHARE: f64 = 0.02;
/// Speeds are whole thousandths and work whole microseconds, so that sums over attempts are exact.
const UNIT: u64 = 1000;

/// How much an attempt has to do, in seconds alone, and how fast it is predicted to do it beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Work {
    /// Milliseconds alone.
    total: u64,
    /// Microseconds alone, done at `since`.
    done: u64,
    /// Thousandths of its speed alone.
    speed: u64,
    since: Time,
}

impl Work {
    /// So much work, at full speed from then on.
    pub(crate) const fn new(total: Seconds, since: Time) -> Self {
        Self { total: total.milliseconds(), done: 0, speed: UNIT, since }
    }

    /// Goes on with another speed.
    pub(crate) fn set_speed(&mut self, speed: f64, now: Time) {
        self.advance(now);
        self.speed = ((speed * UNIT as f64) as u64).clamp(1, UNIT);
    }

    /// A report says which share is done: what was predicted to be done is that share of the whole.
    pub(crate) fn reported(&mut self, share: f64, now: Time) {
        self.advance(now);
        if share >= LEAST_SHARE {
            self.total = ((self.done / UNIT) as f64 / share).min(1e15) as u64;
        }
    }

    fn advance(&mut self, now: Time) {
        self.done += self.speed * (now - self.since).milliseconds();
        self.since = self.since.max(now);
    }

    /// When only the least part is left, by prediction.
    pub(crate) fn nears_end_at(&self) -> Time {
        let rest = (UNIT * (self.total - self.least())).saturating_sub(self.done);
        self.since + milliseconds(rest.div_ceil(self.speed))
    }

    /// The least that counts as left, in milliseconds.
    pub(crate) const fn least(&self) -> u64 {
        self.total / LEAST_PART
    }

    /// The remaining work at time zero and its decrease, so that the sum over attempts is linear in time; in microseconds.
    pub(crate) fn line(&self) -> (i128, i128) {
        let (total, done) = (i128::from(UNIT * self.total), i128::from(self.done));
        (total - done + i128::from(self.speed) * i128::from(self.since.milliseconds()), i128::from(self.speed))
    }

    /// Its predicted end. An attempt that has run longer than expected may run as long again as it is late.
    pub(crate) fn ends_at(&self, now: Time) -> Time {
        let done = self.done + self.speed * (now - self.since).milliseconds();
        let left = (UNIT * self.total).abs_diff(done).max(UNIT * self.least());
        now + milliseconds(left / self.speed)
    }
}

fn milliseconds(count: u64) -> Seconds {
    Seconds::new(count as f64 / 1000.0).unwrap_or_default()
}
