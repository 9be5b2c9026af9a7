//! Ends of attempts by SIGTERM, held back for a moment: a batch system that preempts a job signals the agent and its jobs at once. If the agent hears of
//! the signal after it has reported the end, the job is blamed for it.

use std::time::{Duration, Instant};

use signal_hook::consts::SIGTERM;

use crate::attempt::Exit;
use crate::executor::Report;

/// How long the same signal may take to the agent.
const SAME_SIGNAL: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct HeldEnds(Vec<(Instant, Report)>);

impl HeldEnds {
    /// Holds a report of an end by SIGTERM back; returns any other.
    pub(super) fn hold(&mut self, report: Report) -> Option<Report> {
        if !is_terminated(&report) {
            return Some(report);
        }
        self.0.push((Instant::now(), report));
        None
    }

    /// The reports that have waited long enough; all of them once the batch system ends the agent.
    pub(super) fn due(&mut self, ends_now: bool) -> Vec<Report> {
        let due = self.0.extract_if(.., |(since, _)| ends_now || since.elapsed() >= SAME_SIGNAL);
        due.map(|(_, report)| report).collect()
    }
}

/// Whether SIGTERM ended an attempt; a shell says so by its exit code.
fn is_terminated(report: &Report) -> bool {
    let Report::Ended(leftovers) = report else { return false };
    leftovers.ended.as_ref().is_some_and(|ended| [Exit::Signal(SIGTERM), Exit::Code(128 + SIGTERM)].contains(&ended.exit))
}
