//! What devices did, minute by minute.

use std::ops::Range;

use carma_core::{DeviceId, MiB, Watts};
use rusqlite::params;

use super::Reader;
use crate::store::change::{MinuteMean, utilisation_of};
use crate::store::columns::Named;
use crate::store::error::StoreError;
use crate::store::units::UnixMinute;

impl Reader {
    /// The last minute that is kept of any device.
    pub fn last_minute(&self) -> Result<Option<UnixMinute>, StoreError> {
        self.first("SELECT minute FROM samples ORDER BY minute DESC LIMIT 1", [], |row| row.get(0))
    }

    /// The means of a device over these minutes, in order; minutes in which nobody looked are left out.
    pub fn samples(&self, device: DeviceId, minutes: Range<UnixMinute>) -> Result<Vec<MinuteMean>, StoreError> {
        let sql = "SELECT minute, readings, memory_used, smact, smocc, drama, utilisation, power FROM samples
            WHERE device = ?1 AND minute >= ?2 AND minute < ?3 ORDER BY minute";
        self.rows(sql, params![Named(device), minutes.start, minutes.end], |row| {
            Ok(MinuteMean {
                device,
                minute: row.get(0)?,
                readings: row.get(1)?,
                memory_used: MiB(row.get(2)?),
                utilisation: utilisation_of([row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?]),
                power: row.get::<_, Option<f64>>(7)?.map(Watts),
            })
        })
    }
}
