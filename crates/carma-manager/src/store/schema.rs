//! The database file: created, recognised, and migrated to the newest schema after a backup.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, TransactionBehavior, ffi};

use super::error::StoreError;
use super::journal::Journal;
use super::lock::beside;
use super::metrics::add_missing_columns;
use crate::places::create_private;
use crate::units::UnixMillis;

/// The steps to the newest schema; a file of version n has taken the first n. Released steps never change.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
    include_str!("migrations/5.sql"),
    include_str!("migrations/6.sql"),
    include_str!("migrations/7.sql"),
    include_str!("migrations/8.sql"),
    include_str!("migrations/9.sql"),
    include_str!("migrations/10.sql"),
    include_str!("migrations/11.sql"),
    include_str!("migrations/12.sql"),
    include_str!("migrations/13.sql"),
    include_str!("migrations/14.sql"),
    include_str!("migrations/15.sql"),
    include_str!("migrations/16.sql"),
    include_str!("migrations/17.sql"),
    include_str!("migrations/18.sql"),
    include_str!("migrations/19.sql"),
];
/// The newest version.
pub(super) const VERSION: u32 = MIGRATIONS.len() as u32;
/// The first version with a lease.
pub(super) const FIRST_WITH_LEASE: u32 = 12;
/// `CRMA`, in the header of every store.
const APPLICATION: i32 = 0x4352_4d41;
/// The number of the next job.
pub(super) const NEXT_JOB: &str = "next_job";
/// The number of the next server of an agent.
pub(super) const NEXT_SERVER: &str = "next_server";
/// The manager's own time in milliseconds.
pub(super) const CLOCK: &str = "clock";
/// The last event whose notifications are done.
pub(super) const NOTIFIED_THROUGH: &str = "notified";
/// Events that may be deleted. A job that is not over keeps its whole timeline.
pub(super) const NOT_NEEDED: &str = "(job IS NULL OR job NOT IN (SELECT id FROM jobs WHERE ended IS NULL))";

/// Creates the folder, readable by its owner only, unless it exists.
pub(super) fn make_folder(path: &Path) -> Result<(), StoreError> {
    let folder = folder_of(path);
    create_private(folder).map_err(StoreError::file("make the folder", folder))
}

/// Opens the file for writing; creates and migrates it as needed. The caller holds its lock.
pub(super) fn open_for_writing(path: &Path, journal: Journal) -> Result<Connection, StoreError> {
    let connection = migrate(path, journal, MIGRATIONS, UnixMillis::now())?;
    add_missing_columns(&connection).map_err(|error| StoreError::database(path, error))?;
    Ok(connection)
}

/// Converts a file with a write-ahead log, which was moved here from another file system.
pub(super) fn leave_wal(path: &Path) -> Result<(), StoreError> {
    let failed = |error| StoreError::database(path, error);
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(failed)?;
    connection.busy_timeout(Journal::Rollback.timeout()).map_err(failed)?;
    // An exclusive connection uses a write-ahead log without shared memory.
    connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE").map_err(failed)?;
    known_version(&connection, path)?;
    let mode = |sql| connection.query_row(sql, [], |row| row.get::<_, String>(0)).map_err(failed);
    if mode("PRAGMA journal_mode")? == "wal" {
        mode("PRAGMA journal_mode = TRUNCATE")?;
    }
    Ok(())
}

/// Opens the file for reading. With a write-ahead log, readers and the writer do not block each other.
pub(super) fn open_for_reading(path: &Path) -> Result<Connection, StoreError> {
    let open = || {
        let connection = open_readable(path)?;
        connection.set_prepared_statement_cache_capacity(64);
        // Enough for the rows of a hundred thousand jobs, so that listing them again needs no reads.
        connection.execute_batch("PRAGMA cache_size = -16384")?;
        Ok(connection)
    };
    open().map_err(|error| StoreError::database(path, error))
}

/// Opens the file so that it can be read. A manager that was killed in a commit may have left a rollback journal, which only a writer can use.
fn open_readable(path: &Path) -> rusqlite::Result<Connection> {
    let open = |flags| {
        let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        // The longer time: it is not known yet how the journal is kept.
        connection.busy_timeout(Journal::Rollback.timeout())?;
        let read = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
        read.map(|()| connection)
    };
    match open(OpenFlags::SQLITE_OPEN_READ_ONLY) {
        Err(rusqlite::Error::SqliteFailure(error, _)) if error.extended_code == ffi::SQLITE_READONLY_ROLLBACK => {
            drop(open(OpenFlags::SQLITE_OPEN_READ_WRITE)?);
            open(OpenFlags::SQLITE_OPEN_READ_ONLY)
        }
        opened => opened,
    }
}

/// The version of a store that this program can read; 0 for an empty file.
pub(super) fn known_version(connection: &Connection, path: &Path) -> Result<u32, StoreError> {
    version(connection, path, VERSION)
}

fn migrate(path: &Path, journal: Journal, steps: &[&str], now: UnixMillis) -> Result<Connection, StoreError> {
    create_file(path).map_err(StoreError::file("make", path))?;
    let failed = |error| StoreError::database(path, error);
    let mut connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(failed)?;
    connection.busy_timeout(journal.timeout()).map_err(failed)?;
    let version = version(&connection, path, steps.len() as u32)?;
    prepare(&connection, journal).map_err(failed)?;
    if connection.is_readonly(rusqlite::MAIN_DB).map_err(failed)? {
        return Err(StoreError::ReadOnly { path: path.to_owned() });
    }
    let missing = &steps[version as usize..];
    if !missing.is_empty() {
        if version > 0 {
            back_up(&connection, path, version, now)?;
        }
        upgrade(&mut connection, missing, steps.len()).map_err(failed)?;
    }
    Ok(connection)
}

/// Creates an empty file for its owner only; SQLite gives its other files the same permissions.
fn create_file(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => sync_folder(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// The version of a file, after checking that it is a store. Nothing is written before.
fn version(connection: &Connection, path: &Path, known: u32) -> Result<u32, StoreError> {
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(|error| StoreError::database(path, error));
    let (application, found) = (number("PRAGMA application_id")?, number("PRAGMA user_version")? as u32);
    let empty = number("SELECT count(*) FROM sqlite_schema")? == 0;
    match (application == i64::from(APPLICATION), found) {
        (true, found) if found > known => Err(StoreError::Newer { path: path.to_owned(), found, known }),
        (true, found) => Ok(found),
        (false, 0) if empty => Ok(0),
        _ => Err(StoreError::Foreign { path: path.to_owned() }),
    }
}

fn prepare(connection: &Connection, journal: Journal) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(64);
    connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
    connection.execute_batch(journal.statements())?;
    // FULL: an accepted job must survive a power cut, so the journal is on the disk before a commit returns.
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")
}

/// Takes all missing steps, or none.
fn upgrade(connection: &mut Connection, missing: &[&str], version: usize) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    missing.iter().try_for_each(|step| transaction.execute_batch(step))?;
    transaction.execute_batch(&format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {version};"))?;
    transaction.commit()
}

/// Copies the store to a file beside it, whole or not at all.
fn back_up(connection: &Connection, path: &Path, version: u32, now: UnixMillis) -> Result<PathBuf, StoreError> {
    let backup = beside(path, &format!(".v{version}-backup-{}", now.0 / 1000));
    let partial = beside(&backup, ".partial");
    let refused = || StoreError::file("write the backup", &backup);
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial).map_err(refused())?;
    connection.execute("VACUUM INTO ?1", [partial.to_string_lossy()]).map_err(|error| StoreError::database(path, error))?;
    File::open(&partial).and_then(|file| file.sync_all()).map_err(refused())?;
    fs::rename(&partial, &backup).and_then(|()| sync_folder(path)).map_err(refused())?;
    Ok(backup)
}

/// A new or renamed file survives a power cut only when its folder is on the disk too.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: [&str; 3] = [
        "CREATE TABLE jobs (id INTEGER)",
        "ALTER TABLE jobs ADD COLUMN name TEXT DEFAULT 'none'",
        "ALTER TABLE jobs RENAME COLUMN name TO title",
    ];
    const NOW: UnixMillis = UnixMillis(1_700_000_000_123);

    fn store_of_version_one() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("carma.db");
        let connection = migrate(&path, Journal::Wal, &STEPS[..1], NOW).unwrap();
        connection.execute("INSERT INTO jobs VALUES (7)", []).unwrap();
        (folder, path)
    }

    fn backups(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains("backup")).collect()
    }

    #[test]
    fn an_old_store_takes_every_step_it_lacks_and_leaves_a_backup() {
        let (folder, path) = store_of_version_one();
        let connection = migrate(&path, Journal::Wal, &STEPS, NOW).unwrap();
        let row = connection.query_row("SELECT id, title FROM jobs", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!(row, (7, "none".to_owned()));
        assert_eq!(backups(folder.path()), ["carma.db.v1-backup-1700000000"]);
        let backup = migrate(&folder.path().join("carma.db.v1-backup-1700000000"), Journal::Wal, &STEPS[..1], NOW).unwrap();
        assert_eq!(backup.query_row("SELECT id FROM jobs", [], |row| row.get::<_, u32>(0)).unwrap(), 7);
        drop(backup);
        drop(migrate(&path, Journal::Wal, &STEPS, NOW).unwrap());
        assert_eq!(backups(folder.path()).len(), 1, "a store that lacks nothing is not copied");
    }

    #[test]
    fn a_step_that_fails_leaves_the_store_as_it_was() {
        let (_folder, path) = store_of_version_one();
        assert!(migrate(&path, Journal::Wal, &[STEPS[0], STEPS[1], "nonsense"], NOW).is_err());
        let connection = migrate(&path, Journal::Wal, &STEPS[..1], NOW).unwrap();
        assert_eq!(connection.query_row("SELECT * FROM jobs", [], |row| Ok(row.as_ref().column_count())).unwrap(), 1);
    }

    #[test]
    fn a_newer_store_is_refused_with_a_message() {
        let (_folder, path) = store_of_version_one();
        drop(migrate(&path, Journal::Wal, &STEPS, NOW).unwrap());
        let refused = migrate(&path, Journal::Wal, &STEPS[..2], NOW).unwrap_err();
        assert!(matches!(refused, StoreError::Newer { found: 3, known: 2, .. }), "{refused}");
    }
}
