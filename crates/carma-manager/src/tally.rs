//! Counters that last: they are kept in the store, so that they continue after restarts and outlive deleted jobs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A counter. Its serialised form is its name in the store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tally {
    /// Submitted jobs.
    Submitted,
    /// Decisions of a kind.
    Decided(String),
    /// Jobs that ended with an outcome.
    Finished(String),
    /// Attempts that ended with a verdict.
    Ended(String),
    /// Jobs that were requeued for a reason.
    Requeued(String),
    /// Energy of a user's finished attempts, in joules.
    Energy(String),
    /// Values in a bucket of a histogram. A histogram whose bounds change needs another name.
    Bucket(Histogram, u8),
    /// The sum of a histogram's values.
    Sum(Histogram),
}

/// A histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Histogram {
    /// Seconds from submission to the first launch.
    Wait,
    /// Seconds from the launch of an attempt to its end.
    Run,
    /// The peak of memory as a part of what was estimated.
    PeakOfEstimate,
    /// The peak of memory as a part of what was declared.
    PeakOfDeclared,
}

impl Histogram {
    /// The upper bounds of its buckets, without the last, which has none.
    pub const fn bounds(self) -> &'static [f64] {
        match self {
            Self::Wait => &[1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 10_800.0, 43_200.0, 172_800.0],
            Self::Run => &[10.0, 60.0, 300.0, 900.0, 3600.0, 10_800.0, 43_200.0, 86_400.0, 345_600.0],
            Self::PeakOfEstimate | Self::PeakOfDeclared => &[0.25, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 4.0],
        }
    }
}

/// The values of counters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tallies(pub BTreeMap<Tally, f64>);

impl Tallies {
    /// Counts one.
    pub fn count(&mut self, tally: Tally) {
        self.add(tally, 1.0);
    }

    /// Adds to a counter.
    pub fn add(&mut self, tally: Tally, much: f64) {
        *self.0.entry(tally).or_default() += much;
    }

    /// Adds a value to a histogram.
    pub fn observe(&mut self, histogram: Histogram, value: f64) {
        let bucket = histogram.bounds().iter().take_while(|bound| value > **bound).count();
        self.count(Tally::Bucket(histogram, bucket as u8));
        self.add(Tally::Sum(histogram), value);
    }

    /// The value of a counter.
    pub fn get(&self, tally: &Tally) -> f64 {
        self.0.get(tally).copied().unwrap_or_default()
    }

    /// Whether all counters are 0.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The serialised name of a variant, without its fields.
pub(crate) fn kind_of(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(serde_json::Value::Object(fields)) => fields.into_iter().next().map(|(word, _)| word).unwrap_or_default(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use carma_core::{Outcome, Verdict};

    use super::*;

    #[test]
    fn values_fall_into_the_first_bucket_that_is_large_enough() {
        let mut tallies = Tallies::default();
        for value in [0.0, 1.0, 1.1, 1e9] {
            tallies.observe(Histogram::Wait, value);
        }
        let bucket = |number| tallies.get(&Tally::Bucket(Histogram::Wait, number)) as u32;
        assert_eq!([bucket(0), bucket(1), bucket(2), bucket(9)], [2, 1, 0, 1]);
        assert!((tallies.get(&Tally::Sum(Histogram::Wait)) - 1_000_000_002.1).abs() < 1e-3);
    }

    #[test]
    fn kinds_are_words_without_content() {
        assert_eq!(kind_of(&Verdict::OutOfMemory), "out_of_memory");
        assert_eq!(kind_of(&Outcome::CouldNotStart { reason: "x".to_owned() }), "could_not_start");
        assert_eq!(serde_json::to_string(&Tally::Bucket(Histogram::PeakOfEstimate, 3)).unwrap(), r#"{"bucket":["peak_of_estimate",3]}"#);
    }
}
