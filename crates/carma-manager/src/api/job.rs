//! Jobs as they are listed and shown.

use carma_core::{
    ArrayId, AttemptId, DeviceAnswer, DeviceId, JobId, MiB, Outcome, Placement, Priority, Seconds, State, UserId, Utilisation, Verdict,
    WaitReason,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::attempt::Exit;
use crate::event::MemoryPart;
use crate::judge::Blame;
use crate::request::{JobRequest, Owner};
use crate::store::{EnergySum, Joules, Phase, StoredEvent, UnixMillis};

/// A job that is not over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueRow {
    /// Which.
    #[schema(value_type = u64)]
    pub id: JobId,
    /// What people call it.
    pub name: Option<String>,
    /// Whose it is.
    pub user: String,
    /// That user's number.
    pub uid: u32,
    /// Where it stands.
    pub state: Phase,
    /// For how long it has stood there.
    #[schema(value_type = f64)]
    pub for_seconds: Seconds,
    /// When it was submitted.
    pub submitted: UnixMillis,
    /// Higher goes first.
    #[schema(value_type = i32)]
    pub priority: Priority,
    /// GPUs it wants.
    pub gpus: u32,
    /// Attempts so far.
    pub attempts: u32,
    /// Its place in an array.
    pub array: Option<ArrayPlace>,
    /// GPUs it has.
    #[schema(value_type = Vec<String>)]
    pub devices: Vec<DeviceId>,
    /// Memory it is promised on each, or expected to need.
    #[schema(value_type = Option<u64>)]
    pub memory: Option<MiB>,
    /// How far it is, where it tells.
    pub progress: Option<f64>,
    /// Why it waits, or that it runs and does nothing, in a few words.
    pub reason: Option<String>,
}

/// A job's place in an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArrayPlace {
    /// The array, which has the number of its first job.
    #[schema(value_type = u64)]
    pub array: ArrayId,
    /// The index its user gave it.
    pub index: u32,
}

/// Everything that is known of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobDetail {
    /// Which.
    #[schema(value_type = u64)]
    pub id: JobId,
    /// Whose it is.
    pub owner: Owner,
    /// What was asked for. To others than its user and operators, the environment is not shown; to them, what looks like a secret is not.
    pub request: JobRequest,
    /// Where it stands, with what only that standing has.
    #[schema(value_type = Object)]
    pub state: State,
    /// The same in a word.
    pub phase: Phase,
    /// How it ended, in words.
    pub outcome: Option<String>,
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
    #[schema(value_type = Option<u64>)]
    pub declared: Option<MiB>,
    /// The most likely peak on a GPU.
    #[schema(value_type = Option<u64>)]
    pub expected: Option<MiB>,
    /// What it should stay under.
    #[schema(value_type = Option<u64>)]
    pub upper: Option<MiB>,
    /// How busy it should keep a GPU.
    #[schema(value_type = Object)]
    pub utilisation: Utilisation,
    /// How long it should take.
    #[schema(value_type = Option<f64>)]
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
    #[schema(value_type = Object)]
    pub attempt: AttemptId,
    /// Where.
    #[schema(value_type = Object)]
    pub placement: Placement,
    /// When it was launched.
    pub launched: UnixMillis,
    /// When it ended.
    pub ended: Option<UnixMillis>,
    /// How.
    #[schema(value_type = Option<Object>)]
    pub verdict: Option<Verdict>,
    /// What that goes by.
    pub because: Option<String>,
    /// Whose doing it was.
    pub whose: Option<Blame>,
    /// What its supervisor wrote down.
    #[schema(value_type = Option<Object>)]
    pub exit: Option<Exit>,
    /// The most memory it had on each of its devices, in rank order; so far, where it runs.
    #[schema(value_type = Vec<u64>)]
    pub peaks: Vec<MiB>,
    /// How busy it kept them.
    #[schema(value_type = Object)]
    pub utilisation: Utilisation,
    /// Energy accounted to it.
    pub energy: Option<Joules>,
}

/// Why a job waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// Which.
    #[schema(value_type = u64)]
    pub job: JobId,
    /// Where it stands.
    #[schema(value_type = Object)]
    pub state: State,
    /// Why it does not run.
    #[schema(value_type = Object)]
    pub reason: WaitReason,
    /// What each GPU says to it.
    #[schema(value_type = Vec<Object>)]
    pub devices: Vec<DeviceAnswer>,
    /// All of it, for people.
    pub text: String,
}

/// What would become of a job that is submitted now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Forecast {
    /// What is expected of it.
    pub estimate: EstimateDetail,
    /// Where it would start at once.
    #[schema(value_type = Option<Object>)]
    pub placement: Option<Placement>,
    /// Why it would wait, where it would.
    pub why: Option<Why>,
}

/// Which jobs are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct HistoryQuery {
    /// Of this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<u32>)]
    pub user: Option<UserId>,
    /// In this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Phase>,
    /// With this in its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// With this in its name or in its user's, or as its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Of this array.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<u64>)]
    pub array: Option<ArrayId>,
    /// Submitted at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<UnixMillis>,
    /// Submitted before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
    /// Of a lower number than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<u64>)]
    pub before: Option<JobId>,
    /// In this order; exports are by number.
    #[serde(skip_serializing_if = "HistoryOrder::is_usual")]
    pub order: HistoryOrder,
    /// At most so many, and 1,000; unset: 100. An export has no such bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Which jobs come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum HistoryOrder {
    /// Those of the highest number.
    #[default]
    Number,
    /// Those that ended last; others are left out.
    Ended,
}

impl HistoryOrder {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// Which energy is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EnergyQuery {
    /// A sum for each of these.
    pub by: EnergyKind,
    /// Days are those of a time zone that is so many minutes ahead of UTC.
    #[serde(default)]
    pub ahead: i32,
    /// Of this user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<u32>)]
    pub user: Option<UserId>,
    /// Of attempts that ended at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<UnixMillis>,
    /// Of attempts that ended before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
}

/// Sums of energy, with what is needed to say what they cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnergyReport {
    /// The sums.
    pub sums: Vec<EnergySum>,
    /// What a kilowatt-hour costs, where that is configured.
    pub price: Option<f64>,
    /// In this currency.
    pub currency: String,
    /// Grams of CO2 a kilowatt-hour, where that is configured.
    pub carbon: Option<f64>,
}

/// By what energy is summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum EnergyKind {
    /// A sum for each job.
    Job,
    /// For each user.
    User,
    /// For each day, on which attempts ended.
    Day,
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
    /// The last lines only, so many.
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
    /// So many seconds at most, then it is answered as it stands; unset: 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u32>,
}

impl JobDetail {
    /// How it ended, if it did.
    pub const fn outcome(&self) -> Option<&Outcome> {
        self.state.outcome()
    }
}
