//! One job, its attempts and its logs.

use carma_core::{AttemptId, JobId, JobLabel, MiB, Outcome, Placement, Seconds, State, Utilisation, Verdict};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Ending, JobPrediction};
use crate::attempt::Exit;
use crate::event::{CancelCause, MemoryPart, StoredEvent};
use crate::judge::Blame;
use crate::phase::Phase;
use crate::request::{ArrayPlace, JobRequest, Owner};
use crate::rows::label;
use crate::units::{Joules, UnixMillis};

/// Everything that is known about a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobDetail {
    /// Its number.
    pub id: JobId,
    /// Its user.
    pub owner: Owner,
    /// The request. Other users do not see the command and the environment; its user and operators see no secrets.
    pub request: JobRequest,
    /// The state with its data.
    pub state: State,
    /// The state as one word.
    pub phase: Phase,
    /// How it ended, as text.
    pub outcome: Option<String>,
    /// How it ended, for people.
    pub ending: Option<Ending>,
    /// The user who holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
    /// Why it was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<CancelCause>,
    /// When it was submitted.
    pub submitted: UnixMillis,
    /// When it ended.
    pub ended: Option<UnixMillis>,
    /// Its estimate.
    pub estimate: EstimateDetail,
    /// Its place in an array.
    pub array: Option<ArrayPlace>,
    /// Its attempts.
    pub attempts: Vec<AttemptDetail>,
    /// Its events, in order.
    pub events: Vec<StoredEvent>,
    /// Energy of all attempts so far.
    pub energy: Option<Joules>,
    /// How far an unfinished job is, and when it is predicted to start and end.
    #[serde(default, skip_serializing_if = "JobPrediction::is_empty")]
    pub prediction: JobPrediction,
    /// That its declared memory was far off, in a sentence, once it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declaration: Option<String>,
    /// The last lines of its last attempt, if the job failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_output: Option<LastOutput>,
}

/// The estimate of a job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct EstimateDetail {
    /// Memory that its user declares.
    pub declared: Option<MiB>,
    /// Expected peak on a GPU.
    pub expected: Option<MiB>,
    /// Upper bound of the peak.
    pub upper: Option<MiB>,
    /// Expected utilisation of a GPU.
    pub utilisation: Utilisation,
    /// Expected runtime.
    pub duration: Option<Seconds>,
    /// The source: `declared`, `history`, `static` or `dry-run`.
    pub source: Option<String>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// The parts of the expected memory, if known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<MemoryPart>,
}

/// An attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttemptDetail {
    /// Its number.
    pub attempt: AttemptId,
    /// Where it runs or ran.
    pub placement: Placement,
    /// When it was launched.
    pub launched: UnixMillis,
    /// When it ended.
    pub ended: Option<UnixMillis>,
    /// How it ended, for programs.
    pub verdict: Option<Verdict>,
    /// How it ended, for people.
    pub ending: Option<Ending>,
    /// What the verdict is based on.
    #[serde(alias = "because")]
    pub reason: Option<String>,
    /// Who is to blame.
    #[serde(alias = "whose")]
    pub blame: Option<Blame>,
    /// The exit that its supervisor recorded.
    pub exit: Option<Exit>,
    /// Peak memory on each of its devices, in rank order; of a running attempt, so far.
    pub peaks: Vec<MiB>,
    /// Mean utilisation of its devices.
    pub utilisation: Utilisation,
    /// Energy accounted to it.
    pub energy: Option<Joules>,
}

/// Which part of a log to return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct LogQuery {
    /// Standard output, standard error, or both.
    pub stream: LogStream,
    /// Of this attempt; unset: the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Only this many lines at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<u32>,
    /// Continue as the log grows, until the attempt ends.
    pub follow: bool,
}

/// A job's logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogStream {
    /// Standard output.
    #[default]
    Stdout,
    /// Standard error.
    Stderr,
    /// Both, in the order in which they were written.
    Both,
}

/// The last lines that a failed attempt printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastOutput {
    /// The stream with the error.
    pub stream: LogStream,
    /// The lines.
    pub lines: Vec<String>,
}

/// How long to wait for the end of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct WaitQuery {
    /// Maximum wait in seconds; then the answer has the current state. Default: 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u32>,
}

impl JobDetail {
    /// Whether it ended without success, and not because a user cancelled it.
    pub fn has_failed(&self) -> bool {
        self.outcome().is_some_and(|outcome| !outcome.succeeded() && *outcome != Outcome::Cancelled)
    }

    /// Its name for users.
    pub fn label(&self) -> JobLabel {
        label(self.id, self.array)
    }

    /// How it ended, if it did.
    pub const fn outcome(&self) -> Option<&Outcome> {
        self.state.outcome()
    }
}
