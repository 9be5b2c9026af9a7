//! Rows that the store reads and the API sends as they are.

use carma_core::{ArrayId, AttemptId, JobId, JobLabel, MiB, Outcome, Priority, Seconds, UserId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ending::{Ending, EndingClass};
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

/// Jobs by state, and by how they ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct JobCounts {
    /// Waiting.
    pub waiting: u64,
    /// Held.
    pub held: u64,
    /// Running.
    pub running: u64,
    /// Succeeded.
    pub succeeded: u64,
    /// Failed, or never ran.
    pub failed: u64,
    /// Ended because a GPU or the host ran out of memory.
    pub out_of_memory: u64,
    /// Ended by a user or a limit.
    pub stopped: u64,
}

impl JobCounts {
    /// Counts this many jobs of a state; `ended` says how they ended.
    pub(crate) const fn add(&mut self, phase: Phase, ended: Option<EndingClass>, jobs: u64) {
        *match (phase, ended) {
            (_, Some(EndingClass::Succeeded)) => &mut self.succeeded,
            (_, Some(EndingClass::OutOfMemory)) => &mut self.out_of_memory,
            (_, Some(EndingClass::Stopped)) => &mut self.stopped,
            (Phase::Done, None) | (_, Some(EndingClass::Failed)) => &mut self.failed,
            (Phase::Held, None) => &mut self.held,
            (Phase::Starting | Phase::Running, None) => &mut self.running,
            _ => &mut self.waiting,
        } += jobs;
    }
}

/// An array, and the states of its jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArraySummary {
    /// The array.
    pub array: ArrayId,
    /// Its name.
    pub name: Option<String>,
    /// Its user.
    pub user: UserId,
    /// The user's name.
    pub user_name: String,
    /// When it was submitted.
    pub submitted: UnixMillis,
    /// Its jobs.
    pub jobs: JobCounts,
}

/// A user's jobs, and their use of GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UserSummary {
    /// The user.
    pub user: UserId,
    /// The user's name.
    pub name: String,
    /// Unfinished jobs, and jobs that ended in the period.
    pub jobs: JobCounts,
    /// Time on GPUs in the period. A shared GPU counts for each job on it.
    pub gpu_time: Seconds,
    /// Energy of attempts that ended in the period.
    pub energy: Joules,
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
    #[serde(alias = "promised")]
    pub reserved: MiB,
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
