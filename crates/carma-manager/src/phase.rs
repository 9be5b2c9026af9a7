//! The state of a job as one word, for filters.

use std::fmt;
use std::str::FromStr;

use carma_core::State;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

/// The state of a job, without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Held until released.
    Held,
    /// Waiting for its estimate.
    Estimating,
    /// In the main queue.
    Queued,
    /// Launched, not yet observed on its GPUs.
    Starting,
    /// Observed on its GPUs.
    Running,
    /// In the recovery queue.
    Recovering,
    /// In the main queue after a preemption.
    Preempted,
    /// Finished.
    Done,
}

/// All phases, with the names of the core.
const PHASES: [(Phase, &str); 8] = [
    (Phase::Held, "held"),
    (Phase::Estimating, "estimating"),
    (Phase::Queued, "queued"),
    (Phase::Starting, "starting"),
    (Phase::Running, "running"),
    (Phase::Recovering, "recovering"),
    (Phase::Preempted, "preempted"),
    (Phase::Done, "done"),
];

impl From<&State> for Phase {
    fn from(state: &State) -> Self {
        match state {
            State::Held { .. } => Self::Held,
            State::Estimating { .. } => Self::Estimating,
            State::Queued { .. } => Self::Queued,
            State::Starting(_) => Self::Starting,
            State::Running(_) => Self::Running,
            State::Recovering { .. } => Self::Recovering,
            State::Preempted { .. } => Self::Preempted,
            State::Done { .. } => Self::Done,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PHASES[*self as usize].1)
    }
}

/// A word that is no state.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a state of a job: write held, estimating, queued, starting, running, recovering, preempted or done")]
pub struct NotAPhase(String);

impl FromStr for Phase {
    type Err = NotAPhase;
    fn from_str(text: &str) -> Result<Self, NotAPhase> {
        PHASES.iter().find(|(_, name)| *name == text).map(|(phase, _)| *phase).ok_or_else(|| NotAPhase(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use carma_core::{Outcome, Resumes, Time};

    use super::*;

    #[test]
    fn every_phase_has_the_name_of_the_cores_state_and_reads_back() {
        let since = Time::ZERO;
        let states = [
            State::Held { since, resumes: Resumes::Estimating },
            State::Estimating { since },
            State::Queued { since },
            State::Recovering { since },
            State::Preempted { since },
            State::Done { at: since, outcome: Outcome::Succeeded },
        ];
        for state in &states {
            assert_eq!(Phase::from(state).to_string(), state.name());
        }
        for (phase, name) in PHASES {
            assert_eq!((phase.to_string().as_str(), name.parse()), (name, Ok(phase)));
        }
    }
}
