//! Whether an attempt's memory has stopped rising.

use crate::units::{Fraction, MiB, Seconds, Time};

/// A rise by less than this share of the peak is noise of the allocator.
const NOISE: Fraction = Fraction::clamped(0.01);
/// Memory that an attempt on a plateau may still take: a share of its peak, and some more.
const SHARE: Fraction = Fraction::clamped(0.1);
const EXTRA: MiB = MiB(512);

/// The highest memory of an attempt on a device, and since when it has not risen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Plateau {
    peak: MiB,
    since: Option<Time>,
}

impl Plateau {
    /// Notes a reading.
    pub(crate) fn note(&mut self, memory: MiB, now: Time) {
        if self.since.is_none() || memory > self.peak + self.peak.share(NOISE) {
            self.since = Some(now);
        }
        self.peak = self.peak.max(memory);
    }

    /// The highest reading.
    pub(crate) const fn peak(&self) -> MiB {
        self.peak
    }

    /// When it will not have risen for this long, if it does not rise again.
    pub(crate) fn reached_at(&self, after: Seconds) -> Option<Time> {
        self.since.map(|since| since + after)
    }

    /// Memory to keep reserved for an attempt on its plateau.
    pub(crate) fn enough(&self) -> MiB {
        self.peak + self.peak.share(SHARE) + EXTRA
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_real_rise_ends_a_plateau() {
        let (mut plateau, hour) = (Plateau::default(), Seconds::from_secs(3600));
        assert_eq!(plateau.reached_at(hour), None, "not seen yet");
        for (second, memory) in [(0, 1_000), (10, 8_000), (20, 8_050), (30, 7_000), (40, 8_100)] {
            plateau.note(MiB(memory), Time::from_secs(second));
        }
        assert_eq!(plateau.reached_at(hour), Some(Time::from_secs(3610)));
        assert_eq!(plateau.enough(), MiB(8_100 + 810 + 512));
        plateau.note(MiB(9_000), Time::from_secs(50));
        assert_eq!(plateau.reached_at(hour), Some(Time::from_secs(3650)));
    }
}
