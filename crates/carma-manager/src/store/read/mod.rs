//! Readers: each has its own connection, sees one state of the store at a time, and blocks nothing for long.

mod arrays;
mod counts;
mod energy;
mod history;
mod job;
mod limit;
mod load;
mod logs;
mod notifications;
mod periods;
mod samples;
mod search;
mod stays;
mod tallies;

pub use history::{JobFilter, OwnedJob, Span};
pub use job::{JobHistory, JobReasons, StoredAttempt};
pub(super) use limit::ReadLimit;
pub use load::{JobMeta, Loaded, UnfinishedJob};
pub use notifications::{NewEvents, StoredNotification};

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use super::error::StoreError;
use super::schema;

/// A reader of the store.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
    limit: Option<ReadLimit>,
    path: PathBuf,
}

impl Reader {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let mut connection = schema::open_for_reading(path)?;
        let limit = ReadLimit::of(&mut connection).map_err(|error| StoreError::database(path, error))?;
        Ok(Self { connection, limit, path: path.to_owned() })
    }

    /// Opens a store without a manager; none if the store has to be migrated first.
    pub fn of_this_version(path: &Path) -> Result<Option<Self>, StoreError> {
        let reader = Self::open(path)?;
        Ok((schema::known_version(&reader.connection, path)? == schema::VERSION).then_some(reader))
    }

    /// Checks the whole file for damage, which takes a while. One line per problem.
    pub fn damage(&self) -> Result<Vec<String>, StoreError> {
        match self.rows("PRAGMA quick_check(10)", [], |row| row.get::<_, String>(0)) {
            Ok(lines) => Ok(lines.into_iter().filter(|line| line != "ok").collect()),
            // Too damaged to be checked.
            Err(StoreError::Damaged { reason, .. }) => Ok(vec![reason]),
            Err(error) => Err(error),
        }
    }

    /// All rows of a query, each read by `read`.
    pub(super) fn rows<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.run(|connection| connection.prepare_cached(sql)?.query_map(values, read)?.collect())
    }

    /// The first row of a query, if it has one.
    pub(super) fn first<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        self.run(|connection| connection.prepare_cached(sql)?.query_row(values, read).optional())
    }

    fn run<'a, T>(&'a self, read: impl FnOnce(&'a Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let _read = self.limit.as_ref().and_then(ReadLimit::begin);
        read(&self.connection).map_err(|error| StoreError::database(&self.path, error))
    }

    /// Several queries on one state, whatever is written meanwhile.
    fn in_one_state<T>(&self, read: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let _read = self.limit.as_ref().and_then(ReadLimit::begin);
        // Dropping it rolls back, which is right for a reader.
        let _transaction = self.run(Connection::unchecked_transaction)?;
        read()
    }
}

/// One of the numbers that only grow.
pub(super) fn number(connection: &Connection, name: &str) -> rusqlite::Result<Option<u64>> {
    connection.prepare_cached("SELECT value FROM numbers WHERE name = ?1")?.query_row(params![name], |row| row.get(0)).optional()
}
