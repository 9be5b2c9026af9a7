//! Jobs counted by state: of arrays, and of users with their time on GPUs.

use std::collections::BTreeMap;

use carma_core::{ArrayId, Outcome, Seconds, UserId};
use rusqlite::{Row, params, params_from_iter};

use super::Reader;
use super::history::Span;
use super::job::optional;
use super::periods::{Period, USER_NAME};
use crate::ending::EndingClass;
use crate::rows::{ArraySummary, EnergyKind, EnergyOf, JobCounts, UserSummary};
use crate::store::columns::Named;
use crate::store::error::StoreError;
use crate::units::{Joules, UnixMillis};

/// Adds a row that ends with phase, outcome and number of jobs.
fn count(counts: &mut JobCounts, row: &Row<'_>, column: usize) -> rusqlite::Result<()> {
    let Named(phase) = row.get(column)?;
    let outcome: Option<Outcome> = optional(row, column + 1)?;
    counts.add(phase, outcome.as_ref().map(EndingClass::of), row.get(column + 2)?);
    Ok(())
}

impl Reader {
    /// These arrays, with the states of their jobs.
    pub fn arrays(&self, arrays: &[ArrayId]) -> Result<Vec<ArraySummary>, StoreError> {
        let marks = vec!["?"; arrays.len()].join(", ");
        let sql = format!(
            "SELECT counted.array, name, uid, user, submitted, counted.phase, counted.outcome, jobs FROM
             (SELECT array, phase, outcome, count(*) AS jobs, min(id) AS first FROM jobs WHERE array IN ({marks}) GROUP BY array, phase, outcome)
             AS counted JOIN jobs ON id = first ORDER BY counted.array"
        );
        let mut found: BTreeMap<ArrayId, ArraySummary> = BTreeMap::new();
        self.rows(&sql, params_from_iter(arrays.iter().map(|array| array.0)), |row| {
            let array = ArrayId(row.get(0)?);
            let summary = ArraySummary {
                array,
                name: row.get(1)?,
                user: UserId(row.get(2)?),
                user_name: row.get(3)?,
                submitted: row.get(4)?,
                jobs: JobCounts::default(),
            };
            count(&mut found.entry(array).or_insert(summary).jobs, row, 5)
        })?;
        Ok(found.into_values().collect())
    }

    /// Users with jobs in the span, or one of them. `now` ends the time on GPUs of running attempts.
    pub fn users(&self, user: Option<UserId>, span: Span, now: UnixMillis) -> Result<Vec<UserSummary>, StoreError> {
        let (since, until) = (span.since.unwrap_or_default().0, span.until.unwrap_or(now).min(now).0);
        self.in_one_state(|| {
            let mut found: BTreeMap<UserId, UserSummary> = BTreeMap::new();
            let mut add = |row: &Row<'_>| {
                let user = UserId(row.get(0)?);
                let name = row.get(1)?;
                let empty = UserSummary { user, name, jobs: JobCounts::default(), gpu_time: Seconds::ZERO, energy: Joules::default() };
                count(&mut found.entry(user).or_insert(empty).jobs, row, 2)
            };
            let unfinished = format!(
                "SELECT uid, {USER_NAME}, phase, NULL, count(*) FROM jobs AS counted
                 WHERE (?1 IS NULL OR uid = ?1) AND ended IS NULL GROUP BY uid, phase"
            );
            self.rows(&unfinished, params![user.map(|user| user.0)], &mut add)?;
            self.ended_jobs(&Period::new(since, until + 1), user, &mut add)?;
            for (user, time) in self.gpu_time(&Period::new(since, until), user)? {
                if let Some(summary) = found.get_mut(&user) {
                    summary.gpu_time = time;
                }
            }
            for sum in self.energy(EnergyKind::User, 0, user, span)? {
                if let EnergyOf::User { uid, .. } = sum.of
                    && let Some(summary) = found.get_mut(&uid)
                {
                    summary.energy = sum.energy;
                }
            }
            Ok(found.into_values().collect())
        })
    }
}
