//! The attempts on a device over time, and their memory.

use std::ops::Range;

use carma_core::{AttemptId, DeviceId, JobId, MiB};
use rusqlite::params;

use super::Reader;
use super::job::optional;
use crate::ending::Ending;
use crate::rows::GpuStay;
use crate::samples::MemoryStep;
use crate::store::columns::{Named, array_place};
use crate::store::error::StoreError;
use crate::units::UnixMillis;

/// A chart of a long period shows no more: of more attempts, the longest in the period.
const MOST: u32 = 1_000;
/// The index skips attempts that ended before the span, and has all that the longest ones are chosen by.
const STAYS: &str = "WITH longest AS (
        SELECT job, number FROM stays WHERE device = ?1 AND launched < ?3 AND (ended IS NULL OR ended > ?2)
        ORDER BY min(ifnull(ended, ?3), ?3) - max(launched, ?2) DESC LIMIT ?4
    )
    SELECT stays.job, stays.number, name, user, stays.launched, stays.ended, verdict, iif(stays.number = jobs.attempts, outcome, NULL), reserved, array, array_index
    FROM longest CROSS JOIN stays ON stays.job = longest.job AND stays.number = longest.number AND device = ?1 JOIN jobs ON jobs.id = stays.job
    JOIN attempts ON attempts.job = stays.job AND attempts.number = stays.number ORDER BY stays.launched, stays.job";
const STEPS: &str = "SELECT at, memory FROM memory_steps WHERE job = ?1 AND number = ?2 AND device = ?3 AND at < ?5
    AND at >= ifnull((SELECT max(at) FROM memory_steps WHERE job = ?1 AND number = ?2 AND device = ?3 AND at <= ?4), 0) ORDER BY at";

impl Reader {
    /// Attempts on a device within the span, by launch time; of more than 1,000, the longest. Their memory begins with the last step before the span.
    pub fn stays(&self, device: DeviceId, span: Range<UnixMillis>) -> Result<Vec<GpuStay>, StoreError> {
        self.in_one_state(|| {
            let mut stays = self.rows(STAYS, params![Named(device), span.start, span.end, MOST], |row| {
                let (verdict, outcome) = (optional(row, 6)?, optional(row, 7)?);
                Ok(GpuStay {
                    attempt: AttemptId { job: JobId(row.get(0)?), number: row.get(1)? },
                    name: row.get(2)?,
                    array: array_place(row, 9)?,
                    user: row.get(3)?,
                    launched: row.get(4)?,
                    ended: row.get(5)?,
                    ending: verdict.map(|verdict| Ending::public(verdict, outcome)),
                    reserved: MiB(row.get(8)?),
                    memory: Vec::new(),
                })
            })?;
            for stay in &mut stays {
                let of_stay = params![stay.attempt.job.0, stay.attempt.number, Named(device), span.start, span.end];
                stay.memory = self.rows(STEPS, of_stay, |row| Ok(MemoryStep { at: row.get(0)?, memory: MiB(row.get(1)?) }))?;
            }
            Ok(stays)
        })
    }
}
