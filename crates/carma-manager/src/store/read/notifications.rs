//! Who wants to be told of what, and what has happened since they were told.

use rusqlite::params;

use super::job::{StoredEvent, read_event};
use super::{Reader, number};
use crate::api::Notification;
use crate::store::apply::TOLD;
use crate::store::columns::Json;
use crate::store::error::StoreError;

/// A user's wish, and how far it is fulfilled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredNotification {
    /// Whose it is.
    pub uid: u32,
    /// The wish.
    pub notification: Notification,
    /// The last event that was told.
    pub told: u64,
}

/// What has happened to jobs of users who want to be told of something.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct News {
    /// Ends of jobs, their returns to the queue, and GPUs they hold and do not use, each with the job's user.
    pub events: Vec<(u32, StoredEvent)>,
    /// All up to this event was looked at.
    pub through: u64,
}

impl Reader {
    /// What a user wants to be told of, in their order.
    pub fn notifications(&self, uid: u32) -> Result<Vec<Notification>, StoreError> {
        let all = self.wishes("WHERE uid = ?1", params![uid])?;
        Ok(all.into_iter().map(|stored| stored.notification).collect())
    }

    /// What anybody wants to be told of.
    pub fn all_notifications(&self) -> Result<Vec<StoredNotification>, StoreError> {
        self.wishes("", [])
    }

    fn wishes(&self, which: &str, values: impl rusqlite::Params) -> Result<Vec<StoredNotification>, StoreError> {
        self.rows(&format!("SELECT uid, channel, occasions, told FROM notifications {which} ORDER BY uid, place"), values, |row| {
            let (Json(by), Json(on)) = (row.get(1)?, row.get(2)?);
            Ok(StoredNotification { uid: row.get(0)?, notification: Notification { on, by }, told: row.get(3)? })
        })
    }

    /// The last event of which nobody is to be told any more.
    pub fn told(&self) -> Result<u64, StoreError> {
        Ok(self.run(|connection| number(connection, TOLD))?.unwrap_or(0))
    }

    /// What followed an event, as far as somebody may want to be told of it; at most so many events.
    pub fn news_after(&self, sequence: u64, most: u32) -> Result<News, StoreError> {
        // In the order of the events and not of the jobs, of which there are many more.
        let sql = "SELECT events.sequence, at, job, kind, body, uid FROM events CROSS JOIN jobs ON jobs.id = events.job
            WHERE events.sequence > ?1 AND kind IN ('finished', 'requeued', 'idle') AND uid IN (SELECT uid FROM notifications)
            ORDER BY events.sequence LIMIT ?2";
        self.at_once(|| {
            let events = self.rows(sql, params![sequence, most], |row| Ok((row.get(5)?, read_event(row)?)))?;
            let last = self.first("SELECT max(sequence) FROM events", [], |row| row.get::<_, Option<u64>>(0))?.flatten();
            let through = match events.last() {
                Some((_, event)) if events.len() >= most as usize => event.sequence,
                _ => last.unwrap_or(0).max(sequence),
            };
            Ok(News { events, through })
        })
    }
}
