//! Waits until the lease of a manager on another host has run out.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::error::StoreError;
use super::holder::{Holder, HostIdentity, LeaseTiming};
use super::journal::Journal;
use super::lease::LeaseRow;
use super::schema;

/// The longest pause between two readings of the row.
const PAUSE: Duration = Duration::from_millis(500);

/// Reads the lease until this manager may take it. Returns the row that it replaces. The caller has this host's lock.
///
/// Only this host's monotonic clock counts: the row is watched for as long as a lease lasts. Clocks of other hosts do not matter.
pub(super) fn await_lease(
    path: &Path,
    journal: Journal,
    own: &HostIdentity,
    timing: LeaseTiming,
    mut goes_on: impl FnMut(&Holder) -> bool,
) -> Result<Option<LeaseRow>, StoreError> {
    if journal.is_shared() && path.exists() {
        schema::leave_wal(path)?;
    }
    let first = look(path)?;
    let Some(row) = first.as_ref().filter(|row| !lock_decides(row, journal, own)) else { return Ok(first) };
    let since = Instant::now();
    loop {
        let elapsed = since.elapsed();
        let now = look(path)?;
        match now {
            // It stopped in order meanwhile.
            None => return Ok(None),
            Some(now) if now != *row => {
                let Holder { host, pid } = now.holder();
                return Err(StoreError::InUse { path: path.to_owned(), host: Some(host), pid: Some(pid) });
            }
            Some(_) if elapsed >= timing.expiry => return Ok(first),
            Some(_) => {}
        }
        if !goes_on(&row.holder()) {
            return Err(StoreError::Interrupted { path: path.to_owned() });
        }
        thread::sleep(PAUSE.min(timing.renewal / 2));
    }
}

/// Whether this host's lock, which is free, shows that the holder is gone.
fn lock_decides(row: &LeaseRow, journal: Journal, own: &HostIdentity) -> bool {
    let (same_host, same_boot) = (row.at.host == own.host, row.at.boot == own.boot);
    match journal {
        // The lock is named after the host. Two hosts may have one name, so the boot counts too.
        Journal::Rollback => same_host && same_boot,
        // All processes of a kernel see the same lock, whatever name their container has. A restarted host has no processes of before.
        Journal::Wal => same_host || same_boot,
    }
}

/// The row. The file is opened again for each reading, because some file systems show new content only then.
fn look(path: &Path) -> Result<Option<LeaseRow>, StoreError> {
    if !path.exists() {
        return Ok(None);
    }
    let connection = schema::open_for_reading(path)?;
    if schema::known_version(&connection, path)? < schema::FIRST_WITH_LEASE {
        return Ok(None);
    }
    LeaseRow::read(&connection).map_err(|error| StoreError::database(path, error))
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::super::lease::Lease;
    use super::*;

    fn host(host: &str, boot: &str) -> HostIdentity {
        HostIdentity { host: host.to_owned(), boot: boot.to_owned() }
    }

    #[test]
    fn the_lock_decides_between_processes_of_one_kernel() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("migrations/12.sql")).unwrap();
        Lease::take(&mut connection, None, &host("login", "1"), LeaseTiming::DEFAULT).unwrap().unwrap();
        let row = LeaseRow::read(&connection).unwrap().unwrap();
        let decides = |journal| {
            [("login", "1"), ("login", "2"), ("container", "1"), ("node", "2")]
                .map(|(name, boot)| lock_decides(&row, journal, &host(name, boot)))
        };
        assert_eq!(decides(Journal::Rollback), [true, false, false, false]);
        assert_eq!(decides(Journal::Wal), [true, true, true, false]);
    }
}
