//! What was counted for good.

use super::Reader;
use crate::metrics::Tallies;
use crate::store::columns::Json;
use crate::store::error::StoreError;

impl Reader {
    /// All that was counted. What only another version knows is passed over.
    pub fn tallies(&self) -> Result<Tallies, StoreError> {
        let rows = self.rows("SELECT tally, value FROM tallies", [], |row| Ok((row.get(0).ok().map(|Json(tally)| tally), row.get(1)?)))?;
        Ok(Tallies(rows.into_iter().filter_map(|(tally, value)| Some((tally?, value))).collect()))
    }
}
