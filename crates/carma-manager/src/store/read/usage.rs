//! What a user's jobs took.

use carma_core::{Seconds, UserId};
use rusqlite::{params, params_from_iter};

use super::Reader;
use super::history::{Conditions, Span};
use crate::ending::OutcomeFilter;
use crate::phase::Phase;
use crate::store::columns::Named;
use crate::store::error::StoreError;
use crate::units::Joules;

/// What the jobs of a user took that ended within a span.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct JobsOfUser {
    /// Jobs that succeeded.
    pub succeeded: u64,
    /// Jobs that ended otherwise, except cancelled ones.
    pub failed: u64,
    /// Cancelled jobs.
    pub cancelled: u64,
}

impl Reader {
    /// The user's unfinished jobs by state.
    pub fn unfinished_by_phase(&self, user: UserId) -> Result<Vec<(Phase, u64)>, StoreError> {
        let sql = "SELECT phase, count(*) FROM jobs WHERE uid = ?1 AND ended IS NULL GROUP BY phase";
        self.rows(sql, params![user.0], |row| {
            let Named(phase) = row.get(0)?;
            Ok((phase, row.get(1)?))
        })
    }

    /// How many of the user's jobs ended within the span, and how.
    pub fn jobs_of_user(&self, user: UserId, ended: Span) -> Result<JobsOfUser, StoreError> {
        let Conditions { sql, values } =
            Conditions::new().and("uid = ?", Some(user.0)).and("ended >= ?", ended.since).and("ended < ?", ended.until);
        let count = |filter: OutcomeFilter| format!("coalesce(sum({}), 0)", filter.condition());
        let counts = [OutcomeFilter::Succeeded, OutcomeFilter::Failed, OutcomeFilter::Cancelled].map(count).join(", ");
        let sql = format!("SELECT {counts} FROM jobs WHERE ended IS NOT NULL AND {sql}");
        let found = self.first(&sql, params_from_iter(values), |row| {
            Ok(JobsOfUser { succeeded: row.get(0)?, failed: row.get(1)?, cancelled: row.get(2)? })
        })?;
        Ok(found.unwrap_or_default())
    }

    /// The time on GPUs and the energy of the user's attempts that ended within the span. A shared GPU counts in full for each attempt.
    pub fn taken_by_user(&self, user: UserId, ended: Span) -> Result<(Seconds, Joules), StoreError> {
        let Conditions { sql, values } =
            Conditions::new().and("uid = ?", Some(user.0)).and("attempts.ended >= ?", ended.since).and("attempts.ended < ?", ended.until);
        let sql = format!(
            "SELECT coalesce(sum((attempts.ended - launched) * json_array_length(placement, '$.devices')), 0), coalesce(sum(joules), 0.0)
             FROM attempts JOIN jobs ON id = job WHERE attempts.ended IS NOT NULL AND {sql}"
        );
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, f64>(0)?, row.get(1)?));
        let (millis, joules) = self.first(&sql, params_from_iter(values), read)?.unwrap_or((0.0, Joules(0.0)));
        Ok((Seconds::new(millis / 1000.0).unwrap_or_default(), joules))
    }
}
