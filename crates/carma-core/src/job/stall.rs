//! Attempts that no longer get on: they hang, or are much slower than they were.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::{Fraction, Time};

/// How an attempt that runs does not get on. The driver finds out, by what it sees of GPUs, logs and progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "stall", rename_all = "snake_case")]
pub enum Stall {
    /// It shows no sign of life: its GPUs do nothing for it, and its log and its progress stand still.
    Hanging {
        /// Since when.
        since: Time,
    },
    /// It makes progress much more slowly than it did before under the same conditions.
    Slow {
        /// Since when.
        since: Time,
        /// Its speed as a part of its earlier speed.
        speed: Fraction,
    },
}

impl Stall {
    /// Since when.
    pub const fn since(self) -> Time {
        let (Self::Hanging { since } | Self::Slow { since, .. }) = self;
        since
    }

    /// Whether it hangs.
    pub const fn hangs(self) -> bool {
        matches!(self, Self::Hanging { .. })
    }
}

/// In a few words, without its subject and without the time: `is hanging`.
impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hanging { .. } => f.write_str("is hanging: no GPU activity, no output, no progress"),
            Self::Slow { speed, .. } => write!(f, "is slow: {:.0} % of its own earlier speed", speed.get() * 100.0),
        }
    }
}

/// What happens to an attempt that hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnHang {
    /// Only a report; the job continues.
    #[default]
    Report,
    /// It is stopped, after a checkpoint if it can, and the job runs again.
    Restart,
    /// It is stopped, and the job is over.
    Fail,
    /// It is not watched.
    Ignore,
}

impl OnHang {
    /// Whether it is only reported.
    pub fn is_report(&self) -> bool {
        *self == Self::Report
    }
}
