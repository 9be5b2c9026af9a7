//! Sums over a period: whole quarters of an hour are summed already, so only what ended in the first and last quarter is read row by row.

use std::ops::Range;

use carma_core::{Seconds, UserId};
use rusqlite::{Params, Row, params_from_iter};

use super::Reader;
use crate::store::error::StoreError;

/// Milliseconds in a quarter of an hour.
pub(super) const QUARTER: u64 = 900_000;
/// How long attempts of each `length` at most were on a GPU, in milliseconds.
const LENGTHS: [u64; 5] = [3_600_000, 86_400_000, 691_200_000, 5_529_600_000, FOREVER];
/// SQLite has 63 bits; this is far enough from the last.
const FOREVER: u64 = 1 << 60;

/// A period, divided at quarters of an hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Period {
    /// Before the first whole quarter.
    pub(super) head: Range<u64>,
    /// The numbers of whole quarters.
    pub(super) quarters: Range<u64>,
    /// After the last whole quarter.
    pub(super) tail: Range<u64>,
}

impl Period {
    pub(super) fn new(since: u64, until: u64) -> Self {
        let until = until.min(FOREVER).max(since);
        let first = since.div_ceil(QUARTER).min(until / QUARTER + 1);
        let begin = (first * QUARTER).min(until);
        let end = (until / QUARTER * QUARTER).max(begin);
        Self { head: since..begin, quarters: first..(end / QUARTER).max(first), tail: end..until }
    }

    /// The same period without sums.
    pub(super) fn row_by_row(&self) -> Self {
        let end = self.head.start;
        Self { head: end..end, quarters: 0..0, tail: end..self.tail.end }
    }

    /// The values ?1 to ?7 of a query: the quarters, the rows before and after them, and the user.
    pub(super) fn values(&self, user: Option<UserId>) -> impl Params + use<> {
        let Self { head, quarters, tail } = self;
        let times = [quarters.start, quarters.end, head.start, head.end, tail.start, tail.end].map(Some);
        params_from_iter(times.into_iter().chain([user.map(|user| user.0.into())]))
    }
}

/// The attempts that were on GPUs at the time of this parameter and ended then or later.
fn present_at(time: u32) -> String {
    let of_length = LENGTHS.iter().enumerate().map(|(length, longest)| {
        format!(
            "SELECT job, launched, ended FROM stays
             WHERE length = {length} AND ended >= ?{time} AND ended < ?{time} + {longest} AND launched < ?{time}"
        )
    });
    of_length.collect::<Vec<_>>().join(" UNION ALL ")
}

impl Reader {
    /// Jobs that ended in the period. The rows are user, name, state, outcome and number of jobs.
    pub(super) fn ended_jobs(
        &self,
        period: &Period,
        user: Option<UserId>,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let row_by_row = |from: usize, to: usize| {
            format!(
                "SELECT uid, outcome, 1 FROM jobs WHERE ended >= ?{from} AND ended < ?{to} AND outcome IS NOT NULL AND (?7 IS NULL OR uid = ?7)"
            )
        };
        let sql = format!(
            "SELECT uid, {USER_NAME}, 'done', outcome, sum(jobs) FROM (
                SELECT uid, outcome, sum(jobs) AS jobs FROM ended_jobs
                WHERE (?7 IS NULL OR uid = ?7) AND quarter >= ?1 AND quarter < ?2 GROUP BY uid, outcome
                UNION ALL {} UNION ALL {}
             ) AS counted GROUP BY uid, outcome HAVING sum(jobs) > 0",
            row_by_row(3, 4),
            row_by_row(5, 6)
        );
        self.rows(&sql, period.values(user), read).map(drop)
    }

    /// The time on GPUs of each user in the period.
    pub(super) fn gpu_time(&self, period: &Period, user: Option<UserId>) -> Result<Vec<(UserId, Seconds)>, StoreError> {
        // The whole time of all that ended in the period, without what was before it; then what goes on after it.
        let sql = format!(
            "SELECT uid, sum(time) FROM (
                SELECT uid, sum(gpu_time) AS time FROM ended_attempts WHERE quarter >= ?1 AND quarter < ?2 GROUP BY uid
                UNION ALL SELECT uid, time FROM (
                    SELECT job, ended - launched AS time FROM stays WHERE length IN (0, 1, 2, 3, 4) AND ended >= ?3 AND ended < ?4
                    UNION ALL SELECT job, ended - launched FROM stays WHERE length IN (0, 1, 2, 3, 4) AND ended >= ?5 AND ended < ?6
                    UNION ALL SELECT job, launched - ?3 FROM ({}) WHERE ended < ?6
                    UNION ALL SELECT job, ?6 - max(launched, ?3) FROM ({})
                    UNION ALL SELECT job, ?6 - max(launched, ?3) FROM stays WHERE ended IS NULL AND launched < ?6
                ) CROSS JOIN jobs ON id = job
             ) WHERE ?7 IS NULL OR uid = ?7 GROUP BY uid",
            present_at(3),
            present_at(6)
        );
        self.rows(&sql, period.values(user), |row| {
            Ok((UserId(row.get(0)?), Seconds::new(row.get::<_, i64>(1)? as f64 / 1000.0).unwrap_or_default()))
        })
    }
}

/// The name of the user of rows that are called `counted`: that of the latest job.
pub(super) const USER_NAME: &str =
    "ifnull((SELECT user FROM jobs WHERE jobs.uid = counted.uid ORDER BY id DESC LIMIT 1), CAST(counted.uid AS TEXT))";
