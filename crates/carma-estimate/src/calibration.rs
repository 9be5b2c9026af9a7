//! Corrections of estimates, learned from measured peaks on one kind of GPU.
//!
//! The context and the kernels of a server differ from the built-in tables by a constant, and convolution workspaces by a factor. Both
//! are medians over measured jobs, and small samples count little, so that one odd job changes nothing much.

use std::collections::BTreeMap;
use std::io;

use carma_core::MiB;
use serde::{Deserialize, Serialize};

/// One measured job with its uncorrected estimate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The estimator.
    pub estimator: String,
    /// The GPU's name.
    pub gpu: String,
    /// The estimate, uncorrected.
    pub expected: MiB,
    /// Its convolution workspace.
    pub workspace: MiB,
    /// The measured peak.
    pub measured: MiB,
}

/// Latest samples that count, of one estimator on one kind of GPU.
const MOST: usize = 200;

/// Samples with half the weight of the correction they suggest.
const HALF: f64 = 5.0;

/// Samples below which the shipped bound stays.
const LEAST_FOR_BOUND: usize = 20;

/// Share of workspace from which a sample says something about workspaces.
const WITH_WORKSPACE: f64 = 0.02;

/// A peak this many times above or below its estimate says that the job was described wrongly, not how the server differs.
const MOST_RATIO: f64 = 2.0;

/// MiB by which contexts differ at most.
const MOST_CONTEXT: f64 = 2048.0;

/// A correction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Calibration {
    /// Measured jobs.
    pub samples: usize,
    /// MiB to add for the context.
    pub context: f64,
    /// Factor of the workspace.
    pub workspace: f64,
    /// Ratio of measured to corrected memory that 95 % of jobs do not exceed, if there are enough samples.
    pub bound: Option<f64>,
    /// Median error of the estimates before the correction.
    pub error_before: f64,
    /// The same after it.
    pub error_after: f64,
}

impl Calibration {
    /// Learns from the samples of one estimator on one kind of GPU; none without samples.
    pub fn of(samples: &[&Sample]) -> Option<Self> {
        let samples = &samples[samples.len().saturating_sub(MOST)..];
        if samples.is_empty() {
            return None;
        }
        let excess = |sample: &Sample| sample.measured.0 as f64 - sample.expected.0 as f64;
        let (with, without): (Vec<&Sample>, Vec<&Sample>) =
            samples.iter().copied().partition(|sample| sample.workspace.0 as f64 > WITH_WORKSPACE * sample.expected.0 as f64);
        let context = shrunk(without.iter().map(|sample| excess(sample)).collect()).clamp(-MOST_CONTEXT, MOST_CONTEXT);
        let factor = |sample: &&Sample| (excess(sample) - context) / sample.workspace.0 as f64;
        let workspace = 1.0 + shrunk(with.iter().map(factor).collect()).clamp(-1.0, 3.0);
        let mut calibration = Self { samples: samples.len(), context, workspace, bound: None, error_before: 0.0, error_after: 0.0 };
        let mut ratios: Vec<f64> = samples.iter().map(|sample| sample.measured.0 as f64 / calibration.corrected(sample)).collect();
        ratios.sort_by(f64::total_cmp);
        let place = ((ratios.len() + 1) as f64 * 0.95).ceil() as usize;
        calibration.bound = (ratios.len() >= LEAST_FOR_BOUND).then(|| ratios[place.min(ratios.len()) - 1].max(1.0));
        let error = |estimate: &dyn Fn(&Sample) -> f64| {
            median(samples.iter().map(|sample| (estimate(sample) / sample.measured.0.max(1) as f64 - 1.0).abs()).collect())
        };
        calibration.error_before = error(&|sample| sample.expected.0 as f64);
        calibration.error_after = error(&|sample| calibration.corrected(sample));
        Some(calibration)
    }

    fn corrected(&self, sample: &Sample) -> f64 {
        self.apply(sample.expected, sample.workspace, sample.expected).0.0 as f64
    }

    /// The corrected estimate, and the corrected upper bound.
    pub fn apply(&self, expected: MiB, workspace: MiB, upper: MiB) -> (MiB, MiB) {
        let corrected = expected.0 as f64 + self.context + (self.workspace - 1.0) * workspace.0 as f64;
        // The tensors themselves are not in doubt.
        let corrected = corrected.max(expected.0 as f64 / 2.0);
        let shipped = upper.0 as f64 / expected.0.max(1) as f64;
        let upper = corrected * self.bound.unwrap_or(shipped).max(1.0);
        (MiB(corrected.ceil() as u64), MiB(upper.ceil() as u64))
    }
}

/// The median, moved towards zero while there are few values.
fn shrunk(values: Vec<f64>) -> f64 {
    let count = values.len() as f64;
    median(values) * count / (count + HALF)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count => f64::midpoint(values[(count - 1) / 2], values[count / 2]),
    }
}

/// All samples of a server, and the corrections they give.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calibrations {
    samples: BTreeMap<(String, String), Vec<Sample>>,
}

impl Calibrations {
    /// Adds a measured job, unless its estimate was for another one.
    pub fn add(&mut self, sample: Sample) {
        let ratio = sample.measured.0 as f64 / sample.expected.0 as f64;
        if !(1.0 / MOST_RATIO..=MOST_RATIO).contains(&ratio) {
            return;
        }
        let samples = self.samples.entry((sample.estimator.clone(), sample.gpu.clone())).or_default();
        samples.push(sample);
        let excess = samples.len().saturating_sub(MOST);
        samples.drain(..excess);
    }

    /// The corrections: estimator, GPU, and what was learned.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str, Calibration)> {
        self.samples.iter().filter_map(|((estimator, gpu), samples)| {
            Some((estimator.as_str(), gpu.as_str(), Calibration::of(&samples.iter().collect::<Vec<_>>())?))
        })
    }

    /// The correction of an estimator on a kind of GPU.
    pub fn of(&self, estimator: &str, gpu: &str) -> Option<Calibration> {
        Calibration::of(&self.samples.get(&(estimator.to_owned(), gpu.to_owned()))?.iter().collect::<Vec<_>>())
    }

    /// Reads what [`Self::write`] wrote.
    pub fn read(input: impl io::Read) -> Result<Self, csv::Error> {
        let mut all = Self::default();
        for sample in csv::Reader::from_reader(input).into_deserialize() {
            all.add(sample?);
        }
        Ok(all)
    }

    /// Writes the samples.
    pub fn write(&self, output: impl io::Write) -> Result<(), csv::Error> {
        let mut writer = csv::Writer::from_writer(output);
        for sample in self.samples.values().flatten() {
            writer.serialize(sample)?;
        }
        Ok(writer.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(expected: u64, workspace: u64, measured: u64) -> Sample {
        let (expected, workspace, measured) = (MiB(expected), MiB(workspace), MiB(measured));
        Sample { estimator: "dry-run".to_owned(), gpu: "GPU".to_owned(), expected, workspace, measured }
    }

    fn learned(samples: &[Sample]) -> Calibration {
        Calibration::of(&samples.iter().collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_constant_and_a_factor_are_found() {
        // Contexts are 300 MiB larger than assumed, workspaces half of what is assumed.
        let plain = (1..=100).map(|size| sample(size * 100, 0, size * 100 + 300));
        let convolutions = (1..=100).map(|size| sample(size * 100, size * 20, size * 100 + 300 - size * 10));
        let found = learned(&plain.chain(convolutions).collect::<Vec<_>>());
        assert!((found.context - 300.0).abs() < 20.0 && (found.workspace - 0.5).abs() < 0.05, "{found:?}");
        assert!(found.error_after < 0.01 && found.error_after < found.error_before);
        assert!(found.bound.is_some_and(|bound| bound < 1.1));
        let (expected, upper) = found.apply(MiB(1000), MiB(200), MiB(1500));
        assert!((1180..=1220).contains(&expected.0) && upper.0 < 1350, "{expected:?} {upper:?}");
    }

    #[test]
    fn few_jobs_change_little_and_odd_ones_nothing() {
        let one = learned(&[sample(1000, 0, 3000)]);
        assert!(one.context < 340.0 && one.bound.is_none(), "{one:?}");
        let (_, upper) = one.apply(MiB(1000), MiB(0), MiB(1200));
        assert!(upper.0 >= 1200, "the shipped bound stays while there are few jobs");
        let odd = (0..30).map(|number| sample(1000, 0, if number % 10 == 0 { 9000 } else { 1010 })).collect::<Vec<_>>();
        assert!(learned(&odd).context < 12.0);
    }

    #[test]
    fn samples_read_back_and_old_ones_are_dropped() {
        let mut all = Calibrations::default();
        for number in 0..250 {
            all.add(sample(1000 + number, 1, 1100));
        }
        let mut text = Vec::new();
        all.write(&mut text).unwrap();
        let read = Calibrations::read(text.as_slice()).unwrap();
        assert_eq!(read, all);
        assert_eq!(read.of("dry-run", "GPU").unwrap().samples, MOST);
        assert_eq!((read.of("dry-run", "other"), read.all().count()), (None, 1));
        let mut odd = Calibrations::default();
        for (expected, measured) in [(1000, 2001), (1000, 499), (0, 5)] {
            odd.add(sample(expected, 0, measured));
        }
        assert_eq!(odd.all().count(), 0, "these were described wrongly");
        assert!(Calibrations::read(&b"estimator,gpu\nx,y\n"[..]).is_err());
    }
}
