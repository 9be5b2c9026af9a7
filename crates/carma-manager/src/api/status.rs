//! The manager itself.

use std::path::PathBuf;

use carma_core::{JobId, Metric, MetricFacts, Seconds, Settings, Shown};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::configuration::ManagerSettings;
use crate::phase::Phase;
use crate::units::UnixMillis;

/// How the manager is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// What time it is for the manager: where GPUs are emulated faster than ours, times go on faster too.
    pub now: UnixMillis,
    /// When it was started.
    pub started: UnixMillis,
    /// How long ago that is.
    pub up: Seconds,
    /// It watches, and launches nothing.
    pub observes: bool,
    /// It launches nothing more, and ends when nothing runs.
    pub draining: bool,
    /// Which GPUs it manages, in words.
    pub world: String,
    /// They are emulated.
    pub emulated: bool,
    /// How much faster than ours their time passes; 1 for real ones.
    pub speed: f64,
    /// How many there are.
    pub gpus: u32,
    /// GPUs of the machine that it does not use, in a line for each reason.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// What is measured of them, in the order of tables and charts.
    #[serde(default)]
    pub metrics: Vec<MetricDetail>,
    /// How jobs are mapped to them.
    pub policy: String,
    /// Jobs that are not over.
    pub jobs: Counts,
    /// What an operator should know: a full disk, a host that is short, a GPU that is lost.
    pub troubles: Vec<String>,
}

/// A metric: a share from 0 to 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MetricDetail {
    /// The metric.
    pub id: Metric,
    /// Its name for people.
    pub label: String,
    /// What it measures.
    pub about: String,
    /// When tables and charts show it.
    pub shown: Shown,
}

impl MetricDetail {
    /// All metrics.
    pub fn all() -> Vec<Self> {
        let detail = |metric: Metric| {
            let MetricFacts { label, about, shown, .. } = *metric.facts();
            Self { id: metric, label: label.to_owned(), about: about.to_owned(), shown }
        };
        Metric::ALL.map(detail).into()
    }
}

/// The user who sends the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// The user's number.
    pub uid: u32,
    /// The user's name.
    pub name: String,
    /// The user may manage all jobs and the GPUs.
    pub operator: bool,
}

/// Jobs that are not over, by where they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    /// Launched.
    pub running: u64,
    /// In a queue.
    pub waiting: u64,
    /// Kept back.
    pub held: u64,
}

/// To end the manager; jobs that run go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Shutdown {
    /// Launch nothing more, and end when nothing runs.
    pub drain: bool,
}

/// A change, as sent to listening clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "update", rename_all = "snake_case")]
pub enum Update {
    /// A job stands elsewhere than before.
    Job {
        /// Which.
        job: JobId,
        /// Whose.
        uid: u32,
        /// The state of the job.
        state: Phase,
        /// The number of its latest attempt.
        attempt: u32,
        /// What happened, for people.
        text: String,
    },
    /// GPUs were sampled: request them again.
    Gpus,
    /// Something of a GPU or of the host changed.
    Machine {
        /// What happened, for people.
        text: String,
    },
}

/// An [`Update`] with its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TimedUpdate {
    /// When.
    pub at: UnixMillis,
    /// What.
    #[serde(flatten)]
    pub update: Update,
}

/// Which events are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct EventQuery {
    /// Those that are kept and have a higher number than this, then those to come; unset: updates alone, from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

/// The configuration in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConfigurationDetail {
    /// The file it is read from, which need not be there.
    #[schema(value_type = String)]
    pub file: PathBuf,
    /// The rules of decisions, every one of them.
    pub rules: Settings,
    /// Those that were written: what a preset would say otherwise is not among them.
    pub written: Settings,
    /// Settings of the manager itself. Only operators see the paths of its tokens and its key.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub manager: ManagerSettings,
}

/// The configuration was read again, and its rules are in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reloaded {
    /// What differs but counts only when the manager is started anew.
    pub needs_restart: Vec<String>,
    /// Users and groups that are named and unknown here, by file and line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
