//! `[idle_jobs]`: jobs that hold a GPU without using it.

use crate::job::Idle;
use crate::keys::ZeroIsNone;
use crate::section;
use crate::units::{Fraction, Seconds, Time};

section! {
    /// Jobs that hold a GPU without using it.
    IdleJobSettings => #[derive(Copy, Eq)] IdleJobConfig {
        /// A job is idle while its GPUs are below this SM activity, or below this utilisation where SM activity is not measured.
        below: Fraction = Fraction::clamped(0.02);
        /// An idle job is flagged after this long. 0: never.
        flag_after: ZeroIsNone<Seconds> [0.0..=31_536_000.0] = None;
        /// Other jobs may use the GPUs of an idle job after this long, even if they are exclusive. 0: never.
        lend_after: ZeroIsNone<Seconds> [0.0..=31_536_000.0] = None;
    }
}

impl IdleJobConfig {
    /// Whether idle jobs are detected.
    pub(crate) const fn watches(&self) -> bool {
        self.flag_after.is_some() || self.lend_after.is_some()
    }

    /// The idle state at `now` of a job that is idle since then; `None`: not long enough.
    pub(crate) fn judge(&self, since: Time, now: Time) -> Option<Idle> {
        let passed = |after: Option<Seconds>| after.is_some_and(|after| since + after <= now);
        let lent = passed(self.lend_after);
        (lent || passed(self.flag_after)).then_some(Idle { since, lent })
    }

    /// When the state may change next.
    pub(crate) fn next_judgement(&self, since: Time, now: Time) -> Option<Time> {
        [self.flag_after, self.lend_after].into_iter().flatten().map(|after| since + after).filter(|due| *due > now).min()
    }
}
