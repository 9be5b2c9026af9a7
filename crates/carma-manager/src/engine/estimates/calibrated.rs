//! Corrections that this server's own measurements give to estimates, in a file with a line for each measured job.

use std::fs::{self, File};
use std::path::PathBuf;

use carma_core::{MemoryEstimate, MiB, PerRank};
use carma_estimate::calibration::{Calibrations, Sample};

use super::Estimated;
use crate::event::{CORRECTION, MemoryPart, uncorrected};

/// What measured peaks say about estimators on the GPUs of this server.
#[derive(Debug)]
pub(super) struct Calibrated {
    calibrations: Calibrations,
    path: PathBuf,
}

impl Calibrated {
    /// Reads the file. A damaged one is put aside.
    pub(super) fn open(path: PathBuf) -> Self {
        let read = File::open(&path).ok().and_then(|file| Calibrations::read(file).ok());
        if read.is_none() && path.exists() {
            let _ = fs::rename(&path, path.with_extension("damaged"));
        }
        Self { calibrations: read.unwrap_or_default(), path }
    }

    /// Adds the measured peak of a completed job. On a full disk it is forgotten at the next start.
    pub(super) fn learn(&mut self, estimated: &Estimated, gpu: &str, measured: MiB) {
        let Some(sample) = sample(estimated, gpu, measured) else { return };
        self.calibrations.add(sample);
        let new = self.path.with_extension("new");
        if File::create(&new).is_ok_and(|file| self.calibrations.write(file).is_ok()) {
            let _ = fs::rename(new, &self.path);
        }
    }

    /// Corrects an estimate by what was learned on these kinds of GPUs. Where they differ, the largest need counts.
    pub(super) fn correct<'a>(&self, estimated: &mut Estimated, gpus: impl Iterator<Item = &'a str>) {
        let (Some(source), Some(PerRank::Same(memory))) = (estimated.source.as_deref(), &estimated.estimate.memory) else { return };
        let (_, workspace) = uncorrected(&estimated.parts).unwrap_or_default();
        let apply = |gpu| Some(self.calibrations.of(source, gpu)?.apply(memory.expected, workspace, memory.upper));
        let Some((expected, upper)) = gpus.map(apply).reduce(Option::max).flatten() else { return };
        let added = expected - memory.expected;
        estimated.estimate.memory = Some(PerRank::Same(MemoryEstimate { expected, upper }));
        if added > MiB::ZERO {
            estimated.parts.push(MemoryPart { name: CORRECTION.to_owned(), memory: added });
        }
    }
}

/// A completed job as a sample. Only estimates with parts can be corrected.
fn sample(estimated: &Estimated, gpu: &str, measured: MiB) -> Option<Sample> {
    let (expected, workspace) = uncorrected(&estimated.parts)?;
    let sample = Sample { estimator: estimated.source.clone()?, gpu: gpu.to_owned(), expected, workspace, measured };
    (measured > MiB::ZERO).then_some(sample)
}

#[cfg(test)]
mod tests {
    use carma_core::Estimate;

    use super::*;

    fn estimated() -> Estimated {
        let memory = Some(PerRank::Same(MemoryEstimate { expected: MiB(4000), upper: MiB(4400) }));
        let part = |name: &str, memory| MemoryPart { name: name.to_owned(), memory: MiB(memory) };
        let parts = vec![part("weights", 3500), part("context", 500)];
        Estimated { estimate: Estimate { memory, ..Estimate::default() }, source: Some("dry-run".to_owned()), notes: Vec::new(), parts }
    }

    fn corrected(calibrated: &Calibrated, gpus: &[&str]) -> (u64, u64) {
        let mut estimated = estimated();
        calibrated.correct(&mut estimated, gpus.iter().copied());
        let Some(PerRank::Same(MemoryEstimate { expected, upper })) = estimated.estimate.memory else { panic!("{estimated:?}") };
        let parts: MiB = estimated.parts.iter().map(|part| part.memory).sum();
        assert!(parts <= expected.max(MiB(4000)), "parts are the expected memory");
        (expected.0, upper.0)
    }

    #[test]
    fn measured_jobs_correct_later_estimates_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Calibrated::open(folder.path().join("calibration.csv"));
        assert_eq!(corrected(&open(), &["A"]), (4000, 4400), "nothing is known yet");
        let mut calibrated = open();
        for _ in 0..95 {
            let mut again = estimated();
            calibrated.correct(&mut again, ["A"].into_iter());
            calibrated.learn(&again, "A", MiB(4500));
        }
        let (expected, upper) = corrected(&open(), &["A"]);
        assert!(
            (4470..=4500).contains(&expected) && (4500..4600).contains(&upper),
            "{expected} {upper}: corrections are not counted twice"
        );
        assert_eq!(corrected(&open(), &["B"]), (4000, 4400), "other GPUs are not corrected");
        assert_eq!(corrected(&open(), &["B", "A"]).0, expected, "the largest need counts");
    }

    #[test]
    fn a_damaged_file_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calibration.csv");
        fs::write(&path, "estimator,gpu\nx,y\n").unwrap();
        assert_eq!(corrected(&Calibrated::open(path.clone()), &["A"]), (4000, 4400));
        assert!(path.with_extension("damaged").exists() && !path.exists());
    }
}
