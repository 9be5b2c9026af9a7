//! Copies of the store: made while a manager runs, and put back while none does.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags};
use thiserror::Error;

use super::error::StoreError;
use super::holder::{HostIdentity, LeaseTiming};
use super::journal::Journal;
use super::lock::{StoreLock, beside};
use super::read::ReadLimit;
use super::schema;
use super::takeover::await_lease;

/// Why a store was not copied. Nothing has changed then.
#[derive(Debug, Error)]
pub enum BackupError {
    /// There is nothing to copy.
    #[error("store {} does not exist: give the state folder of a manager with --state, or run this as its user", .0.display())]
    NoStore(PathBuf),
    /// There is no such backup.
    #[error("there is not a file {}", .0.display())]
    NoBackup(PathBuf),
    /// The copy would replace a file.
    #[error("{} exists: give another name, or --force to replace it", .0.display())]
    Exists(PathBuf),
    /// Source and copy are the same file.
    #[error("{} is the store itself: give another file", .0.display())]
    Same(PathBuf),
    /// The file is damaged, or no database.
    #[error("{} is damaged or not a database, and was not used: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first problem.
        reason: String,
    },
    /// A path that SQLite does not take.
    #[error("{} is not UTF-8: give another path", .0.display())]
    Path(PathBuf),
    /// Any other error.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for BackupError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged { path, reason } => Self::Damaged { path, reason },
            other => Self::Store(other),
        }
    }
}

/// What a copy holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// Jobs.
    pub jobs: u64,
    /// Those that are not over.
    pub unfinished: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Copies a store to a private file, as it is at one moment. A manager may use the store meanwhile.
pub fn back_up(store: &Path, file: &Path, replace: bool) -> Result<Copied, BackupError> {
    if !store.exists() {
        return Err(BackupError::NoStore(store.to_owned()));
    }
    if is_same(store, file) {
        return Err(BackupError::Same(file.to_owned()));
    }
    if file.symlink_metadata().is_ok() && !replace {
        return Err(BackupError::Exists(file.to_owned()));
    }
    let copy = Copy::of(store, file)?;
    let copied = copy.content()?;
    copy.rename(file)?;
    Ok(copied)
}

/// What was restored, and where the replaced store is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The content of the store now.
    pub copied: Copied,
    /// The store of before; none if there was none.
    pub kept: Option<PathBuf>,
}

/// Replaces a store by a backup, which may be of an older version. Refused while a manager uses the store.
pub fn restore(file: &Path, store: &Path) -> Result<Restored, BackupError> {
    if !file.is_file() {
        return Err(BackupError::NoBackup(file.to_owned()));
    }
    if is_same(store, file) {
        return Err(BackupError::Same(file.to_owned()));
    }
    // Checked first: a bad file leaves not even an empty folder.
    check(file)?;
    schema::make_folder(store)?;
    let _lock = lock(store)?;
    let copy = Copy::of(file, store)?;
    let copied = copy.content()?;
    let kept = store.exists().then(|| keep(store)).transpose()?;
    // The log of another store would be read as the log of this one.
    for suffix in ["-wal", "-shm", "-journal"] {
        remove(&beside(store, suffix))?;
    }
    copy.rename(store)?;
    Ok(Restored { copied, kept })
}

/// Keeps managers of this host out, and waits until the lease of a manager on another host has run out.
fn lock(store: &Path) -> Result<StoreLock, BackupError> {
    let refused = |error| StoreError::file("lock", store)(error);
    let own = HostIdentity::of_this_host().map_err(refused)?;
    let journal = Journal::of(schema::folder_of(store)).map_err(refused)?;
    let lock = StoreLock::take(store, journal, &own.host)?;
    match await_lease(store, journal, &own, LeaseTiming::DEFAULT, |_| true) {
        Err(in_use @ StoreError::InUse { .. }) => Err(in_use.into()),
        // The store may be damaged, which is why it is replaced.
        _ => Ok(lock),
    }
}

/// Checks that a file is an undamaged store that this program can read.
fn check(file: &Path) -> Result<Source, BackupError> {
    let mut connection = schema::open_for_reading(file)?;
    let limit = ReadLimit::of(&mut connection).map_err(|error| StoreError::database(file, error))?;
    if schema::known_version(&connection, file)? == 0 {
        return Err(StoreError::Foreign { path: file.to_owned() }.into());
    }
    let failed = |error| StoreError::database(file, error);
    let read = limit.as_ref().and_then(ReadLimit::begin);
    let first: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(failed)?;
    drop(read);
    if first == "ok" { Ok(Source { connection, limit }) } else { Err(BackupError::Damaged { path: file.to_owned(), reason: first }) }
}

/// A checked store.
#[derive(Debug)]
struct Source {
    connection: Connection,
    /// A manager may write it meanwhile.
    limit: Option<ReadLimit>,
}

/// A complete copy beside its later place. It is removed unless it gets there.
#[derive(Debug)]
struct Copy(PathBuf);

impl Copy {
    fn of(source: &Path, place: &Path) -> Result<Self, BackupError> {
        let Source { connection, limit } = check(source)?;
        let path = beside(place, &format!(".partial-{}", std::process::id()));
        let name = path.to_str().ok_or_else(|| BackupError::Path(path.clone()))?;
        let refused = || StoreError::file("write", &path);
        // What a process of the same number left behind.
        remove(&path)?;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(refused())?;
        let copy = Self(path.clone());
        let read = limit.as_ref().and_then(ReadLimit::begin);
        connection.execute("VACUUM INTO ?1", [name]).map_err(|error| StoreError::database(source, error))?;
        drop(read);
        // The manager of the source does not use the copy.
        end_lease(&path).map_err(|error| StoreError::database(&path, error))?;
        // Root may restore the store of a user.
        let folder = fs::metadata(schema::folder_of(place)).map_err(refused())?;
        if rustix::process::geteuid().is_root() {
            fchown(&file, Some(folder.uid()), Some(folder.gid())).map_err(refused())?;
        }
        file.sync_all().map_err(refused())?;
        Ok(copy)
    }

    fn content(&self) -> Result<Copied, BackupError> {
        let Source { connection, .. } = check(&self.0)?;
        let count = |sql| connection.query_row(sql, [], |row| row.get::<_, u64>(0)).map_err(|error| StoreError::database(&self.0, error));
        let bytes = fs::metadata(&self.0).map_err(StoreError::file("read", &self.0))?.len();
        let unfinished = count("SELECT count(*) FROM jobs WHERE ended IS NULL")?;
        Ok(Copied { jobs: count("SELECT count(*) FROM jobs")?, unfinished, bytes })
    }

    fn rename(self, to: &Path) -> Result<(), BackupError> {
        fs::rename(&self.0, to).and_then(|()| schema::sync_folder(to)).map_err(StoreError::file("write", to))?;
        Ok(())
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Keeps a store under a name with the date. It stays in its place too until another one replaces it, so that there is always one.
fn keep(store: &Path) -> Result<PathBuf, BackupError> {
    // Usually this empties the log. A damaged store keeps its log.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let _ = Connection::open_with_flags(store, flags).and_then(|old| old.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)"));
    let date = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let numbered = (1_u32..).map(|number| if number == 1 { String::new() } else { format!("-{number}") });
    let mut names = numbered.map(|number| beside(store, &format!(".before-restore-{date}{number}")));
    let kept = names.find(|name| name.symlink_metadata().is_err()).unwrap_or_default();
    let refused = || StoreError::file("keep the old store as", &kept);
    // Not every file system has hard links.
    fs::hard_link(store, &kept).or_else(|_| fs::copy(store, &kept).map(drop)).map_err(refused())?;
    for suffix in ["-wal", "-journal"] {
        match fs::rename(beside(store, suffix), beside(&kept, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(refused()(error))?,
            _ => {}
        }
    }
    Ok(kept)
}

/// Removes the lease from a copy.
fn end_lease(copy: &Path) -> rusqlite::Result<()> {
    let connection = Connection::open_with_flags(copy, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    if connection.table_exists(None, "lease")? { connection.execute_batch("DELETE FROM lease") } else { Ok(()) }
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::file("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Whether both are one file, or would be.
fn is_same(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| -> Option<(PathBuf, OsString)> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Some((schema::folder_of(&path).canonicalize().ok()?, path.file_name()?.to_owned()))
    };
    let inode = |path: &Path| fs::metadata(path).ok().map(|data| (data.dev(), data.ino()));
    (inode(one).is_some() && inode(one) == inode(other)) || (place(one).is_some() && place(one) == place(other))
}
