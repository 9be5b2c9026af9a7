//! Whether a running attempt makes progress (pure).
//!
//! ```text
//!  GPU activity ─┐
//!  output ───────┼─► signs of life ──► HangWatch  ─┐
//!  progress ─────┤                                 ├─► StallWatch ──► hanging, slow, or neither
//!  neighbours ───┼─► speed, conditions ► SpeedWatch┘
//!  throttling ───┘
//! ```
//!
//! A report must be right: an attempt may be restarted for it. So whatever is not known counts as a sign of life.

mod faults;
mod hang;
mod signs;
mod speed;

use carma_core::{Fraction, Stall, Time};

pub(crate) use self::faults::{Fault, FaultLog};
use self::hang::{HangState, HangWatch};
pub(crate) use self::signs::{GpuSign, OutputMark, Signs, gpu_sign};
pub(crate) use self::speed::Conditions;
use self::speed::{Pace, SpeedWatch};
use crate::configuration::WatchConfig;

/// A sample of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AttemptSample {
    pub(crate) signs: Signs,
    /// Unset: its speed is not judged.
    pub(crate) conditions: Option<Conditions>,
}

/// What earlier samples of an attempt showed.
#[derive(Debug, Clone, Default)]
pub(crate) struct StallWatch {
    hang: HangWatch,
    speed: SpeedWatch,
}

impl StallWatch {
    /// The watch of an attempt. `worked`: it is known to have got on already, from before a restart of the manager.
    pub(crate) fn new(worked: bool) -> Self {
        Self { hang: HangWatch::new(worked), speed: SpeedWatch::default() }
    }

    /// Judges the attempt by its latest signs. `before` is what was last reported.
    pub(crate) fn look(&mut self, look: AttemptSample, before: Option<Stall>, now: Time, config: &WatchConfig) -> Option<Stall> {
        let progress = look.signs.progress;
        let life = config.hang_after.map_or(HangState::Seen, |after| self.hang.look(look.signs, now, after));
        let pace = match (config.slow_below, look.conditions) {
            (Some(below), Some(conditions)) => self.speed.look(progress, conditions, now, below, config.slow_after),
            _ => Pace::Unknown,
        };
        match (life, before, pace) {
            // The first report keeps its time.
            (HangState::Hanging { .. } | HangState::Unknown, Some(hanging @ Stall::Hanging { .. }), _) => Some(hanging),
            (HangState::Hanging { since }, ..) => Some(Stall::Hanging { since }),
            (_, Some(slow @ Stall::Slow { .. }), Pace::Slow { .. } | Pace::Unknown) => Some(slow),
            (_, _, Pace::Slow { since, speed }) => Some(Stall::Slow { since, speed: Fraction::clamped(speed) }),
            (..) => None,
        }
    }

    /// Whether only the activity of its processes on its GPUs would tell if it hangs.
    pub(crate) fn needs_activity(&self, now: Time, config: &WatchConfig) -> bool {
        config.hang_after.is_some_and(|after| self.hang.needs_activity(now, after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carma_core::Seconds;

    fn config() -> WatchConfig {
        WatchConfig { hang_after: Some(Seconds::from_secs(600)), slow_after: Seconds::from_secs(100), ..WatchConfig::default() }
    }

    /// A sample every ten seconds of an attempt with this GPU activity and this progress, from `from` on.
    fn looks(
        watch: &mut StallWatch,
        before: Option<Stall>,
        seconds: std::ops::Range<u64>,
        gpu: GpuSign,
        done: impl Fn(u64) -> f64,
    ) -> Option<Stall> {
        seconds.step_by(10).fold(before, |before, second| {
            let progress = Some(Fraction::clamped(done(second)));
            let look = AttemptSample { signs: Signs { gpu, progress, ..Signs::default() }, conditions: Some(Conditions::default()) };
            watch.look(look, before, Time::from_secs(second), &config())
        })
    }

    #[test]
    fn a_hang_and_its_end_are_reported_once_each() {
        let mut watch = StallWatch::default();
        let working = |second: u64| second as f64 * 1e-5;
        assert_eq!(looks(&mut watch, None, 0..1_000, GpuSign::Works, working), None);
        let still = |_| working(990);
        let since = Time::from_secs(1_000);
        let slow = looks(&mut watch, None, 1_000..1_600, GpuSign::Idle, still);
        assert!(matches!(slow, Some(Stall::Slow { .. })), "progress stops before the time of a hang is over: {slow:?}");
        let hanging = looks(&mut watch, slow, 1_600..1_700, GpuSign::Idle, still);
        assert_eq!(hanging, Some(Stall::Hanging { since }));
        assert_eq!(looks(&mut watch, hanging, 1_700..1_710, GpuSign::Unknown, still), hanging, "it stays so while nothing is known");
        assert_eq!(looks(&mut watch, hanging, 1_710..1_720, GpuSign::Works, working), None);
    }
}
