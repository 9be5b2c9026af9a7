//! The lease: a row that names the one manager that may write.
//!
//! A lock ends at the host on many network file systems, or outlives a dead host on others. So each commit checks in its own transaction that the row is still
//! this manager's. A manager that was disconnected for too long changes nothing.

use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, params};

use super::error::ApplyError;
use super::holder::{Holder, HostIdentity, LeaseTiming};
use crate::token;

/// The row. Any renewal changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LeaseRow {
    nonce: String,
    pub(super) at: HostIdentity,
    pid: u32,
    renewals: u64,
}

impl LeaseRow {
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let mut query = connection.prepare_cached("SELECT nonce, host, boot, pid, renewals FROM lease")?;
        let read = query.query_row([], |row| {
            let at = HostIdentity { host: row.get(1)?, boot: row.get(2)? };
            Ok(Self { nonce: row.get(0)?, at, pid: row.get(3)?, renewals: row.get(4)? })
        });
        read.optional()
    }

    pub(super) fn holder(&self) -> Holder {
        Holder { host: self.at.host.clone(), pid: self.pid }
    }
}

/// The lease of this manager.
#[derive(Debug)]
pub(super) struct Lease {
    nonce: String,
    timing: LeaseTiming,
    renewed: Instant,
    /// The last try that failed.
    failed: Option<Instant>,
}

impl Lease {
    /// Takes the lease, if the row has not changed.
    pub(super) fn take(
        connection: &mut Connection,
        seen: Option<&LeaseRow>,
        own: &HostIdentity,
        timing: LeaseTiming,
    ) -> rusqlite::Result<Option<Self>> {
        let nonce = token::fresh().map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        if LeaseRow::read(&transaction)?.as_ref() != seen {
            return Ok(None);
        }
        let sql = "REPLACE INTO lease (one, nonce, host, boot, pid, renewals) VALUES (1, ?1, ?2, ?3, ?4, 0)";
        transaction.execute(sql, params![nonce, own.host, own.boot, std::process::id()])?;
        transaction.commit()?;
        Ok(Some(Self { nonce, timing, renewed: Instant::now(), failed: None }))
    }

    /// Checks within a transaction that the lease is still this manager's, and renews it when that is due.
    pub(super) fn check(&self, connection: &Connection) -> Result<(), ApplyError> {
        let sql = if self.is_due() {
            "UPDATE lease SET renewals = renewals + 1 WHERE nonce = ?1 RETURNING 1"
        } else {
            "SELECT 1 FROM lease WHERE nonce = ?1"
        };
        // The row is read to the end: an update counts only then.
        let found = connection.prepare_cached(sql)?.query_map(params![self.nonce], |_| Ok(()))?.count();
        if found == 1 { Ok(()) } else { Err(ApplyError::TakenOver(LeaseRow::read(connection)?.map(|row| row.holder()))) }
    }

    /// Whether it has to be renewed.
    pub(super) fn is_due(&self) -> bool {
        self.renewed.elapsed() >= self.timing.renewal
    }

    /// The renewal is on the disk.
    pub(super) fn renewed(&mut self) {
        self.renewed = Instant::now();
    }

    /// The renewal failed, as on a full disk.
    pub(super) fn failed(&mut self) {
        self.failed = Some(Instant::now());
    }

    /// The time until the next try to renew it.
    pub(super) fn until_due(&self) -> Duration {
        let retry = self.failed.map_or(Duration::ZERO, |failed| (self.timing.renewal / 5).saturating_sub(failed.elapsed()));
        self.timing.renewal.saturating_sub(self.renewed.elapsed()).max(retry)
    }

    /// The time without a renewal after which another host may take over.
    pub(super) const fn expiry(&self) -> Duration {
        self.timing.expiry
    }

    /// Gives it back, so that the next manager starts at once on any host.
    pub(super) fn release(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute("DELETE FROM lease WHERE nonce = ?1", params![self.nonce]).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_renewal_is_tried_again_after_a_pause() {
        let timing = LeaseTiming { renewal: Duration::from_secs(60), expiry: Duration::from_secs(600) };
        let long_ago = Instant::now().checked_sub(Duration::from_secs(90)).unwrap();
        let mut lease = Lease { nonce: String::new(), timing, renewed: long_ago, failed: None };
        assert_eq!((lease.is_due(), lease.until_due()), (true, Duration::ZERO));
        lease.failed();
        assert!(lease.is_due() && lease.until_due() > Duration::from_secs(10), "{:?}", lease.until_due());
    }
}
