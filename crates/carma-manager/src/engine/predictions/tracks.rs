//! How far running attempts are: the time that they would have taken alone, and the progress that they report.

use std::collections::HashMap;

use carma_core::{AttemptId, Fraction, JobId, Seconds, Time};
use carma_estimate::durations::Length;

use crate::engine::decide::Decisions;

/// Progress over a smaller share of the whole says too little.
const LEAST_SHARE: f64 = 0.01;
/// Progress over a shorter time says too little, in seconds alone.
const LEAST_TIME: f64 = 20.0;
/// Progress that is later than this many of the usual steps between two reports, and than these seconds alone, has stopped.
const OVERDUE: (f64, f64) = (5.0, 60.0);
/// How far off a length by progress is at least, and by how much more if little was seen: steps are not all alike.
const SPREAD: (f64, f64) = (0.05, 0.02);

/// One running attempt.
#[derive(Debug, Clone, Copy)]
struct Track {
    /// Seconds of the present speed alone.
    alone: f64,
    /// As of this time.
    at: Time,
    slowdown: f64,
    /// Time alone and progress, at the first and the last report.
    first: Option<(f64, f64)>,
    last: Option<(f64, f64)>,
    /// Number of steps from the first report to the last.
    steps: u32,
}

impl Track {
    fn advance(&mut self, now: Time) {
        self.alone += (now - self.at).get() / self.slowdown;
        self.at = self.at.max(now);
    }

    fn report(&mut self, share: f64) {
        if self.last.is_none_or(|(_, before)| (before - share).abs() > f64::EPSILON) {
            let report = (self.alone, share);
            // What begins again is another piece of work.
            if self.last.is_some_and(|(_, before)| share < before) {
                self.first = None;
            }
            self.steps = if self.first.is_some() { self.steps + 1 } else { 0 };
            self.first.get_or_insert(report);
            self.last = Some(report);
        }
    }

    /// Whether the next report should have come long ago.
    fn is_overdue(&self) -> bool {
        let Some(((began, _), (last, _))) = self.first.zip(self.last).filter(|_| self.steps > 0) else { return false };
        self.alone - last > ((last - began) / f64::from(self.steps) * OVERDUE.0).max(OVERDUE.1)
    }

    /// How long all of it takes alone, by its progress.
    fn length(&self) -> Option<Length> {
        let ((began, from), (alone, share)) = self.first.zip(self.last)?;
        let (took, done) = (alone - began, share - from);
        if took < LEAST_TIME || done < LEAST_SHARE {
            return None;
        }
        let left = (1.0 - share) * took / done;
        Some(Length::new(Seconds::new(alone + left).ok()?, SPREAD.0.hypot(SPREAD.1 / done)))
    }
}

/// The running attempts.
#[derive(Debug, Default)]
pub(super) struct Tracks(HashMap<AttemptId, Track>);

/// How far an attempt is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Progress {
    /// Time alone so far.
    pub(super) alone: Seconds,
    /// How long all of it takes alone, by its progress.
    pub(super) length: Option<Length>,
}

impl Tracks {
    /// Brings all running attempts up to date.
    pub(super) fn update(&mut self, decisions: &Decisions) {
        let (scheduler, now) = (decisions.scheduler(), decisions.now());
        self.0.retain(|attempt, _| is_active(decisions, *attempt));
        for device in scheduler.fleet().devices() {
            for tenant in &device.tenants {
                self.update_one(decisions, tenant.attempt, now);
            }
        }
    }

    fn update_one(&mut self, decisions: &Decisions, attempt: AttemptId, now: Time) {
        let Some((job, active)) = decisions.job(attempt.job).and_then(|job| Some((job, job.state.active()?))) else { return };
        let devices = active.placement.devices.iter().filter_map(|granted| decisions.scheduler().fleet().device(granted.device));
        let slowdown = devices.map(|device| device.predicted_slowdown(attempt)).fold(1.0, f64::max);
        let new = Track { alone: 0.0, at: active.launched_at, slowdown, first: None, last: None, steps: 0 };
        let track = self.0.entry(attempt).or_insert(new);
        track.advance(now);
        track.slowdown = slowdown;
        if let Some(share) = job.progress.map(Fraction::get) {
            track.report(share);
        }
    }

    /// How far the running attempt of a job is.
    pub(super) fn of(&self, decisions: &Decisions, job: JobId) -> Option<Progress> {
        let attempt = decisions.job(job)?.state.active()?.attempt;
        let mut track = *self.0.get(&attempt)?;
        track.advance(decisions.now());
        Some(Progress { alone: Seconds::new(track.alone).ok()?, length: track.length() })
    }

    /// Whether the progress of a job has stopped: its end is not known then.
    pub(super) fn is_overdue(&self, decisions: &Decisions, job: JobId) -> bool {
        let attempt = decisions.job(job).and_then(|job| job.state.active()).map(|active| active.attempt);
        attempt.and_then(|attempt| self.0.get(&attempt)).is_some_and(|track| {
            let mut track = *track;
            track.advance(decisions.now());
            track.is_overdue()
        })
    }

    /// How long an attempt that ends now would have taken alone.
    pub(super) fn time_alone(&self, attempt: AttemptId, now: Time) -> Option<Seconds> {
        let mut track = *self.0.get(&attempt)?;
        track.advance(now);
        Seconds::new(track.alone).ok()
    }
}

fn is_active(decisions: &Decisions, attempt: AttemptId) -> bool {
    decisions.job(attempt.job).and_then(|job| job.state.active()).is_some_and(|active| active.attempt == attempt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track() -> Track {
        Track { alone: 0.0, at: Time::from_secs(100), slowdown: 1.0, first: None, last: None, steps: 0 }
    }

    #[test]
    fn time_on_a_shared_gpu_counts_as_time_alone() {
        let mut track = track();
        track.advance(Time::from_secs(200));
        track.slowdown = 2.0;
        track.advance(Time::from_secs(400));
        assert!((track.alone - 200.0).abs() < 1e-9, "100 s alone, and 200 s at half the speed");
    }

    #[test]
    fn progress_predicts_the_length_without_the_start_up() {
        let mut track = track();
        let mut report = |second, share| {
            track.advance(Time::from_secs(second));
            track.report(share);
            track.length()
        };
        assert_eq!(report(130, 0.0), None);
        assert_eq!(report(135, 0.1), None, "too soon");
        let [early, late] = [report(190, 0.2), report(430, 1.0)].map(Option::unwrap);
        assert!((early.median().get() - 330.0).abs() < 1.0, "30 s of start-up, and 60 s for each fifth: {early:?}");
        assert!((late.median().get() - 330.0).abs() < 1.0 && late.spread() < early.spread());
        assert_eq!(report(500, 0.1), None, "it began again");
    }

    #[test]
    fn progress_is_overdue_after_a_few_of_its_steps() {
        let mut track = track();
        for (second, share) in [(130, 0.1), (160, 0.2), (190, 0.3)] {
            track.advance(Time::from_secs(second));
            track.report(share);
        }
        track.advance(Time::from_secs(190 + 150));
        assert!(!track.is_overdue());
        track.advance(Time::from_secs(190 + 151));
        assert!(track.is_overdue(), "five of its steps, which take 30 s each");
        track.report(0.4);
        assert!(!track.is_overdue());
    }
}
