//! What can keep a job off a device.

#![cfg_attr(feature = "schema", allow(clippy::large_stack_arrays, reason = "the derived schema lists all variants"))]

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::sharing::{GpuMode, RequestedMode};
use crate::telemetry::Metric;
use crate::units::{Fraction, MiB, Seconds, Time, Watts};
use crate::{AttemptId, JobId, UserId};

/// The two ways onto a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlacementKind {
    /// It is idle, and the job is alone on it for now.
    Idle,
    /// It is shared.
    Share,
}

/// Why a device does not take a job, for programs (serialised) and for people (displayed).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "obstacle", rename_all = "snake_case")]
pub enum Obstacle {
    /// The device answers no more.
    Lost,
    /// An operator drained it.
    Drained,
    /// Its host is short of memory, CPU or disk.
    HostShort,
    /// Its server ends soon, and takes nothing new.
    ServerEnding,
    /// Its server ends before the job would.
    EndsTooSoon {
        /// How long the job needs it.
        needed: Seconds,
        /// How long it lasts.
        left: Seconds,
    },
    /// It is partitioned into MIG instances.
    Partitioned,
    /// It is being switched to another mode.
    Switching {
        /// To which.
        to: GpuMode,
    },
    /// Its first window is not full.
    Observing,
    /// It has not been sampled for too long.
    Stale {
        /// For how long.
        age: Seconds,
    },
    /// Closed until the load of a new job is known.
    GateClosed {
        /// The new job.
        behind: AttemptId,
        /// When it opens, once that is known.
        until: Option<Time>,
    },
    /// The job needs an idle device, or the policy never shares, and this one is in use.
    NotIdle {
        /// Our attempts on it.
        jobs: usize,
        /// Other processes on it.
        foreign: usize,
        /// Memory in use.
        occupied: MiB,
    },
    /// A job on it wanted it for itself.
    HeldExclusively {
        /// That job.
        by: JobId,
    },
    /// The job must start on an idle device, whatever room there is elsewhere.
    NeedsIdle,
    /// It has as many jobs as are allowed.
    JobLimit {
        /// The limit.
        limit: u32,
    },
    /// Others use it, and devices that others use are left alone.
    ForeignProcesses {
        /// How many.
        count: usize,
    },
    /// It is too busy to share.
    Busy {
        /// By this metric.
        metric: Metric,
        /// The risk score.
        score: Fraction,
        /// The limit it passes.
        limit: Fraction,
        /// The second metric that had to pass its limit, with score and limit.
        and: Option<(Metric, Fraction, Fraction)>,
    },
    /// It is busier than the cap that is set just now.
    UtilisationCap {
        /// The risk score.
        score: Fraction,
        /// The cap.
        cap: Fraction,
    },
    /// A job on it is slowed down by more than was predicted.
    Slowed {
        /// That job.
        job: JobId,
        /// How long its steps take, in percent of what they take alone.
        percent: u32,
        /// What was predicted.
        predicted: u32,
    },
    /// Memory on it grows without end.
    MemoryGrows {
        /// The job that grows fastest.
        job: JobId,
        /// When there will be none left.
        until: Time,
    },
    /// The job interfered too much with a job on it before.
    #[serde(alias = "kept_apart")]
    InterferedBefore {
        /// That job.
        #[serde(alias = "from")]
        with: JobId,
    },
    /// The sum of expected utilisations would pass the limit (Horus).
    UtilisationSum {
        /// The sum with the job, in percent.
        percent: u32,
    },
    /// The sum of sharing scores would pass the limit (Lucid).
    SharingScore {
        /// The sum with the job.
        sum: u32,
        /// The limit.
        limit: u32,
    },
    /// Together they would keep the device busier than is allowed, as predicted.
    PredictedActivity {
        /// By this metric.
        metric: Metric,
        /// The sum of what all show alone, in percent.
        percent: u32,
        /// The most that is allowed.
        limit: u32,
    },
    /// The job, or one already there, would be slowed down too much, as predicted.
    PredictedSlowdown {
        /// Which job; unset: the job itself.
        #[serde(alias = "whom")]
        slowed: Option<JobId>,
        /// Its run time over its time alone, in percent.
        percent: u32,
        /// The most that is allowed.
        limit: u32,
    },
    /// Sharing would not pay: the job would add too little to total progress, as predicted.
    LittleGain {
        /// The added progress, in percent of a job alone on a GPU; negative if total progress would fall.
        percent: i32,
        /// The least it must.
        least: i32,
    },
    /// The job would delay itself and the others for too long, as predicted.
    PredictedDelay {
        /// The sum of the delays, in percent of the job's length.
        percent: u32,
        /// The most that is allowed, the more the more jobs wait.
        limit: u32,
    },
    /// Too little memory is left.
    Memory {
        /// What must be free: need and margin, or the floor.
        needed: MiB,
        /// What is available.
        available: MiB,
    },
    /// The device is too small even when idle.
    TooSmall {
        /// What the job needs.
        needed: MiB,
        /// The device's whole memory.
        capacity: MiB,
    },
    /// Others have booked the host's cores.
    HostCores {
        /// What the job needs.
        needed: u32,
        /// What is not booked.
        free: u32,
        /// What there is.
        all: u32,
    },
    /// Others have booked the host's memory.
    HostMemory {
        /// What the job needs.
        needed: MiB,
        /// What is not booked.
        free: MiB,
        /// What there is.
        all: MiB,
    },
    /// Others use the host's memory, booked or not.
    HostMemoryInUse {
        /// What the job needs.
        needed: MiB,
        /// What can be had.
        available: MiB,
    },
    /// The remaining cores or memory of the host are reserved for an earlier job.
    #[serde(alias = "host_kept")]
    HostReservedForHead {
        /// That job.
        head: JobId,
    },
    /// Its MPS server serves another user.
    MpsOtherUser {
        /// That user.
        serves: UserId,
    },
    /// Only MPS clients may open it.
    MpsClientsOnly,
    /// It does not offer the mode the job wants.
    WrongMode {
        /// The wanted mode.
        wanted: RequestedMode,
    },
    /// The ranks of one job cannot talk to each other across MIG instances.
    MigIsSingle,
    /// It is kept for the job at the head of the queue.
    ReservedForHead {
        /// That job.
        head: JobId,
        /// From then on; unset: from now, because the start of the head is unknown.
        from: Option<Time>,
    },
    /// It is reserved for users below their share of the GPUs.
    #[serde(alias = "left_to_others")]
    ReservedForFairShare,
    /// Its host is reserved for users who have used less.
    #[serde(alias = "host_left_to_others")]
    HostReservedForFairShare,
    /// All GPUs of its server together would draw more than they may.
    PowerBudget {
        /// Their predicted power, with the power reserved for an earlier job.
        predicted: Watts,
        /// The power budget.
        budget: Watts,
    },
    /// Nothing is collocated while a job waits to be recovered.
    CollocationSuspended {
        /// That job.
        recovering: JobId,
    },
}

/// How texts write moments and name jobs: people do not know the scheduler's clock, and know the jobs of an array by their index.
#[derive(Clone, Copy)]
pub struct Wording<'a> {
    /// A moment of the scheduler's clock.
    pub moment: &'a dyn Fn(Time) -> String,
    /// The name of a job.
    pub job: &'a dyn Fn(JobId) -> String,
}

impl Wording<'_> {
    /// The scheduler's own clock and numbers.
    pub const PLAIN: Wording<'static> = Wording { moment: &|time| format!("at {time}"), job: &|job| job.to_string() };
}

impl Obstacle {
    /// As text in these words.
    pub fn text(&self, words: Wording<'_>) -> String {
        let Wording { moment, job: name } = words;
        match self {
            Self::GateClosed { behind, until: Some(until) } => {
                format!("is closed until the load of {} is known: opens {}", name(behind.job), moment(*until))
            }
            Self::GateClosed { behind, until: None } => {
                format!("is closed until the load of {} is known: not seen on the GPU yet", name(behind.job))
            }
            Self::HeldExclusively { by } => format!("is held exclusively by {}", name(*by)),
            Self::MemoryGrows { job, until } => {
                format!("takes no more jobs: the memory of {} grows and will be full {}", name(*job), moment(*until))
            }
            Self::Slowed { job, percent, predicted } => {
                format!("takes no more jobs: {} runs at {percent} % of its time alone; {predicted} % was predicted", name(*job))
            }
            Self::InterferedBefore { with } => format!("has {}, with which the job interfered too much before", name(*with)),
            Self::PredictedSlowdown { slowed, percent, limit } => {
                let slowed = slowed.map_or_else(|| "the job".to_owned(), name);
                format!("{slowed} would take {percent} % of its time alone (limit {limit} %)")
            }
            Self::HostReservedForHead { head } => format!("cores or memory of its host are reserved for {}", name(*head)),
            Self::ReservedForHead { head, from: Some(from) } => {
                format!("is reserved for {}, which is predicted to start {}", name(*head), moment(*from))
            }
            Self::ReservedForHead { head, from: None } => format!("is reserved for {}", name(*head)),
            Self::CollocationSuspended { recovering } => {
                format!("no GPU is shared while {} waits for recovery", name(*recovering))
            }
            other => other.to_string(),
        }
    }
}

/// `1 job`, `2 jobs`: with this ending for several.
pub(crate) fn counted(number: u64, noun: &str, ending: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { ending })
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("is lost"),
            Self::Drained => f.write_str("is drained"),
            Self::HostShort => f.write_str("its host has too few resources left"),
            Self::ServerEnding => f.write_str("its server ends soon"),
            Self::EndsTooSoon { needed, left } => write!(f, "its server ends in {left}, and the job needs {needed}"),
            Self::Partitioned => f.write_str("is partitioned into MIG instances"),
            Self::Switching { to } => write!(f, "is being switched to {to}"),
            Self::Observing => f.write_str("has too few samples: its first window is not full"),
            Self::Stale { age } => write!(f, "has not been sampled for {age}"),
            Self::NotIdle { jobs, foreign, occupied } => {
                let (jobs, foreign) = (counted(*jobs as u64, "CARMA job", "s"), counted(*foreign as u64, "other process", "es"));
                write!(f, "is not idle: {jobs}, {foreign}, {occupied} in use")
            }
            Self::NeedsIdle => f.write_str("the job must start on an idle GPU"),
            Self::JobLimit { limit } => write!(f, "has reached its limit of {}", counted(u64::from(*limit), "job", "s")),
            Self::ForeignProcesses { count } => write!(f, "is used by {count} processes outside CARMA"),
            Self::Busy { metric, score, limit, and } => {
                write!(f, "is busy: {} {score} (limit {limit})", metric.name())?;
                and.map_or(Ok(()), |(metric, score, limit)| write!(f, " and {} {score} (limit {limit})", metric.name()))
            }
            Self::UtilisationCap { score, cap } => write!(f, "is too busy: its utilisation {score} is above the cap of {cap}"),
            Self::UtilisationSum { percent } => write!(f, "the expected utilisations would add up to {percent} % (limit 100 %)"),
            Self::SharingScore { sum, limit } => write!(f, "the sharing scores would add up to {sum} (limit {limit})"),
            Self::PredictedActivity { metric, percent, limit } => {
                write!(f, "would be too busy: {} {percent} % (limit {limit} %)", metric.name())
            }
            Self::LittleGain { percent, least } => {
                write!(f, "sharing is not worthwhile: it would add {percent} % of a job's progress (at least {least} % required)")
            }
            Self::PredictedDelay { percent, limit } => {
                write!(f, "would delay the job and the others by {percent} % of the job's length (limit {limit} %)")
            }
            Self::Memory { needed, available } => write!(f, "has {available} available, {needed} needed"),
            Self::TooSmall { needed, capacity } => write!(f, "has {capacity} in total, {needed} needed"),
            Self::HostCores { needed, free, all } => write!(f, "its host has {free} of {all} cores free, {needed} needed"),
            Self::HostMemory { needed, free, all } => write!(f, "its host has {free} of {all} unreserved, {needed} needed"),
            Self::HostMemoryInUse { needed, available } => write!(f, "its host has {available} available, {needed} needed"),
            Self::MpsOtherUser { serves } => write!(f, "its MPS server is in use by {serves}"),
            Self::MpsClientsOnly => f.write_str("takes MPS clients only"),
            Self::WrongMode { wanted } => write!(f, "does not support the requested mode ({})", format!("{wanted:?}").to_lowercase()),
            Self::MigIsSingle => f.write_str("is a MIG instance, which cannot run a job with several ranks"),
            Self::GateClosed { .. }
            | Self::HeldExclusively { .. }
            | Self::MemoryGrows { .. }
            | Self::Slowed { .. }
            | Self::InterferedBefore { .. }
            | Self::PredictedSlowdown { .. }
            | Self::HostReservedForHead { .. }
            | Self::ReservedForHead { .. }
            | Self::CollocationSuspended { .. } => f.write_str(&self.text(Wording::PLAIN)),
            Self::ReservedForFairShare => f.write_str("is reserved for users below their share"),
            Self::HostReservedForFairShare => {
                f.write_str("its host runs no more jobs of this user while users who have used less share it")
            }
            Self::PowerBudget { predicted, budget } => write!(f, "its server's GPUs would draw {predicted} (budget {budget})"),
        }
    }
}
