//! Notifications of users, and the events since the last one.

use rusqlite::params;

use super::job::read_event;
use super::{Reader, number};
use crate::event::StoredEvent;
use crate::notification::Notification;
use crate::store::columns::Json;
use crate::store::error::StoreError;
use crate::store::schema::NOTIFIED_THROUGH;

/// A notification of a user, and its progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredNotification {
    /// The user.
    pub uid: u32,
    /// The notification.
    pub notification: Notification,
    /// The last event that was sent.
    pub sent_through: u64,
}

/// New events of jobs whose users have notifications.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NewEvents {
    /// Ends of jobs, requeues and idle GPUs, each with the job's user.
    pub events: Vec<(u32, StoredEvent)>,
    /// The last event that was read.
    pub through: u64,
}

impl Reader {
    /// The notifications of a user, in their order.
    pub fn notifications(&self, uid: u32) -> Result<Vec<Notification>, StoreError> {
        let all = self.stored_notifications("WHERE uid = ?1", params![uid])?;
        Ok(all.into_iter().map(|stored| stored.notification).collect())
    }

    /// The notifications of all users.
    pub fn all_notifications(&self) -> Result<Vec<StoredNotification>, StoreError> {
        self.stored_notifications("", [])
    }

    fn stored_notifications(&self, which: &str, values: impl rusqlite::Params) -> Result<Vec<StoredNotification>, StoreError> {
        self.rows(&format!("SELECT uid, channel, occasions, notified FROM notifications {which} ORDER BY uid, place"), values, |row| {
            let (Json(by), Json(on)) = (row.get(1)?, row.get(2)?);
            Ok(StoredNotification { uid: row.get(0)?, notification: Notification { on, by }, sent_through: row.get(3)? })
        })
    }

    /// The last event whose notifications are done.
    pub fn notified_through(&self) -> Result<u64, StoreError> {
        Ok(self.run(|connection| number(connection, NOTIFIED_THROUGH))?.unwrap_or(0))
    }

    /// Events after this one that may cause a notification, up to a limit.
    pub fn notable_events_after(&self, sequence: u64, most: u32) -> Result<NewEvents, StoreError> {
        // In the order of events: there are many more jobs.
        let sql = "SELECT events.sequence, at, job, kind, body, array, array_index, uid FROM events CROSS JOIN jobs ON jobs.id = events.job
            WHERE events.sequence > ?1 AND kind IN ('finished', 'requeued', 'idle', 'stall') AND uid IN (SELECT uid FROM notifications)
            ORDER BY events.sequence LIMIT ?2";
        self.in_one_state(|| {
            let events = self.rows(sql, params![sequence, most], |row| Ok((row.get(7)?, read_event(row)?)))?;
            let last = self.first("SELECT max(sequence) FROM events", [], |row| row.get::<_, Option<u64>>(0))?.flatten();
            let through = match events.last() {
                Some((_, event)) if events.len() >= most as usize => event.sequence,
                _ => last.unwrap_or(0).max(sequence),
            };
            Ok(NewEvents { events, through })
        })
    }
}
