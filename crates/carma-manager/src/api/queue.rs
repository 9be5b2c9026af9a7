//! The queue, page by page.

use std::fmt;
use std::str::FromStr;

use carma_core::{JobId, UserId};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::{IntoParams, ToSchema};

use super::job::QueueRow;
use super::status::Counts;

/// The most rows of one answer: longer lists are read page by page, so that nobody fills the manager's memory.
pub const MOST_ROWS: u32 = 1000;

/// Which part of the queue is wanted: an overview (`each`), or page after page of all of it (`limit` and `after`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct QueueQuery {
    /// Jobs of this user only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<u32>)]
    pub user: Option<UserId>,
    /// At most so many running, waiting and held jobs each; 100 where neither this nor `limit` is given. An answer has 1,000 rows at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each: Option<u32>,
    /// At most so many rows, and 1,000; `next` in the answer says where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// `next` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<String>)]
    pub after: Option<QueueCursor>,
}

/// Jobs that are not over: those that run, those that wait in the order in which they are considered, those that wait for something else than GPUs,
/// and those that are held.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Queue {
    /// All there are, listed or not.
    pub counts: Counts,
    /// Those that are listed. Only the first page has the reasons why jobs wait.
    pub jobs: Vec<QueueRow>,
    /// Where the next page begins; unset: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub next: Option<QueueCursor>,
}

/// The parts of the queue, in the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueuePart {
    /// Jobs that run.
    Running,
    /// Jobs that wait for GPUs.
    Queued,
    /// Jobs that wait for something else: a dependency, a quota, a time, the host.
    Blocked,
    /// Jobs that are held.
    Held,
}

impl QueuePart {
    const ALL: [(Self, &'static str); 4] =
        [(Self::Running, "running"), (Self::Queued, "queued"), (Self::Blocked, "blocked"), (Self::Held, "held")];
}

/// The last row of a page. Clients hand it back as they got it.
///
/// ```
/// use carma_manager::api::QueueCursor;
/// let cursor: QueueCursor = "queued-1000-4711".parse()?;
/// assert_eq!(cursor.to_string(), "queued-1000-4711");
/// assert!("4711".parse::<QueueCursor>().is_err());
/// # Ok::<(), carma_manager::api::NotACursor>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct QueueCursor {
    /// The part it is in.
    pub part: QueuePart,
    /// How many of that part are before the next page, where the part has an order of its own.
    pub place: u64,
    /// The job.
    pub job: JobId,
}

/// Not a cursor.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("after: give `next` of the page before, as in queued-1000-4711")]
pub struct NotACursor;

impl QueueCursor {
    /// Whether a job of a part whose jobs are listed by number comes after this row.
    pub fn is_before(&self, part: QueuePart, job: JobId) -> bool {
        (self.part, self.job) < (part, job)
    }
}

impl fmt::Display for QueueCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = QueuePart::ALL.iter().find(|(part, _)| *part == self.part).map_or("", |(_, name)| name);
        write!(f, "{part}-{}-{}", self.place, self.job.0)
    }
}

impl FromStr for QueueCursor {
    type Err = NotACursor;

    fn from_str(text: &str) -> Result<Self, NotACursor> {
        let mut words = text.split('-');
        let [Some(part), Some(place), Some(job), None] = [words.next(), words.next(), words.next(), words.next()] else {
            return Err(NotACursor);
        };
        let (part, _) = QueuePart::ALL.into_iter().find(|(_, name)| *name == part).ok_or(NotACursor)?;
        let number = |text: &str| text.parse::<u64>().map_err(|_| NotACursor);
        Ok(Self { part, place: number(place)?, job: JobId(number(job)?) })
    }
}

impl TryFrom<String> for QueueCursor {
    type Error = NotACursor;
    fn try_from(text: String) -> Result<Self, NotACursor> {
        text.parse()
    }
}

impl From<QueueCursor> for String {
    fn from(cursor: QueueCursor) -> Self {
        cursor.to_string()
    }
}
