//! Sums of the energy of finished attempts.

use carma_core::{JobId, UserId};
use rusqlite::params_from_iter;

use super::Reader;
use super::history::{Conditions, Span};
use super::periods::{Period, QUARTER, USER_NAME};
use crate::rows::{EnergyKind, EnergyOf, EnergySum};
use crate::store::columns::array_place;
use crate::store::error::StoreError;

impl Reader {
    /// Sums of the energy of attempts that ended within the span, of all users or of one. Days are those of a time zone this many minutes ahead of UTC.
    pub fn energy(&self, by: EnergyKind, ahead: i32, user: Option<UserId>, ended: Span) -> Result<Vec<EnergySum>, StoreError> {
        let key = match by {
            EnergyKind::Job => return self.energy_of_jobs(user, ended),
            EnergyKind::User => "uid".to_owned(),
            EnergyKind::Day => format!("(ended + {ahead} * 60000) / 86400000"),
        };
        let period = Period::new(ended.since.unwrap_or_default().0, ended.until.map_or(u64::MAX, |until| until.0));
        // Days of some time zones begin within a quarter of an hour.
        let period = if ahead % 15 == 0 { period } else { period.row_by_row() };
        let row_by_row = |from: usize| {
            format!(
                "SELECT {key}, user, joules, 1 FROM (SELECT uid, user, attempts.ended, joules FROM attempts CROSS JOIN jobs ON id = job
                 WHERE joules IS NOT NULL AND attempts.ended >= ?{from} AND attempts.ended < ?{} AND (?7 IS NULL OR uid = ?7))",
                from + 1
            )
        };
        let sql = format!(
            "SELECT key, max(user), sum(joules), sum(attempts) FROM (
                SELECT {key} AS key, {USER_NAME} AS user, sum(joules) AS joules, sum(attempts) AS attempts
                FROM (SELECT uid, quarter * {QUARTER} AS ended, joules, attempts FROM ended_attempts
                    WHERE (?7 IS NULL OR uid = ?7) AND quarter >= ?1 AND quarter < ?2) AS counted GROUP BY 1
                UNION ALL {} UNION ALL {}
             ) GROUP BY 1 HAVING sum(attempts) > 0 ORDER BY 1",
            row_by_row(3),
            row_by_row(5)
        );
        self.rows(&sql, period.values(user), |row| {
            let of = match by {
                EnergyKind::Day => EnergyOf::Day(row.get(0)?),
                _ => EnergyOf::User { uid: UserId(row.get(0)?), name: row.get(1)? },
            };
            Ok(EnergySum { of, name: None, array: None, energy: row.get(2)?, attempts: row.get(3)? })
        })
    }

    fn energy_of_jobs(&self, user: Option<UserId>, ended: Span) -> Result<Vec<EnergySum>, StoreError> {
        let Conditions { sql, values } = Conditions::new()
            .and("uid = ?", user.map(|user| user.0))
            .and("attempts.ended >= ?", ended.since)
            .and("attempts.ended < ?", ended.until);
        // A cross join keeps its order: the index of attempts is small and covers the query.
        let sql = format!(
            "SELECT id, sum(joules), count(joules), name, array, array_index FROM attempts CROSS JOIN jobs ON id = job
             WHERE joules IS NOT NULL AND {sql} GROUP BY 1 ORDER BY 1"
        );
        self.rows(&sql, params_from_iter(values), |row| {
            let of = EnergyOf::Job(JobId(row.get(0)?));
            Ok(EnergySum { of, name: row.get(3)?, array: array_place(row, 4)?, energy: row.get(1)?, attempts: row.get(2)? })
        })
    }
}
