//! Samples of devices per minute.

use std::ops::Range;

use carma_core::{DeviceId, MiB, Watts};
use rusqlite::params;

use super::Reader;
use crate::samples::MinuteMean;
use crate::store::columns::Named;
use crate::store::error::StoreError;
use crate::store::metrics::{self, COLUMNS};
use crate::units::UnixMinute;

impl Reader {
    /// The last stored minute of any device.
    pub fn last_minute(&self) -> Result<Option<UnixMinute>, StoreError> {
        self.first("SELECT minute FROM samples ORDER BY minute DESC LIMIT 1", [], |row| row.get(0))
    }

    /// The means of a device over these minutes, in order; minutes without samples are left out.
    pub fn samples(&self, device: DeviceId, minutes: Range<UnixMinute>) -> Result<Vec<MinuteMean>, StoreError> {
        let sql = format!(
            "SELECT minute, readings, memory_used, power, {} FROM samples WHERE device = ?1 AND minute >= ?2 AND minute < ?3 ORDER BY minute",
            *COLUMNS
        );
        self.rows(&sql, params![Named(device), minutes.start, minutes.end], |row| {
            Ok(MinuteMean {
                device,
                minute: row.get(0)?,
                readings: row.get(1)?,
                memory_used: MiB(row.get(2)?),
                power: row.get::<_, Option<f64>>(3)?.map(Watts),
                utilisation: metrics::read(row, 4)?,
            })
        })
    }
}
