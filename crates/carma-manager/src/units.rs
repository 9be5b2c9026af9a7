//! Units beside the core's: the wall clock's time, and energy.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A time of the wall clock, in milliseconds since 1970. It may jump, so nothing is ordered by it that has a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    /// What the clock shows.
    pub fn now() -> Self {
        Self(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_millis() as u64))
    }

    /// The minute it lies in.
    pub const fn minute(self) -> UnixMinute {
        UnixMinute(self.0 / 60_000)
    }
}

/// A minute of the wall clock, counted from 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct UnixMinute(pub u64);

/// Energy.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct Joules(pub f64);

impl fmt::Display for Joules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} J", self.0)
    }
}
