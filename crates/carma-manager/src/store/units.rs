//! Units of what is kept: the wall clock's time, and energy.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
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

macro_rules! kept_as_number {
    ($unit:ident) => {
        impl ToSql for $unit {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                self.0.to_sql()
            }
        }

        impl FromSql for $unit {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                FromSql::column_result(value).map(Self)
            }
        }
    };
}

kept_as_number!(UnixMillis);
kept_as_number!(UnixMinute);
kept_as_number!(Joules);
