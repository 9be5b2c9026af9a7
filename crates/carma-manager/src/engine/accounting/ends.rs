//! How long an attempt ran. Its end may be told late: after a restart, or when an agent connects again.

use carma_core::{Seconds, Time};

use crate::attempt::Past;
use crate::store::UnixMillis;

/// An end that is told later than this, in the host's time, is dated back.
const LATE: Seconds = Seconds::from_secs(1);

/// The end of an attempt, told now. Its clocks may have missed a part of the time since, and may have been set back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToldEnd {
    /// What its supervisor recorded; unset if nothing is recorded.
    pub(crate) past: Option<Past>,
    /// How much faster than the host's time the GPUs' time is.
    pub(crate) speed: f64,
}

impl ToldEnd {
    /// When it ended, in the core's time; unset if that is now.
    pub(crate) fn at(self, launched: Time, now: Time) -> Option<Time> {
        let past = self.late()?;
        Some(launched + self.ran(now - launched, past).min(now - launched))
    }

    /// When it ended by the wall clock, never before its launch.
    pub(crate) fn wall(self, launched: UnixMillis, now: UnixMillis) -> UnixMillis {
        let since_launch = Seconds::new(now.0.saturating_sub(launched.0) as f64 / 1000.0).unwrap_or(Seconds::ZERO);
        let ran = match self.past {
            // The clock was set back: only the length is known.
            past if now < launched => past.map_or(Seconds::ZERO, |past| past.ran.times(self.speed)),
            _ => self.late().map_or(since_launch, |past| self.ran(since_launch, past).min(since_launch)),
        };
        UnixMillis(launched.0 + ran.milliseconds())
    }

    fn late(self) -> Option<Past> {
        self.past.filter(|past| past.ago >= LATE)
    }

    /// The time since the launch without the time since the end, and at least what was recorded: a clock may have stood still meanwhile.
    fn ran(self, since_launch: Seconds, past: Past) -> Seconds {
        (since_launch - past.ago.times(self.speed)).max(past.ran.times(self.speed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAUNCHED: Time = Time::from_secs(1000);

    fn end(ran: u64, ago: u64) -> ToldEnd {
        ToldEnd { past: Some(Past { ran: Seconds::from_secs(ran), ago: Seconds::from_secs(ago) }), speed: 1.0 }
    }

    fn at(end: ToldEnd, now: u64) -> Option<u64> {
        end.at(LAUNCHED, LAUNCHED + Seconds::from_secs(now)).map(|at| (at - LAUNCHED).milliseconds() / 1000)
    }

    fn wall(end: ToldEnd, now: u64) -> u64 {
        end.wall(UnixMillis(9_000_000), UnixMillis(9_000_000 + now * 1000)).0 / 1000 - 9000
    }

    #[test]
    fn time_without_a_manager_is_not_run_time() {
        // It ran for 5 s, and the next manager came 40 s later.
        assert_eq!((at(end(5, 40), 46), wall(end(5, 40), 46)), (Some(6), 6), "its start took a second");
        assert_eq!(at(end(5, 40), 3), Some(3), "the core's time stood still");
        assert_eq!((at(end(5, 40), 20), wall(end(5, 40), 20)), (Some(5), 5));
        assert_eq!((at(end(5, 0), 6), wall(end(5, 0), 6)), (None, 6), "told at once");
        let unknown = ToldEnd { past: None, speed: 1.0 };
        assert_eq!((at(unknown, 46), wall(unknown, 46)), (None, 46));
        assert_eq!(at(ToldEnd { speed: 60.0, ..end(5, 40) }, 46 * 60), Some(360));
    }

    #[test]
    fn an_attempt_never_ends_before_its_launch() {
        let (launched, now) = (UnixMillis(9_000_000), UnixMillis(5_000));
        assert_eq!(end(7, 0).wall(launched, now), UnixMillis(9_007_000));
        assert_eq!(ToldEnd { past: None, speed: 60.0 }.wall(launched, now), launched);
        assert_eq!(end(7, 50).wall(launched, now), UnixMillis(9_007_000));
    }
}
