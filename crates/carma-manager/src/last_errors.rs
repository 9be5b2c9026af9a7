//! The last warnings and errors of the manager's log, for its status.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::units::UnixMillis;

/// How many are kept.
const KEPT: usize = 10;

/// A warning or an error of the manager's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoggedError {
    /// When it was logged, by the wall clock.
    pub at: UnixMillis,
    /// The text.
    pub text: String,
}

static LAST: Mutex<VecDeque<LoggedError>> = Mutex::new(VecDeque::new());

/// Keeps a line of the log.
pub fn keep(error: LoggedError) {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    // The same error again and again leaves room for others.
    last.retain(|known| known.text != error.text);
    last.push_back(error);
    if last.len() > KEPT {
        last.pop_front();
    }
}

/// The last ones, the latest last.
pub(crate) fn last() -> Vec<LoggedError> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_different_errors_are_kept() {
        (0..30).for_each(|number| keep(LoggedError { at: UnixMillis(number), text: format!("error {}", number % 15) }));
        let texts: Vec<String> = last().into_iter().map(|error| error.text).collect();
        assert_eq!(texts, (5..15).map(|number| format!("error {number}")).collect::<Vec<_>>());
    }
}
