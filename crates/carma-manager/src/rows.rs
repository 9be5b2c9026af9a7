//! Rows that the store reads and the API sends as they are.

use carma_core::{AttemptId, JobId, JobLabel, MiB, Outcome, Priority, Seconds, UserId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ending::Ending;
use crate::phase::Phase;
use crate::request::ArrayPlace;
use crate::samples::MemoryStep;
use crate::units::{Joules, UnixMillis};

/// A job in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobSummary {
    /// The job.
    pub id: JobId,
    /// Its name.
    pub name: Option<String>,
    /// Its user.
    pub user: UserId,
    /// The user's name.
    pub user_name: String,
    /// Its state.
    pub phase: Phase,
    /// Since when it is in that state.
    pub since: UnixMillis,
    /// Higher goes first.
    pub priority: Priority,
    /// Number of GPUs requested.
    pub gpus: u32,
    /// Attempts so far.
    pub attempts: u32,
    /// Its place in an array.
    pub array: Option<ArrayPlace>,
    /// When it was submitted.
    pub submitted: UnixMillis,
    /// When it ended.
    pub ended: Option<UnixMillis>,
    /// How it ended, for programs.
    pub outcome: Option<Outcome>,
    /// How it ended, for people.
    pub ending: Option<Ending>,
    /// How long its attempts ran that are over; only in the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran: Option<Seconds>,
    /// Peak memory on a GPU, of all attempts that are over; only in the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<MiB>,
    /// Energy of all attempts that are over; only in the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<Joules>,
}

impl JobSummary {
    /// Its name for users.
    pub fn label(&self) -> JobLabel {
        label(self.id, self.array)
    }
}

/// The name of a job for users.
pub fn label(job: JobId, array: Option<ArrayPlace>) -> JobLabel {
    JobLabel { job, member: array.map(|place| (place.array, place.index)) }
}

/// An attempt's time on a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GpuStay {
    /// The attempt.
    pub attempt: AttemptId,
    /// The name of its job.
    pub name: Option<String>,
    /// The place of its job in an array.
    pub array: Option<ArrayPlace>,
    /// The name of its user.
    pub user: String,
    /// When it was launched.
    pub launched: UnixMillis,
    /// When it ended; unset: it is running.
    pub ended: Option<UnixMillis>,
    /// How it ended.
    pub ending: Option<Ending>,
    /// Memory reserved for it.
    pub promised: MiB,
    /// Its memory over time: from each of these times on.
    pub memory: Vec<MemoryStep>,
}

/// What energy is summed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum EnergyKind {
    /// One sum per job.
    Job,
    /// One sum per user.
    User,
    /// One sum per day on which attempts ended.
    Day,
}

/// The job, user or day of a sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnergyOf {
    /// A job.
    Job(JobId),
    /// All jobs of a user.
    User {
        /// The user's number.
        uid: UserId,
        /// The user's name.
        name: String,
    },
    /// A day, counted from 1970-01-01.
    Day(u32),
}

/// A sum of energy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnergySum {
    /// The job, user or day.
    pub of: EnergyOf,
    /// The name of the job, for the sum of a job.
    pub name: Option<String>,
    /// The job's place in an array.
    pub array: Option<ArrayPlace>,
    /// The energy.
    pub energy: Joules,
    /// Number of attempts.
    pub attempts: u64,
}
