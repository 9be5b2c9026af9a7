//! What a user requests when submitting a job.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::host_claim::HostClaim;
use super::interference::Interference;
use super::memory::MemoryNeed;
use super::stall::OnHang;
use crate::sharing::RequestedMode;
use crate::telemetry::{Metric, Utilisation};
use crate::units::{Fraction, MiB, Seconds, Time};
use crate::{ArrayId, GroupId, JobId, JobLabel, UserId};

/// A request to run a training job.
///
/// ```
/// use carma_core::{JobId, JobSpec, MemoryNeed, MiB};
/// let job = JobSpec { gpus: 2, memory: MemoryNeed::known(MiB(9_000)), ..JobSpec::new(JobId(1)) };
/// assert!(job.validate().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "options that do not depend on each other")]
pub struct JobSpec {
    /// Its name, new to the scheduler.
    pub id: JobId,
    /// The user that submitted it.
    #[serde(default = "unknown_user")]
    pub user: UserId,
    /// The group it is accounted to.
    #[serde(default = "no_group")]
    pub group: GroupId,
    /// GPUs wanted, one a rank; 0 is a job for the CPU alone.
    #[serde(default = "one")]
    pub gpus: u32,
    /// Its ranks may sit on several servers when no single one has room.
    #[serde(default)]
    pub may_span_servers: bool,
    /// What is known of its memory.
    #[serde(default)]
    pub memory: MemoryNeed,
    /// Cores of the host it needs, if it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Memory of the host it needs, if it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_memory: Option<MiB>,
    /// Known utilisation of a GPU by the job alone.
    #[serde(default)]
    pub utilisation: Utilisation,
    /// What earlier attempts, its own or of the same job, have shown of its part in interference.
    #[serde(default, skip_serializing_if = "Interference::is_as_predicted")]
    pub interference: Interference,
    /// How well it shares, where it is classified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<SharingClass>,
    /// Expected runtime; not a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_duration: Option<Seconds>,
    /// How long one attempt may take before it is ended; what backfill counts with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<Seconds>,
    /// Higher goes first.
    #[serde(default)]
    pub priority: Priority,
    /// Jobs that must end before it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Dependency>,
    /// The array it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayMember>,
    /// Not to start before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<Time>,
    /// Accepted, but to wait until released.
    #[serde(default)]
    pub hold: bool,
    /// Accepted, but to wait until its estimate is ready.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaits_estimate: bool,
    /// Wants its GPUs for itself.
    #[serde(default)]
    pub exclusive: bool,
    /// The collocation mode it wants.
    #[serde(default)]
    pub mode: RequestedMode,
    /// It can write a checkpoint on request and resume from it.
    #[serde(default)]
    pub may_checkpoint: bool,
    /// How often it may be started again.
    #[serde(default)]
    pub retries: RetryBudget,
    /// What happens when it hangs.
    #[serde(default, skip_serializing_if = "OnHang::is_report")]
    pub on_hang: OnHang,
}

fn unknown_user() -> UserId {
    UserId(0)
}

fn no_group() -> GroupId {
    GroupId(0)
}

fn one() -> u32 {
    1
}

impl JobSpec {
    /// Its name for users.
    pub fn label(&self) -> JobLabel {
        JobLabel { job: self.id, member: self.array.map(|member| (member.array, member.index)) }
    }

    /// A job that wants one GPU, without any estimate.
    pub fn new(id: JobId) -> Self {
        Self {
            id,
            user: unknown_user(),
            group: no_group(),
            gpus: 1,
            may_span_servers: false,
            memory: MemoryNeed::default(),
            cpus: None,
            host_memory: None,
            utilisation: Utilisation::default(),
            interference: Interference::default(),
            sharing: None,
            expected_duration: None,
            time_limit: None,
            priority: Priority::default(),
            dependencies: Vec::new(),
            array: None,
            begin: None,
            hold: false,
            awaits_estimate: false,
            exclusive: false,
            mode: RequestedMode::default(),
            may_checkpoint: false,
            retries: RetryBudget::default(),
            on_hang: OnHang::default(),
        }
    }

    /// Its claim on the host that it is launched on; empty if none is given.
    pub fn host_claim(&self) -> HostClaim {
        HostClaim { cores: self.cpus.unwrap_or(0), memory: self.host_memory.unwrap_or_default() }
    }

    /// GPU utilisation to expect of it when alone; unknown counts as all.
    pub fn expected_utilisation(&self) -> Fraction {
        self.utilisation[Metric::Utilisation].unwrap_or(Fraction::ONE)
    }

    /// How well it shares; unknown counts as badly.
    pub fn sharing_class(&self) -> SharingClass {
        self.sharing.unwrap_or(SharingClass::Jumbo)
    }

    /// Whether the request makes sense by itself, whatever the server has.
    pub fn validate(&self) -> Result<(), SpecError> {
        if self.gpus > MOST_GPUS {
            return Err(SpecError::TooManyGpus { gpus: self.gpus });
        }
        let ranks = self.gpus as usize;
        if let Some(known) = &self.memory.known {
            SpecError::check_ranks("known memory", known.values().len(), known.covers(ranks), ranks)?;
        }
        if let Some(estimated) = &self.memory.estimated {
            SpecError::check_ranks("estimated memory", estimated.values().len(), estimated.covers(ranks), ranks)?;
            if let Some(wrong) = estimated.values().iter().find(|estimate| estimate.upper < estimate.expected) {
                return Err(SpecError::UpperBelowExpected { expected: wrong.expected, upper: wrong.upper });
            }
        }
        if !self.interference.is_sensible() {
            return Err(SpecError::Interference);
        }
        if self.time_limit == Some(Seconds::ZERO) {
            return Err(SpecError::ZeroTimeLimit);
        }
        if self.array.is_some_and(|member| member.at_most == Some(0)) {
            return Err(SpecError::ZeroArrayLimit);
        }
        if self.dependencies.iter().any(|dependency| dependency.job == self.id) {
            return Err(SpecError::DependsOnItself);
        }
        Ok(())
    }
}

/// The limit of GPUs of a job: every decision on it checks each of its ranks.
const MOST_GPUS: u32 = 16_384;

/// Why a request makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpecError {
    /// More GPUs than a job may ask for.
    #[error("{gpus} GPUs are too many for one job: give 0 to {MOST_GPUS}")]
    TooManyGpus {
        /// How many.
        gpus: u32,
    },
    /// A list for ranks of another length than there are ranks.
    #[error("{what} lists {listed} ranks, but the job has {ranks}: give one value, or one for each rank")]
    RankCount {
        /// Which list.
        what: &'static str,
        /// Its length.
        listed: usize,
        /// The job's ranks.
        ranks: usize,
    },
    /// An estimate whose upper bound lies below the expected value.
    #[error("the estimate's upper bound {upper} is below the expected {expected}")]
    UpperBelowExpected {
        /// The expected peak.
        expected: MiB,
        /// The bound.
        upper: MiB,
    },
    /// Factors outside the range that can be learned.
    #[error("interference: give factors from 0.5 to 4")]
    Interference,
    /// A time limit of nothing.
    #[error("a time limit must be more than 0 s")]
    ZeroTimeLimit,
    /// An array that may run no job.
    #[error("an array must allow at least 1 job at once")]
    ZeroArrayLimit,
    /// A job that waits for itself.
    #[error("a job cannot depend on itself")]
    DependsOnItself,
}

impl SpecError {
    fn check_ranks(what: &'static str, listed: usize, covered: bool, ranks: usize) -> Result<(), Self> {
        if covered { Ok(()) } else { Err(Self::RankCount { what, listed, ranks }) }
    }
}

/// How much a job disturbs others on a GPU, in the classes of Lucid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SharingClass {
    /// Hardly felt by others.
    Tiny,
    /// Felt.
    Medium,
    /// Fills the GPU.
    Jumbo,
}

/// Higher goes first; equals go in order of submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct Priority(pub i32);

/// Another job that must end first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Dependency {
    /// The other job.
    pub job: JobId,
    /// How it must end.
    #[serde(rename = "after")]
    pub condition: Condition,
}

/// How a dependency must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// With success: `afterok`.
    Ok,
    /// Anyhow: `afterany`.
    Any,
}

/// A job's place in its array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrayMember {
    /// The array.
    pub array: ArrayId,
    /// The index within it.
    pub index: u32,
    /// How many of the array may run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u32>,
}

/// How often a job may be started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RetryBudget {
    /// After running out of GPU memory; unset: as often as the recovery ladder leads on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_memory: Option<u32>,
    /// After an ordinary failure; none unless requested.
    #[serde(default)]
    pub failure: u32,
}
