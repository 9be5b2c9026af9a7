//! Sums of the energy of finished attempts.

use carma_core::{JobId, UserId};
use rusqlite::params_from_iter;

use super::Reader;
use super::history::{Conditions, Span};
use crate::rows::{EnergyKind, EnergyOf, EnergySum};
use crate::store::columns::array_place;
use crate::store::error::StoreError;

impl Reader {
    /// Sums of the energy of attempts that ended within the span, of all users or of one. Days are those of a time zone this many minutes ahead of UTC.
    pub fn energy(&self, by: EnergyKind, ahead: i32, user: Option<UserId>, ended: Span) -> Result<Vec<EnergySum>, StoreError> {
        let (key, called) = match by {
            EnergyKind::Job => ("id".to_owned(), "name, array, array_index"),
            EnergyKind::User => ("uid".to_owned(), "NULL, NULL, NULL"),
            EnergyKind::Day => (format!("(attempts.ended + {ahead} * 60000) / 86400000"), "NULL, NULL, NULL"),
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
                EnergyKind::Job => EnergyOf::Job(JobId(row.get(0)?)),
                EnergyKind::User => EnergyOf::User { uid: UserId(row.get(0)?), name: row.get(1)? },
                EnergyKind::Day => EnergyOf::Day(row.get(0)?),
            };
            Ok(EnergySum { of, name: row.get(4)?, array: array_place(row, 5)?, energy: row.get(2)?, attempts: row.get(3)? })
        })
    }
}
