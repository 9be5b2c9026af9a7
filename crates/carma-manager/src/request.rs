//! Jobs as users submit and change them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use carma_core::{ArrayId, ArrayMember, Condition, LimitChange, MiB, OnHang, Priority, RequestedMode, RetryBudget, Seconds};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::umask::Umask;

/// What is shown instead of a secret.
pub const HIDDEN: &str = "(hidden)";

/// What is submitted at once, all of it or nothing: one job, or the jobs of one array or sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// The job; of an array or sweep, what its jobs have in common.
    pub job: JobRequest,
    /// An array: a job for each of these indices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Vec<u32>>,
    /// A sweep: a job for each combination of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
}

impl From<JobRequest> for Submission {
    fn from(job: JobRequest) -> Self {
        Self { job, array: None, parameters: Vec::new() }
    }
}

/// A parameter of a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: Vec<String>,
}

/// A job as its user submitted it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobRequest {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The command.
    pub command: JobCommand,
    /// The working directory, as an absolute path.
    #[serde(default)]
    #[schema(value_type = String, required)]
    pub directory: PathBuf,
    /// Its whole environment.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The permissions that its new files lack; unset: the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<Umask>,
    /// The environment that is activated before the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Activation>,
    /// The container that it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// A file for a copy of its output; `%j`, `%A`, `%a`, `%x`, `%u` and `%N` stand for job, array, array index, name,
    /// user and host, `%%` for a percent sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub output: Option<PathBuf>,
    /// A file for a copy of its errors; unset: with the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub error: Option<PathBuf>,
    /// The resources it needs.
    #[serde(default)]
    pub resources: Resources,
    /// When it may start.
    #[serde(default)]
    pub schedule: Schedule,
    /// How often it may be restarted.
    #[serde(default)]
    pub retries: RetryBudget,
    /// Hints for its estimate.
    #[serde(default)]
    pub hints: EstimateHints,
    /// It writes a checkpoint when it is asked to end, and continues from it.
    #[serde(default)]
    pub may_checkpoint: bool,
    /// What happens when it hangs.
    #[serde(default, skip_serializing_if = "OnHang::is_report")]
    pub on_hang: OnHang,
    /// It runs the code of the time of submission: the git work tree is copied.
    #[serde(default)]
    pub snapshot: bool,
    /// It gets its user's terminal.
    #[serde(default)]
    pub interactive: bool,
    /// Which job of its array or sweep it is. The manager sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayElement>,
}

/// The user of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// The user's number.
    pub uid: u32,
    /// The user's primary group.
    pub gid: u32,
    /// The user's name.
    pub name: String,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobCommand {
    /// A program and its arguments. No shell interprets them.
    Program(Vec<String>),
    /// A script of the user.
    Script {
        /// Its text, with the `#!` line.
        text: String,
        /// Its arguments. No shell interprets them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        arguments: Vec<String>,
    },
}

impl JobCommand {
    /// The arguments; of a program its name too.
    pub(crate) fn arguments(&self) -> &[String] {
        let (Self::Program(words) | Self::Script { arguments: words, .. }) = self;
        words
    }
}

/// An environment that is activated before the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// A Conda environment, by name or folder.
    Conda(String),
    /// A virtual environment's folder.
    #[schema(value_type = String)]
    Venv(PathBuf),
}

/// A container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// Its name.
    pub name: String,
    /// The engine that runs it; unset: the first that is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<ContainerEngine>,
}

/// A container engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContainerEngine {
    /// Docker.
    Docker,
    /// Podman.
    Podman,
    /// Apptainer, formerly Singularity.
    Apptainer,
}

/// The resources of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Resources {
    /// GPUs; 0 for a job that needs none.
    pub gpus: u32,
    /// The GPU memory it needs on each GPU, if its user knows.
    pub memory: Option<MiB>,
    /// Cores of the host.
    pub cpus: Option<u32>,
    /// Memory of the host.
    pub host_memory: Option<MiB>,
    /// The time limit of one attempt.
    pub time_limit: Option<Seconds>,
    /// An interactive job ends when nothing is typed or printed for this long.
    pub idle_limit: Option<Seconds>,
    /// Exclusive GPUs.
    pub exclusive: bool,
    /// How its GPUs are shared.
    pub mode: RequestedMode,
}

impl Default for Resources {
    fn default() -> Self {
        Self {
            gpus: 1,
            memory: None,
            cpus: None,
            host_memory: None,
            time_limit: None,
            idle_limit: Some(Seconds::from_secs(30 * 60)),
            exclusive: false,
            mode: RequestedMode::default(),
        }
    }
}

/// When a job may start.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Schedule {
    /// Higher goes first.
    pub priority: Priority,
    /// It waits until it is released.
    pub hold: bool,
    /// It starts at this time at the earliest, in seconds since 1970.
    pub begin: Option<u64>,
    /// The jobs to wait for, by number, `last` or `@name`.
    pub after: Vec<After>,
    /// How many jobs of its array may run at once.
    pub at_most: Option<u32>,
    /// It is accepted although no GPU or host here could ever run it: it waits for hardware that comes later.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wait_for_hardware: bool,
}

/// A job to wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// Which.
    pub job: String,
    /// The condition on its end.
    pub condition: Condition,
}

/// Which job of its submission a job is: one index of an array, or one combination of a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrayElement {
    /// The index that its user gave it; in a sweep its place, from 0.
    pub index: u32,
    /// The array, which has the number of its first job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayId>,
    /// The values of the sweep's parameters in this job.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}

/// The place of a job in an array. People write it as in `12_3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArrayPlace {
    /// The array, which has the number of its first job.
    pub array: ArrayId,
    /// The index that its user gave it.
    pub index: u32,
}

impl From<ArrayMember> for ArrayPlace {
    fn from(member: ArrayMember) -> Self {
        Self { array: member.array, index: member.index }
    }
}

impl fmt::Display for ArrayPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.array.0, self.index)
    }
}

/// Hints for the estimate of a job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EstimateHints {
    /// A file that describes the model.
    #[schema(value_type = Option<String>)]
    pub model: Option<PathBuf>,
    /// The batch size.
    pub batch: Option<u32>,
    /// Whether the script is run without a GPU first.
    pub dry_run: bool,
}

impl JobRequest {
    /// A job with a command and a working directory; the rest has its defaults.
    pub fn new(command: JobCommand, directory: impl Into<PathBuf>) -> Self {
        Self {
            name: None,
            command,
            directory: directory.into(),
            environment: BTreeMap::new(),
            umask: None,
            activation: None,
            image: None,
            output: None,
            error: None,
            resources: Resources::default(),
            schedule: Schedule::default(),
            retries: RetryBudget::default(),
            hints: EstimateHints::default(),
            may_checkpoint: false,
            on_hang: OnHang::default(),
            snapshot: false,
            interactive: false,
            array: None,
        }
    }
}

/// A change of a job that is not over.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JobChange {
    /// The new priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// The new time limit.
    pub time_limit: LimitChange,
}
