//! From values to places on paper, and which values to write beside an axis.

use crate::{duration, number};

/// What an axis counts; decides which steps are round, and how they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Plain numbers.
    Number,
    /// Whole things.
    Count,
    /// Seconds, written in days, hours and minutes.
    Time,
}

/// Steps of time that people count in. None is more than 2.5 times the one before, so that one of them always fits.
const TIME_STEPS: [f64; 19] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 10_800.0, 21_600.0, 43_200.0, 86_400.0,
    172_800.0,
];

/// Round times on a logarithmic axis, about two to a factor of ten.
const ROUND_TIMES: [f64; 16] = [
    1.0,
    3.0,
    10.0,
    30.0,
    60.0,
    180.0,
    600.0,
    1800.0,
    3600.0,
    10_800.0,
    36_000.0,
    86_400.0,
    259_200.0,
    864_000.0,
    2_592_000.0,
    8_640_000.0,
];

/// Maps an interval of values onto an interval of coordinates.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    low: f64,
    high: f64,
    /// The coordinate of the lowest value.
    pub start: f64,
    /// And of the highest.
    pub end: f64,
    unit: Unit,
    logarithmic: bool,
}

impl Scale {
    /// A linear scale. An interval without length is given one.
    pub fn linear((low, high): (f64, f64), (start, end): (f64, f64), unit: Unit) -> Self {
        let low = if low.is_finite() { low } else { 0.0 };
        let high = if high.is_finite() && high > low { high } else { low + 1.0 };
        Self { low, high, start, end, unit, logarithmic: false }
    }

    /// A logarithmic scale; what is not above zero is drawn at its low end.
    pub fn logarithmic((low, high): (f64, f64), (start, end): (f64, f64), unit: Unit) -> Self {
        let low = if low.is_finite() && low > 0.0 { low } else { 1.0 };
        let high = if high.is_finite() && high > low * 1.001 { high } else { low * 10.0 };
        Self { low, high, start, end, unit, logarithmic: true }
    }

    /// The coordinate of a value, at most at the ends.
    pub fn place(&self, value: f64) -> f64 {
        let value = if value.is_nan() { self.low } else { value.clamp(self.low, self.high) };
        let share = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.start + share * (self.end - self.start)
    }

    /// Round values within the interval, in order, at most this many (but at least 3).
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        let most = most.max(3);
        let round = if self.logarithmic { self.round_values() } else { Vec::new() };
        if round.len() >= 3 {
            // Equally spaced values, counted from the first.
            let every = round.len().div_ceil(most);
            let fewer: Vec<f64> = round.iter().copied().step_by(every).collect();
            return if fewer.len() >= 3 { fewer } else { vec![round[0], round[round.len() / 2], round[round.len() - 1]] };
        }
        self.steps().map(|step| self.multiples(step)).find(|ticks| ticks.len() <= most).unwrap_or_default()
    }

    /// As many as have room side by side.
    pub fn ticks_across(&self) -> Vec<f64> {
        let room = match self.unit {
            Unit::Time => 78.0,
            Unit::Number | Unit::Count => 44.0,
        };
        self.ticks((((self.end - self.start).abs() / room) as usize).clamp(3, 10))
    }

    /// As many as have room above each other.
    pub fn ticks_up(&self) -> Vec<f64> {
        self.ticks((((self.end - self.start).abs() / 22.0) as usize).clamp(3, 10))
    }

    /// A value as it stands beside the axis.
    pub fn label(&self, value: f64) -> String {
        match self.unit {
            Unit::Time if value != 0.0 => duration(value),
            _ => number(value),
        }
    }

    fn round_values(&self) -> Vec<f64> {
        let within = |value: &f64| (self.low..=self.high).contains(value);
        if self.unit == Unit::Time {
            return ROUND_TIMES.into_iter().filter(within).collect();
        }
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        (first..=last).map(|power| 10_f64.powi(power)).filter(within).collect()
    }

    /// Steps from one that is surely too fine for any axis, ever coarser.
    fn steps(&self) -> Box<dyn Iterator<Item = f64>> {
        let range = self.high - self.low;
        let finest = (range / 100.0).log10().floor() as i32;
        let finest = if self.unit == Unit::Count { finest.max(0) } else { finest };
        let decimal =
            move |from: i32, unit: f64| (from..=from + 6).flat_map(move |power| [1.0, 2.0, 5.0].map(|d| d * unit * power_of_ten(power)));
        match self.unit {
            Unit::Time if range > 2.0 * 86_400.0 * 8.0 => {
                Box::new(decimal(((range / 8_640_000.0).log10().floor() as i32).max(0), 86_400.0))
            }
            Unit::Time if range >= 3.0 => Box::new(TIME_STEPS.into_iter().chain(decimal(0, 86_400.0).skip(2))),
            _ => Box::new(decimal(finest, 1.0)),
        }
    }

    fn multiples(&self, step: f64) -> Vec<f64> {
        // A hair of tolerance: 0.3 is not 3 * 0.1.
        let (first, last) = ((self.low / step - 1e-9).ceil(), (self.high / step + 1e-9).floor());
        let how_many = (last - first + 1.0).clamp(0.0, 1000.0) as usize;
        (0..how_many).map(|place| ((first + place as f64) * step).clamp(self.low, self.high)).collect()
    }
}

/// Exact where a float can be: a tenth is 1 over 10, not 0.1 as the power function has it.
fn power_of_ten(power: i32) -> f64 {
    if power < 0 { 1.0 / 10_f64.powi(-power) } else { 10_f64.powi(power) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(scale: &Scale, ticks: &[f64]) {
        assert!((3..=10).contains(&ticks.len()), "{ticks:?} of {scale:?}");
        assert!(ticks.is_sorted_by(|a, b| a < b), "{ticks:?}");
        assert!(ticks.iter().all(|tick| (scale.low..=scale.high).contains(tick)), "{ticks:?} of {scale:?}");
    }

    proptest! {
        #[test]
        fn ticks_are_few_sorted_and_within(low in -1e6..1e6_f64, length in 1e-3..1e9_f64, time: bool, most in 8_usize..=10) {
            let unit = if time { Unit::Time } else { Unit::Number };
            let scale = Scale::linear((low, low + length), (0.0, 100.0), unit);
            check(&scale, &scale.ticks(most));
        }

        #[test]
        fn logarithmic_ticks_are_too(low in 1e-2..1e5_f64, times in 1.01..1e6_f64, time: bool, most in 8_usize..=10) {
            let unit = if time { Unit::Time } else { Unit::Number };
            let scale = Scale::logarithmic((low, low * times), (0.0, 100.0), unit);
            check(&scale, &scale.ticks(most));
        }

        #[test]
        fn places_keep_the_order(a in -1e6..1e6_f64, b in -1e6..1e6_f64) {
            let scale = Scale::linear((-1e6, 1e6), (0.0, 500.0), Unit::Number);
            prop_assert_eq!(a < b, scale.place(a) < scale.place(b));
            prop_assert!((0.0..=500.0).contains(&scale.place(a)));
        }
    }

    #[test]
    fn an_axis_has_round_numbers() {
        let scale = Scale::linear((0.0, 1.1), (0.0, 200.0), Unit::Number);
        assert_eq!(scale.ticks(6).iter().map(|tick| scale.label(*tick)).collect::<Vec<_>>(), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        let scale = Scale::linear((0.0, 5.0 * 3600.0), (0.0, 800.0), Unit::Time);
        assert_eq!(scale.ticks(6).iter().map(|tick| scale.label(*tick)).collect::<Vec<_>>(), ["0", "1 h", "2 h", "3 h", "4 h", "5 h"]);
    }

    #[test]
    fn an_empty_scale_is_allowed() {
        for (low, high) in [(0.0, 0.0), (f64::NAN, f64::NAN), (1.0, f64::INFINITY), (5.0, 1.0)] {
            for scale in [Scale::linear((low, high), (0.0, 9.0), Unit::Time), Scale::logarithmic((low, high), (0.0, 9.0), Unit::Time)] {
                assert!(scale.place(high).is_finite());
                assert!(!scale.ticks(8).is_empty());
            }
        }
    }
}
