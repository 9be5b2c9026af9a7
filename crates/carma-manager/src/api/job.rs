//! Jobs as they are listed and shown.

use carma_core::{AttemptId, JobId, MiB, Outcome, Placement, Seconds, State, Utilisation, Verdict};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Ending;
use crate::attempt::Exit;
use crate::event::{CancelCause, MemoryPart, StoredEvent};
use crate::judge::Blame;
use crate::phase::Phase;
use crate::request::{ArrayPlace, JobRequest, Owner};
use crate::units::{Joules, UnixMillis};

/// Everything that is known of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobDetail {
    /// Which.
    pub id: JobId,
    /// Whose it is.
    pub owner: Owner,
    /// What was asked for. To others than its user and operators, the environment is not shown; to them, what looks like a secret is not.
    pub request: JobRequest,
    /// The state with its data.
    pub state: State,
    /// The state as one word.
    pub phase: Phase,
    /// How it ended, in words.
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
    /// What was expected of it.
    pub estimate: EstimateDetail,
    /// Its place in an array.
    pub array: Option<ArrayPlace>,
    /// Its attempts.
    pub attempts: Vec<AttemptDetail>,
    /// What happened to it.
    pub events: Vec<StoredEvent>,
    /// Energy of all attempts so far.
    pub energy: Option<Joules>,
}

/// What was expected of a job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct EstimateDetail {
    /// Declared by its user.
    pub declared: Option<MiB>,
    /// The most likely peak on a GPU.
    pub expected: Option<MiB>,
    /// What it should stay under.
    pub upper: Option<MiB>,
    /// How busy it should keep a GPU.
    pub utilisation: Utilisation,
    /// How long it should take.
    pub duration: Option<Seconds>,
    /// Who said so: `declared`, `history`, `static`, `dry-run`.
    pub source: Option<String>,
    /// What there is to say about it.
    pub notes: Vec<String>,
    /// What the expected memory is made of, where the estimator tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<MemoryPart>,
}

/// An attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttemptDetail {
    /// Which.
    pub attempt: AttemptId,
    /// Where.
    pub placement: Placement,
    /// When it was launched.
    pub launched: UnixMillis,
    /// When it ended.
    pub ended: Option<UnixMillis>,
    /// How.
    pub verdict: Option<Verdict>,
    /// The same, for people.
    pub ending: Option<Ending>,
    /// What that goes by.
    pub because: Option<String>,
    /// Who is to blame.
    pub whose: Option<Blame>,
    /// What its supervisor wrote down.
    pub exit: Option<Exit>,
    /// The most memory it had on each of its devices, in rank order; so far, where it runs.
    pub peaks: Vec<MiB>,
    /// How busy it kept them.
    pub utilisation: Utilisation,
    /// Energy accounted to it.
    pub energy: Option<Joules>,
}

/// Which part of a log is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct LogQuery {
    /// What it printed where.
    pub stream: LogStream,
    /// In which attempt; unset: the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Only this many lines at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<u32>,
    /// Go on as it grows, until the attempt is over.
    pub follow: bool,
}

/// One of a job's two logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogStream {
    /// Standard output.
    #[default]
    Stdout,
    /// Standard error.
    Stderr,
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
    /// How it ended, if it did.
    pub const fn outcome(&self) -> Option<&Outcome> {
        self.state.outcome()
    }
}
