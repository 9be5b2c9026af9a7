//! Energy of attempts that are over, summed up.

use carma_core::{ArrayId, JobId, UserId};
use rusqlite::params_from_iter;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Reader;
use super::history::{Conditions, Span};
use crate::store::error::StoreError;
use crate::store::units::Joules;

/// By what energy is summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnergyBy {
    /// A sum for each job.
    Job,
    /// For each user.
    User,
    /// For each day, on which attempts ended.
    Day {
        /// How many minutes local time is ahead of UTC.
        ahead: i32,
    },
}

/// Whose or which day's energy it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnergyOf {
    /// A job's.
    Job(JobId),
    /// A user's, with the name.
    User(UserId, String),
    /// A day's, counted from 1970-01-01.
    Day(u32),
}

/// A sum of energy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnergySum {
    /// Of what.
    #[schema(value_type = Object)]
    pub of: EnergyOf,
    /// What people call the job, where it is of one.
    pub name: Option<String>,
    /// The job's array, and its index there.
    #[schema(value_type = Option<Vec<u64>>)]
    pub array: Option<(ArrayId, u32)>,
    /// How much.
    pub energy: Joules,
    /// Attempts it was measured of.
    pub attempts: u64,
}

impl Reader {
    /// Sums of the energy of attempts that ended within the span, of everybody or of one user.
    pub fn energy(&self, by: EnergyBy, user: Option<UserId>, ended: Span) -> Result<Vec<EnergySum>, StoreError> {
        let (key, called) = match by {
            EnergyBy::Job => ("id".to_owned(), "name, array, array_index"),
            EnergyBy::User => ("uid".to_owned(), "NULL, NULL, NULL"),
            EnergyBy::Day { ahead } => (format!("(attempts.ended + {ahead} * 60000) / 86400000"), "NULL, NULL, NULL"),
        };
        let Conditions { sql, values } = Conditions::new()
            .and("uid = ?", user.map(|user| user.0))
            .and("attempts.ended >= ?", ended.since)
            .and("attempts.ended < ?", ended.until);
        // A cross join is never turned round: the index of attempts is small, and has all that is summed.
        let sql = format!(
            "SELECT {key}, max(user), sum(joules), count(joules), {called} FROM attempts CROSS JOIN jobs ON id = job
             WHERE joules IS NOT NULL AND {sql} GROUP BY 1 ORDER BY 1"
        );
        self.rows(&sql, params_from_iter(values), |row| {
            let of = match by {
                EnergyBy::Job => EnergyOf::Job(JobId(row.get(0)?)),
                EnergyBy::User => EnergyOf::User(UserId(row.get(0)?), row.get(1)?),
                EnergyBy::Day { .. } => EnergyOf::Day(row.get(0)?),
            };
            let array = row.get::<_, Option<u64>>(5)?.map(ArrayId).zip(row.get(6)?);
            Ok(EnergySum { of, name: row.get(4)?, array, energy: row.get(2)?, attempts: row.get(3)? })
        })
    }
}
