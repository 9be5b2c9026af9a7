//! What a user asks for, whichever way it was written.

use std::collections::BTreeMap;
use std::path::PathBuf;

use carma_core::{Condition, LimitChange, MiB, ModeWish, Priority, RetryBudget, Seconds};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A job as its user asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobRequest {
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What to run.
    pub command: JobCommand,
    /// Where to run it.
    #[schema(value_type = String)]
    pub directory: PathBuf,
    /// Its environment, all of it.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// What to enter before the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub activation: Option<Activation>,
    /// A container to run it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// Where its output goes, besides what is kept of it; `%j`, `%a`, `%x` and `%u` stand for job, array index, name and
    /// user, `%%` for a percent sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub output: Option<PathBuf>,
    /// Where its errors go; unset: with the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub error: Option<PathBuf>,
    /// What it needs.
    #[serde(default)]
    pub resources: Resources,
    /// When it may start.
    #[serde(default)]
    pub schedule: Schedule,
    /// How often it may be started again.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub retries: RetryBudget,
    /// What helps to estimate it.
    #[serde(default)]
    pub hints: EstimateHints,
    /// It writes a checkpoint when told to end, and goes on from it.
    #[serde(default)]
    pub may_checkpoint: bool,
    /// Run the code as it was when submitted: the git work tree is copied.
    #[serde(default)]
    pub snapshot: bool,
    /// It is to have its user's terminal.
    #[serde(default)]
    pub interactive: bool,
    /// Its place among the jobs of its array or sweep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayLabel>,
}

/// Whose a job is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// The user's number.
    pub uid: u32,
    /// The user's first group.
    pub gid: u32,
    /// The user's name.
    pub name: String,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobCommand {
    /// A program and its arguments, as they are: no shell looks at them.
    Program(Vec<String>),
    /// A script of the user's.
    Script {
        /// All of it, with the `#!` line that says who runs it.
        text: String,
        /// What it is called with, as it is.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        arguments: Vec<String>,
    },
}

impl JobCommand {
    /// What is said after the script's name; of a program its name, too.
    pub(crate) fn words(&self) -> &[String] {
        let (Self::Program(words) | Self::Script { arguments: words, .. }) = self;
        words
    }
}

/// What to enter before the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// A Conda environment, by name or folder.
    Conda(String),
    /// A virtual environment's folder.
    Venv(PathBuf),
}

/// A container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// Its name.
    pub name: String,
    /// What runs it; unset: the first that is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<ContainerEngine>,
}

/// What runs containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContainerEngine {
    /// Docker.
    Docker,
    /// Podman.
    Podman,
    /// Apptainer, once Singularity.
    Apptainer,
}

/// What a job needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Resources {
    /// GPUs; 0 for a job that needs none.
    pub gpus: u32,
    /// GPU memory it needs on each, where its user knows.
    #[schema(value_type = Option<u64>)]
    pub memory: Option<MiB>,
    /// Cores of the host.
    pub cpus: Option<u32>,
    /// Memory of the host.
    #[schema(value_type = Option<u64>)]
    pub host_memory: Option<MiB>,
    /// How long one attempt may take.
    #[schema(value_type = Option<f64>)]
    pub time_limit: Option<Seconds>,
    /// How long nothing may be typed or printed at its terminal, where it has one, before it is ended.
    #[schema(value_type = Option<f64>)]
    pub idle_limit: Option<Seconds>,
    /// Its GPUs are to be its own.
    pub exclusive: bool,
    /// How its GPUs are to be shared.
    #[schema(value_type = String)]
    pub mode: ModeWish,
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
            mode: ModeWish::default(),
        }
    }
}

/// When a job may start.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Schedule {
    /// Higher goes first.
    #[schema(value_type = i32)]
    pub priority: Priority,
    /// To wait until released.
    pub hold: bool,
    /// Not before this time, in seconds since 1970.
    pub begin: Option<u64>,
    /// After these jobs, named as people name them: numbers, `last`, `@name`.
    pub after: Vec<After>,
    /// At most so many of its array at once.
    pub at_most: Option<u32>,
}

/// A job to wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// Which.
    pub job: String,
    /// Whether it must have succeeded.
    #[schema(value_type = String)]
    pub condition: Condition,
}

/// Which of the jobs that were submitted together as one array or sweep a job is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrayLabel {
    /// The index its user gave it; in a sweep its place, from 0.
    pub index: u32,
    /// A sweep's parameters, as this job has them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}

/// What helps to estimate a job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EstimateHints {
    /// A file that describes the model.
    #[schema(value_type = Option<String>)]
    pub model: Option<PathBuf>,
    /// Samples a step.
    pub batch: Option<u32>,
    /// Whether to run the script without a GPU first.
    pub dry_run: bool,
}

impl JobRequest {
    /// A job that runs this in this folder, with nothing else said.
    pub fn new(command: JobCommand, directory: impl Into<PathBuf>) -> Self {
        Self {
            name: None,
            command,
            directory: directory.into(),
            environment: BTreeMap::new(),
            activation: None,
            image: None,
            output: None,
            error: None,
            resources: Resources::default(),
            schedule: Schedule::default(),
            retries: RetryBudget::default(),
            hints: EstimateHints::default(),
            may_checkpoint: false,
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
    #[schema(value_type = Option<i32>)]
    pub priority: Option<Priority>,
    /// The new time limit.
    #[schema(value_type = Object)]
    pub time_limit: LimitChange,
}
