//! Jobs that hold a GPU and do not use it.

use super::check::Checker;
use super::section::settings;
use crate::job::Idle;
use crate::units::{Fraction, Seconds, Time};

settings!(
    /// Jobs that hold a GPU and do not use it.
    IdleHolderSettings {
        /// A job whose GPUs do less than this is idle: SM activity, or utilisation where that is not known.
        below: f64,
        /// It is flagged after so many seconds; 0: never.
        flag_after: f64,
        /// After so many seconds others may have its GPU's compute, even if it wanted the GPU for itself; 0: never.
        lend_after: f64,
    }
);

/// Jobs that hold a GPU and do not use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleHolderConfig {
    /// What counts as nothing.
    pub below: Fraction,
    /// When one is flagged; unset: never.
    pub flag_after: Option<Seconds>,
    /// When its compute is lent; unset: never.
    pub lend_after: Option<Seconds>,
}

impl IdleHolderConfig {
    /// As if there were no such thing, as published.
    pub(super) const fn none() -> Self {
        Self { below: Fraction::clamped(0.02), flag_after: None, lend_after: None }
    }

    /// Whether anybody is looked for.
    pub(crate) const fn watches(&self) -> bool {
        self.flag_after.is_some() || self.lend_after.is_some()
    }

    /// How a job is idle at this time that does nothing since then; unset: not for long enough.
    pub(crate) fn judge(&self, since: Time, now: Time) -> Option<Idle> {
        let passed = |after: Option<Seconds>| after.is_some_and(|after| since + after <= now);
        let lent = passed(self.lend_after);
        (lent || passed(self.flag_after)).then_some(Idle { since, lent })
    }

    /// When that is to be judged again.
    pub(crate) fn next_judgement(&self, since: Time, now: Time) -> Option<Time> {
        [self.flag_after, self.lend_after].into_iter().flatten().map(|after| since + after).filter(|due| *due > now).min()
    }
}

impl IdleHolderSettings {
    pub(super) fn over(self, base: IdleHolderConfig, check: &mut Checker) -> IdleHolderConfig {
        let mut after = |key, given, base: Option<Seconds>| {
            let seconds = check.seconds(key, given, base.unwrap_or_default(), 0.0, 31_536_000.0);
            (seconds.get() > 0.0).then_some(seconds)
        };
        IdleHolderConfig {
            flag_after: after("idle_holders.flag_after", self.flag_after, base.flag_after),
            lend_after: after("idle_holders.lend_after", self.lend_after, base.lend_after),
            below: check.fraction("idle_holders.below", self.below, base.below),
        }
    }
}

impl From<&IdleHolderConfig> for IdleHolderSettings {
    fn from(config: &IdleHolderConfig) -> Self {
        let seconds = |after: Option<Seconds>| Some(after.unwrap_or_default().get());
        Self { below: Some(config.below.get()), flag_after: seconds(config.flag_after), lend_after: seconds(config.lend_after) }
    }
}
