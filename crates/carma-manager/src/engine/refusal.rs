//! The error for a user when the core refuses an event.

use carma_core::EventError;

use crate::api::{Problem, ProblemKind};

/// The answer to a question that the core refuses.
pub(crate) fn refused(error: &EventError) -> Problem {
    let kind = match error {
        EventError::UnknownJob(_) | EventError::UnknownDevice(_) | EventError::UnknownServer(_) => ProblemKind::NotFound,
        EventError::Transition { .. }
        | EventError::NotUnderWay(_)
        | EventError::InUse(_)
        | EventError::ServerInUse(_)
        | EventError::StillNeeded(_) => ProblemKind::Conflict,
        _ => ProblemKind::Invalid,
    };
    kind.because(error.to_string())
}

/// The reason when another manager uses the store.
pub(crate) const TAKEN_OVER: &str = "another manager has taken over";
const NOTHING_CHANGED: &str = "nothing was changed: ";

/// The answer to a change while nothing can be stored.
pub(crate) fn unavailable(reason: &str) -> Problem {
    ProblemKind::Unavailable.because(format!("{NOTHING_CHANGED}{reason}"))
}

/// The reason in such an answer.
pub(crate) fn cause(problem: &Problem) -> &str {
    problem.message.strip_prefix(NOTHING_CHANGED).unwrap_or(&problem.message)
}
