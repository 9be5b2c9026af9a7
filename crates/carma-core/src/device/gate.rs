//! The observation gate: after a launch a device is closed until the load of the new job can be seen in the telemetry.

use crate::AttemptId;
use crate::units::Time;

/// Open, or closed behind the last attempt that was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Open.
    Open,
    /// Closed.
    Closed {
        /// Behind this attempt.
        by: AttemptId,
        /// Until then; unset while the attempt has not been seen and there is no timeout.
        until: Option<Time>,
    },
}

impl Gate {
    pub(crate) const fn closed_by(by: AttemptId, until: Option<Time>) -> Self {
        Self::Closed { by, until }
    }

    /// Whether nothing may pass.
    pub fn is_closed(&self, now: Time) -> bool {
        matches!(self, Self::Closed { until, .. } if until.is_none_or(|until| now < until))
    }

    /// When it opens by itself.
    pub const fn opens_at(&self) -> Option<Time> {
        match self {
            Self::Open => None,
            Self::Closed { until, .. } => *until,
        }
    }

    /// The attempt it waits for was seen: from now on the opening time is known.
    pub(crate) fn seen(&mut self, attempt: AttemptId, until: Option<Time>) {
        if let Self::Closed { by, until: opens } = self
            && *by == attempt
        {
            *opens = until;
        }
    }

    /// The attempt it waits for has ended.
    pub(crate) fn open_after(&mut self, attempt: AttemptId) {
        if matches!(self, Self::Closed { by, .. } if *by == attempt) {
            *self = Self::Open;
        }
    }
}
