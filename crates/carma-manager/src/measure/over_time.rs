//! How busy an attempt kept a GPU over time: means of equal spans, which grow with the attempt. So the size is bounded however long it runs.

use carma_core::{Fraction, PerMetric, Seconds, Time, Utilisation, UtilisationOverTime};
use serde::{Deserialize, Serialize};

/// Maximum number of spans. Beyond it, spans are joined in pairs.
const MAX_SPANS: u64 = 120;
/// The first length of a span.
const SHORTEST: Seconds = Seconds::from_secs(5);

/// The utilisation of a GPU by an attempt over time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OverTime {
    /// The first sample.
    since: Time,
    /// The length of a span; zero before the first sample.
    span: Seconds,
    /// The means of complete spans, in thousandths; unset where nothing was known. Empty for a metric that was never known.
    means: PerMetric<Vec<Option<u16>>>,
    /// Number of complete spans.
    complete: u64,
    current: PerMetric<Sum>,
}

/// A sum of known shares.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
struct Sum(f64, u32);

impl Sum {
    fn mean(self) -> Option<f64> {
        (self.1 > 0).then(|| self.0 / f64::from(self.1))
    }
}

impl OverTime {
    /// Adds a part of a sample. A sample before the first one is ignored.
    pub(super) fn add(&mut self, at: Time, utilisation: &Utilisation, share: f64) {
        if self.span == Seconds::ZERO {
            (self.since, self.span) = (at, SHORTEST);
        }
        if at < self.since {
            return;
        }
        let after = (at - self.since).milliseconds();
        while after / self.span.milliseconds() >= MAX_SPANS {
            self.join_pairs();
        }
        while self.complete < after / self.span.milliseconds() {
            self.end_span();
        }
        for (metric, Sum(sum, count)) in self.current.iter_mut() {
            if let Some(value) = utilisation[metric] {
                (*sum, *count) = (*sum + value.get() * share, *count + 1);
            }
        }
    }

    /// When it begins.
    pub const fn since(&self) -> Time {
        self.since
    }

    /// The length of its spans.
    pub const fn span(&self) -> Seconds {
        self.span
    }

    /// The mean of each span, to three decimals, with the one that is not complete. Metrics that were never known have none.
    pub fn columns(&self) -> UtilisationOverTime {
        PerMetric::from_fn(|metric| {
            let mut column = self.means[metric].clone();
            add(&mut column, self.complete, self.current[metric]);
            column.into_iter().map(|mean| mean.map(share)).collect()
        })
    }

    /// Whether nothing is known of any span.
    pub fn is_empty(&self) -> bool {
        self.columns().iter().all(|(_, column)| column.is_empty())
    }

    fn end_span(&mut self) {
        for (metric, sum) in self.current.iter_mut() {
            add(&mut self.means[metric], self.complete, std::mem::take(sum));
        }
        self.complete += 1;
    }

    fn join_pairs(&mut self) {
        self.end_span();
        for (_, column) in self.means.iter_mut() {
            *column = column.chunks(2).map(joined).collect();
        }
        (self.complete, self.span) = (self.complete.div_ceil(2), self.span + self.span);
    }
}

/// Adds the mean of a span to a column, after so many others. A metric that was never known has no column.
fn add(column: &mut Vec<Option<u16>>, complete: u64, sum: Sum) {
    let mean = sum.mean().map(thousandths);
    if mean.is_some() || !column.is_empty() {
        column.resize(complete as usize, None);
        column.push(mean);
    }
}

/// The mean of what is known of some spans.
fn joined(spans: &[Option<u16>]) -> Option<u16> {
    let known: Vec<f64> = spans.iter().flatten().map(|mean| f64::from(*mean)).collect();
    (!known.is_empty()).then(|| (known.iter().sum::<f64>() / known.len() as f64).round() as u16)
}

fn thousandths(share: f64) -> u16 {
    (Fraction::clamped(share).get() * 1000.0).round() as u16
}

fn share(thousandths: u16) -> f64 {
    f64::from(thousandths) / 1000.0
}

#[cfg(test)]
mod tests {
    use carma_core::Metric;

    use super::*;

    fn busy(smact: f64) -> Utilisation {
        Utilisation::of([(Metric::Smact, smact)])
    }

    /// A sample each second, with what a function says of the second.
    fn sampled(seconds: u64, smact: impl Fn(u64) -> f64) -> OverTime {
        let mut over_time = OverTime::default();
        for second in 0..seconds {
            over_time.add(Time::from_secs(100 + second), &busy(smact(second)), 0.5);
        }
        over_time
    }

    #[test]
    fn a_short_attempt_has_short_spans() {
        let over_time = sampled(12, |second| if second < 5 { 0.2 } else { 0.8 });
        assert_eq!((over_time.since(), over_time.span()), (Time::from_secs(100), Seconds::from_secs(5)));
        let columns = over_time.columns();
        assert_eq!(columns[Metric::Smact], [Some(0.1), Some(0.4), Some(0.4)], "its half of what the GPU did");
        assert_eq!(columns[Metric::Drama], [], "never known");
    }

    #[test]
    fn a_long_attempt_keeps_its_shape_in_few_spans() {
        // The second half is busy.
        let over_time = sampled(6400, |second| if second < 3200 { 0.0 } else { 1.0 });
        let column = over_time.columns()[Metric::Smact].clone();
        assert_eq!(over_time.span(), Seconds::from_secs(80));
        assert_eq!(column.len(), 80);
        assert!(column[..40].iter().all(|mean| *mean == Some(0.0)) && column[40..].iter().all(|mean| *mean == Some(0.5)), "{column:?}");
    }

    #[test]
    fn a_pause_is_a_gap_and_a_very_long_one_too() {
        let mut over_time = sampled(5, |_| 1.0);
        over_time.add(Time::from_secs(100 + 20), &busy(0.4), 1.0);
        assert_eq!(over_time.columns()[Metric::Smact], [Some(0.5), None, None, None, Some(0.4)]);
        over_time.add(Time::from_secs(100 + 30 * 86_400), &busy(0.6), 1.0);
        let column = over_time.columns()[Metric::Smact].clone();
        assert!(column.len() <= 120 && column.iter().flatten().count() == 2 && column.last() == Some(&Some(0.6)), "{column:?}");
        over_time.add(Time::from_secs(1), &busy(0.6), 1.0);
        assert_eq!(over_time.columns()[Metric::Smact], column, "the clock was set back");
    }

    #[test]
    fn it_is_small_and_continues_when_it_was_saved() {
        let long = sampled(100_000, |second| f64::from(second as u32 % 1000) / 1000.0);
        let saved = serde_json::to_string(&long).unwrap();
        assert!(saved.len() < 1_000, "{} bytes", saved.len());
        assert_eq!(serde_json::from_str::<OverTime>(&saved).unwrap(), long);
        assert!(OverTime::default().is_empty() && !long.is_empty());
    }
}
