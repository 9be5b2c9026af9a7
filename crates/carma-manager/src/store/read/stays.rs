//! The attempts on a device over time, and their memory.

use std::ops::Range;

use carma_core::{AttemptId, DeviceId, JobId, MiB, Outcome, Verdict};
use rusqlite::params;

use super::Reader;
use super::history::array_place;
use crate::request::ArrayPlace;
use crate::samples::MemoryStep;
use crate::store::columns::{Json, Named};
use crate::store::error::StoreError;
use crate::units::UnixMillis;

/// An attempt's time on a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Stay {
    /// Which attempt.
    pub attempt: AttemptId,
    /// The name of its job.
    pub name: Option<String>,
    /// The place of its job in an array.
    pub array: Option<ArrayPlace>,
    /// The name of its user.
    pub user: String,
    /// When it was launched.
    pub launched: UnixMillis,
    /// When it ended; unset: it is running.
    pub ended: Option<UnixMillis>,
    /// How it ended.
    pub verdict: Option<Verdict>,
    /// How its job ended, for the last attempt.
    pub outcome: Option<Outcome>,
    /// Memory that was reserved for it.
    pub promised: MiB,
    /// Its memory: the last step before the span, and those in it.
    pub memory: Vec<MemoryStep>,
}

/// The index skips attempts that ended before the span.
const STAYS: &str = "SELECT stays.job, stays.number, name, user, stays.launched, stays.ended, verdict, iif(stays.number = jobs.attempts, outcome, NULL), promised, array, array_index
    FROM stays JOIN jobs ON jobs.id = stays.job JOIN attempts ON attempts.job = stays.job AND attempts.number = stays.number
    WHERE device = ?1 AND stays.launched < ?3 AND (stays.ended IS NULL OR stays.ended > ?2) ORDER BY stays.launched, stays.job";
const STEPS: &str = "SELECT at, memory FROM memory_steps WHERE job = ?1 AND number = ?2 AND device = ?3 AND at < ?5
    AND at >= ifnull((SELECT max(at) FROM memory_steps WHERE job = ?1 AND number = ?2 AND device = ?3 AND at <= ?4), 0) ORDER BY at";

impl Reader {
    /// Attempts on a device within the span, by launch time.
    pub fn stays(&self, device: DeviceId, span: Range<UnixMillis>) -> Result<Vec<Stay>, StoreError> {
        self.in_one_state(|| {
            let mut stays = self.rows(STAYS, params![Named(device), span.start, span.end], |row| {
                Ok(Stay {
                    attempt: AttemptId { job: JobId(row.get(0)?), number: row.get(1)? },
                    name: row.get(2)?,
                    array: array_place(row, 9)?,
                    user: row.get(3)?,
                    launched: row.get(4)?,
                    ended: row.get(5)?,
                    verdict: row.get::<_, Option<Json<_>>>(6)?.map(|Json(verdict)| verdict),
                    outcome: row.get::<_, Option<Json<_>>>(7)?.map(|Json(outcome)| outcome),
                    promised: MiB(row.get(8)?),
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
