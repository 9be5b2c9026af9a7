//! Memory that grows steadily: a few readings of an attempt's memory, and how fast they rise.

use crate::units::{MiB, Seconds, Time};

/// Readings that must each be above the one before. Frameworks take their memory in a few large parts; a leak never stops.
const READINGS: usize = 6;

/// Readings of one attempt's memory on a device, some time apart.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Growth {
    readings: Vec<(Time, MiB)>,
}

impl Growth {
    /// Notes a reading, unless the last is younger than this.
    pub(crate) fn note(&mut self, memory: MiB, now: Time, apart: Seconds) {
        if self.readings.last().is_some_and(|(at, _)| now - *at < apart) {
            return;
        }
        if self.readings.len() == READINGS {
            self.readings.remove(0);
        }
        self.readings.push((now, memory));
    }

    /// How fast it grows, in MiB a second; unset where it does not, or slows down.
    pub(crate) fn rate(&self) -> Option<f64> {
        let &[first, .., middle, _, _, last] = &self.readings[..] else { return None };
        let rises = self.readings.len() == READINGS && self.readings.windows(2).all(|pair| pair[0].1 < pair[1].1);
        let between = |from: (Time, MiB), to: (Time, MiB)| (to.1 - from.1).0 as f64 / (to.0 - from.0).get();
        let (whole, latest) = (between(first, last), between(middle, last));
        (rises && latest >= whole / 2.0).then_some(whole.min(latest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(readings: &[u64]) -> Option<f64> {
        let mut growth = Growth::default();
        for (second, memory) in (0..).map(|place| 10 * place).zip(readings) {
            growth.note(MiB(*memory), Time::from_secs(second), Seconds::from_secs(10));
            growth.note(MiB(0), Time::from_secs(second + 1), Seconds::from_secs(10));
        }
        growth.rate()
    }

    #[test]
    fn only_what_rises_without_end_grows() {
        assert_eq!(rate(&[100, 200, 300, 400, 500, 600, 700]), Some(10.0));
        assert_eq!(rate(&[100, 200, 300, 400, 500]), None, "too few");
        assert_eq!(rate(&[100, 8_000, 9_000, 10_000, 10_000, 10_000, 10_000]), None, "what it needs, and no more");
        assert_eq!(rate(&[100, 200, 300, 250, 400, 500]), None, "it gives some back");
        assert_eq!(rate(&[100, 8_000, 9_000, 9_100, 9_150, 9_160]), None, "it comes to rest");
    }
}
