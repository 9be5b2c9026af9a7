//! The progress that jobs make together on a GPU, in jobs at full speed.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::best::WaitingJob;
use crate::forecast::speeds;
use crate::sharing::{CollocationMode, Part};
use crate::units::MiB;

/// Progress of several jobs together, in hundredths of what one makes alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Progress(pub u32);

impl Progress {
    pub(super) fn of(speed: f64) -> Self {
        Self((speed * 100.0).round() as u32)
    }

    /// In jobs at full speed.
    pub fn get(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}", self.get())
    }
}

/// How much longer a job with this SM activity alone takes with this share of the SMs.
///
/// The exponent is a fit to 113 published step times of 32 job types on instances of an A100, with the published SM utilisation as the
/// activity: off by 16 % in the median, by 23 % in the mean.
pub fn slice_slowdown(smact: f64, share: f64) -> f64 {
    (smact / share).max(1.0).powf(0.9)
}

/// The most that the first of these jobs can do together on a whole GPU: as many as its memory holds, as long as one more adds something and
/// no job is slowed down by more than the bound.
pub(super) fn together(jobs: &[&WaitingJob], memory: MiB, mode: CollocationMode, most: usize, bound: f64) -> f64 {
    let (mut on_it, mut left, mut best) = (Vec::new(), memory, 0.0);
    for job in jobs {
        if on_it.len() == most {
            break;
        }
        if job.memory > left && !on_it.is_empty() {
            continue;
        }
        on_it.push(job.profile);
        let speeds = speeds(&on_it, mode);
        let total: f64 = speeds.iter().sum();
        if total <= best || speeds.iter().any(|speed| speed * bound < 1.0) {
            on_it.pop();
            continue;
        }
        (left, best) = (left - job.memory, total);
    }
    best
}

/// The progress of these jobs on instances, one each: a job gets the smallest on which it is as fast as on any that is free.
pub(super) fn apart(jobs: &[&WaitingJob], mut parts: Vec<Part>, bound: f64) -> f64 {
    let mut total = 0.0;
    for job in jobs {
        let slowdown = |part: &Part| slice_slowdown(job.profile.smact, part.share());
        let fits = |part: &Part| job.memory <= part.memory && slowdown(part) <= bound;
        let fitting = (0..parts.len()).filter(|place| fits(&parts[*place]));
        let quickest =
            |a: &usize, b: &usize| slowdown(&parts[*a]).total_cmp(&slowdown(&parts[*b])).then(parts[*a].slices.cmp(&parts[*b].slices));
        if let Some(place) = fitting.min_by(quickest) {
            total += 1.0 / slowdown(&parts.remove(place));
        }
    }
    total
}
