//! Sums of the energy of finished attempts.

use carma_core::{JobId, UserId};
use rusqlite::params_from_iter;

use super::Reader;
use super::history::{Conditions, Span, array_place};
use crate::request::ArrayPlace;
use crate::store::error::StoreError;
use crate::units::Joules;

/// How energy is grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnergyBy {
    /// A sum for each job.
    Job,
    /// For each user.
    User,
    /// For each day, by the end of attempts.
    Day {
        /// How many minutes local time is ahead of UTC.
        ahead: i32,
    },
}

/// The job, user or day of a sum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnergyOf {
    /// A job's.
    Job(JobId),
    /// A user's.
    User {
        /// The user's number.
        uid: UserId,
        /// The user's name.
        name: String,
    },
    /// A day's, counted from 1970-01-01.
    Day(u32),
}

/// A sum of energy.
#[derive(Debug, Clone, PartialEq)]
pub struct EnergySum {
    /// The job, user or day.
    pub of: EnergyOf,
    /// The name of the job, for the sum of a job.
    pub name: Option<String>,
    /// The job's place in an array.
    pub array: Option<ArrayPlace>,
    /// The energy.
    pub energy: Joules,
    /// The number of attempts.
    pub attempts: u64,
}

impl Reader {
    /// Sums of the energy of attempts that ended within the span, of all users or of one.
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
        // A cross join keeps its order: the index of attempts is small and covers the query.
        let sql = format!(
            "SELECT {key}, max(user), sum(joules), count(joules), {called} FROM attempts CROSS JOIN jobs ON id = job
             WHERE joules IS NOT NULL AND {sql} GROUP BY 1 ORDER BY 1"
        );
        self.rows(&sql, params_from_iter(values), |row| {
            let of = match by {
                EnergyBy::Job => EnergyOf::Job(JobId(row.get(0)?)),
                EnergyBy::User => EnergyOf::User { uid: UserId(row.get(0)?), name: row.get(1)? },
                EnergyBy::Day { .. } => EnergyOf::Day(row.get(0)?),
            };
            Ok(EnergySum { of, name: row.get(4)?, array: array_place(row, 5)?, energy: row.get(2)?, attempts: row.get(3)? })
        })
    }
}
