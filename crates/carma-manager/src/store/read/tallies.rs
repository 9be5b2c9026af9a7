//! Counters.

use super::Reader;
use crate::store::columns::Json;
use crate::store::error::StoreError;
use crate::tally::Tallies;

impl Reader {
    /// All counters. Those of other versions are ignored.
    pub fn tallies(&self) -> Result<Tallies, StoreError> {
        let rows = self.rows("SELECT tally, value FROM tallies", [], |row| Ok((row.get(0).ok().map(|Json(tally)| tally), row.get(1)?)))?;
        Ok(Tallies(rows.into_iter().filter_map(|(tally, value)| Some((tally?, value))).collect()))
    }
}
