//! A pool of pilots.

use std::fmt;
use std::str::FromStr;

use carma_core::{MiB, Seconds};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

/// The name of a pool: letters, digits, `-` and `_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String)]
pub struct PoolName(String);

/// A text that is no name of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a valid pool name: use up to 32 letters, digits, - and _")]
pub struct PoolNameError(String);

impl FromStr for PoolName {
    type Err = PoolNameError;
    fn from_str(text: &str) -> Result<Self, PoolNameError> {
        let is_name = (1..=32).contains(&text.len()) && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
        if is_name { Ok(Self(text.to_owned())) } else { Err(PoolNameError(text.to_owned())) }
    }
}

impl TryFrom<String> for PoolName {
    type Error = PoolNameError;
    fn try_from(text: String) -> Result<Self, PoolNameError> {
        text.parse()
    }
}

impl From<PoolName> for String {
    fn from(name: PoolName) -> Self {
        name.0
    }
}

impl fmt::Display for PoolName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl PoolName {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Which pilots a pool requests, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolSettings {
    /// The partition; unset: the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// GPUs of a pilot.
    pub gpus: u32,
    /// The type of the GPUs, by the site's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
    /// Memory of each GPU, if known before the first pilot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub gpu_memory: Option<MiB>,
    /// Time limit of a pilot.
    #[schema(value_type = f64)]
    pub time: Seconds,
    /// Cores of a pilot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Host memory of a pilot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub mem: Option<MiB>,
    /// The most pilots at a time.
    pub max: u32,
    /// The most pilots that wait in the batch system's queue.
    pub backlog: u32,
    /// A pilot without jobs for this long is returned.
    #[schema(value_type = f64)]
    pub idle: Seconds,
    /// No pilot is requested for a job that present or pending GPUs are predicted to take within this time.
    #[schema(value_type = f64)]
    pub patience: Seconds,
    /// The account to charge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The quality of service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<String>,
    /// Features that nodes must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraint: Option<String>,
    /// A command of the shell before the agent, in the same shell: `module load cuda`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// A command of the shell after the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teardown: Option<String>,
    /// Further arguments of sbatch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<String>,
}

/// A pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    /// Its name.
    pub name: PoolName,
    /// Which pilots it requests.
    pub settings: PoolSettings,
    /// Why it requests none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<PoolPause>,
    /// Failed pilots since the last one connected.
    #[serde(default)]
    pub failures: u32,
    /// Why the last one failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<String>,
    /// How long the last pilot waited in the batch system's queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub queue_wait: Option<Seconds>,
    /// Memory of each GPU, as the last agent reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub seen_memory: Option<MiB>,
    /// It is removed when its last pilot is gone.
    #[serde(default)]
    pub removed: bool,
}

/// Why a pool requests no pilots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PoolPause {
    /// Someone paused it.
    By(String),
    /// Its last pilots failed.
    Failures(String),
}

impl fmt::Display for PoolPause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::By(user) => write!(formatter, "paused by {user}"),
            Self::Failures(reason) => write!(formatter, "paused after failures: {reason}"),
        }
    }
}

impl Pool {
    /// A new pool.
    pub fn new(name: PoolName, settings: PoolSettings) -> Self {
        Self { name, settings, paused: None, failures: 0, last_failure: None, queue_wait: None, seen_memory: None, removed: false }
    }

    /// Memory of each GPU, as far as it is known.
    pub fn gpu_memory(&self) -> Option<MiB> {
        self.seen_memory.or(self.settings.gpu_memory)
    }
}
