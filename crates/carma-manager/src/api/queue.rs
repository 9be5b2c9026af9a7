//! The queue, page by page.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use carma_core::{ArrayId, DeviceId, JobId, MiB, Priority, Seconds, UserId};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::{IntoParams, ToSchema};

use super::PredictedTime;
use super::status::Counts;
use crate::phase::Phase;
use crate::request::ArrayPlace;
use crate::units::UnixMillis;

/// Maximum number of rows of one answer. Longer lists are read page by page, which bounds the manager's memory.
pub const MAX_ROWS: u32 = 1000;

/// Which part of the queue to return: an overview (`each`), or page after page of all of it (`limit` and `after`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct QueueQuery {
    /// Jobs of this user only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// Maximum number of running, waiting and held jobs each. Default, without `limit`: 100. An answer has at most 1,000 rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each: Option<u32>,
    /// Maximum number of rows, up to 1,000. `next` in the answer is the start of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// `next` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<String>)]
    pub after: Option<QueueCursor>,
}

/// Unfinished jobs: running jobs, jobs that wait for GPUs in queue order, jobs that wait for something else, and held jobs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Queue {
    /// The number of all jobs, listed or not.
    pub counts: Counts,
    /// The listed jobs. Only the first page says why jobs wait.
    pub jobs: Vec<QueueRow>,
    /// Arrays with unfinished jobs, listed or not.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arrays: BTreeMap<ArrayId, Counts>,
    /// The start of the next page; unset: this is the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub next: Option<QueueCursor>,
}

/// An unfinished job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueRow {
    /// Its number.
    pub id: JobId,
    /// Its name.
    pub name: Option<String>,
    /// The name of its user.
    pub user: String,
    /// The number of its user.
    pub uid: u32,
    /// The state of the job.
    pub state: Phase,
    /// Time in this state.
    pub for_seconds: Seconds,
    /// When it was submitted.
    pub submitted: UnixMillis,
    /// Higher goes first.
    pub priority: Priority,
    /// Number of GPUs requested.
    pub gpus: u32,
    /// Attempts so far.
    pub attempts: u32,
    /// Its place in an array.
    pub array: Option<ArrayPlace>,
    /// Its GPUs.
    pub devices: Vec<DeviceId>,
    /// Memory reserved on each GPU, or the expected need.
    pub memory: Option<MiB>,
    /// Memory that it uses on its fullest GPU, as measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<MiB>,
    /// Time since its submission.
    #[serde(default)]
    pub total_seconds: Seconds,
    /// Progress from 0 to 1, as the job reports or prints it.
    pub progress: Option<f64>,
    /// When a waiting job is predicted to start; unset without a basis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<PredictedTime>,
    /// When it is predicted to end; unset without a basis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<PredictedTime>,
    /// Why it waits, or that it holds its GPUs without using them, in a few words.
    pub reason: Option<String>,
}

/// The parts of the queue, in the order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueuePart {
    /// Running jobs.
    Running,
    /// Jobs that wait for GPUs.
    Queued,
    /// Jobs that wait for something else: a dependency, a quota, a time, the host.
    Blocked,
    /// Held jobs.
    Held,
}

impl QueuePart {
    const ALL: [(Self, &'static str); 4] =
        [(Self::Running, "running"), (Self::Queued, "queued"), (Self::Blocked, "blocked"), (Self::Held, "held")];
}

/// The last row of a page. Clients send it back unchanged.
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
    /// The position in the queue, for jobs that wait for GPUs.
    pub place: u64,
    /// The job.
    pub job: JobId,
}

/// A text that is no cursor.
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
        let mut parts = text.split('-');
        let [Some(part), Some(place), Some(job), None] = [parts.next(), parts.next(), parts.next(), parts.next()] else {
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
