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

/// The index skips attempts that ended before the span.
const STAYS: &str = "SELECT stays.job, stays.number, name, user, stays.launched, stays.ended, verdict, iif(stays.number = jobs.attempts, outcome, NULL), reserved, array, array_index
    FROM stays JOIN jobs ON jobs.id = stays.job JOIN attempts ON attempts.job = stays.job AND attempts.number = stays.number
    WHERE device = ?1 AND stays.launched < ?3 AND (stays.ended IS NULL OR stays.ended > ?2) ORDER BY stays.launched, stays.job";
const STEPS: &str = "SELECT at, memory FROM memory_steps WHERE job = ?1 AND number = ?2 AND device = ?3 AND at < ?5
    AND at >= ifnull((SELECT max(at) FROM memory_steps WHERE job = ?1 AND number = ?2 AND device = ?3 AND at <= ?4), 0) ORDER BY at";

impl Reader {
    /// Attempts on a device within the span, by launch time. Their memory begins with the last step before the span.
    pub fn stays(&self, device: DeviceId, span: Range<UnixMillis>) -> Result<Vec<GpuStay>, StoreError> {
        self.in_one_state(|| {
            let mut stays = self.rows(STAYS, params![Named(device), span.start, span.end], |row| {
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
