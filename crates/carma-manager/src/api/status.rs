//! The manager itself.

use std::path::PathBuf;

use carma_core::{JobId, Metric, MetricFacts, Seconds, Settings, Shown};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::configuration::{AccountNames, ManagerSettings, Sources};
use crate::last_errors::LoggedError;
use crate::phase::Phase;
use crate::request::ArrayPlace;
use crate::units::UnixMillis;

/// The status of the manager.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// Its version.
    pub version: String,
    /// Its process id.
    pub pid: u32,
    /// The time of the manager. With emulated GPUs it can run faster than real time.
    pub now: UnixMillis,
    /// When it was started.
    pub started: UnixMillis,
    /// Time since the start.
    pub up: Seconds,
    /// It only observes: it launches nothing.
    pub observes: bool,
    /// It is draining: it launches nothing more, and ends with the last attempt.
    pub draining: bool,
    /// A description of its GPUs.
    #[serde(alias = "world")]
    pub gpu_source: String,
    /// The GPUs are emulated.
    pub emulated: bool,
    /// How much faster than real time the GPUs run; 1 for real GPUs.
    pub speed: f64,
    /// Number of GPUs.
    pub gpus: u32,
    /// Number of servers of agents.
    #[serde(default)]
    pub servers: u32,
    /// Number of pools of pilots.
    #[serde(default)]
    pub pools: u32,
    /// Why GPUs of this host are not used, one line per reason.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// The metrics of GPUs, in the order of tables and charts.
    #[serde(default)]
    pub metrics: Vec<MetricDetail>,
    /// The mapping policy.
    pub policy: String,
    /// Unfinished jobs.
    pub jobs: Counts,
    /// Limits of jobs that the scheduler knows, but that the kernel cannot enforce here.
    #[serde(default)]
    pub not_enforced: Vec<String>,
    /// Problems for the operator: a full disk, a host short of memory, a lost GPU.
    #[serde(alias = "troubles")]
    pub problems: Vec<String>,
    /// The last warnings and errors of its log, the latest last.
    #[serde(default)]
    pub errors: Vec<LoggedError>,
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

/// Unfinished jobs by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    /// Running.
    pub running: u64,
    /// Waiting.
    pub waiting: u64,
    /// Held.
    pub held: u64,
}

/// A request to stop the manager. Running jobs continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Shutdown {
    /// Launch nothing more, and stop with the last attempt.
    pub drain: bool,
}

/// A change, as clients receive it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "update", rename_all = "snake_case")]
pub enum Update {
    /// A job changed.
    Job {
        /// The job.
        job: JobId,
        /// Its place in an array.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        array: Option<ArrayPlace>,
        /// Its user.
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
    /// Its time.
    pub at: UnixMillis,
    /// The update.
    #[serde(flatten)]
    pub update: Update,
}

/// Which events to return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct EventQuery {
    /// Stored events after this number, then new ones. Unset: only updates, from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

/// The configuration in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConfigurationDetail {
    /// The file. It may not exist.
    #[schema(value_type = String)]
    pub file: PathBuf,
    /// All settings of decisions.
    pub rules: Settings,
    /// The settings in the file, without those of its preset.
    pub written: Settings,
    /// Settings of the manager itself. Only operators see the paths of tokens and keys.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub manager: ManagerSettings,
    /// Where the value of each key comes from: `admission.margin`.
    #[serde(default)]
    pub sources: Sources,
    /// Names of the users and groups in the settings.
    #[serde(default)]
    pub names: AccountNames,
}

/// The result of a reload: the settings of decisions are in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reloaded {
    /// Changed settings that need a restart.
    pub needs_restart: Vec<String>,
    /// Users and groups in the file that this host does not know, with file and line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
