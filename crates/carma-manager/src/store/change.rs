//! What can be written: typed changes. A batch of them is kept whole or not at all.

use std::path::PathBuf;

use carma_core::{AttemptId, DeviceId, Fraction, Job, JobId, MiB, Placement, Time, Utilisation, Verdict, Watts};
use carma_gpu::{ComputeModeChange, DeviceUuid, PowerLimitChange};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::units::{Joules, UnixMillis, UnixMinute};
use crate::api::{Channel, Notification};
use crate::attempt::Exit;
use crate::event::JobEvent;
use crate::metrics::Tallies;
use crate::request::{JobRequest, Owner};

/// One thing to keep.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A job was accepted.
    JobAccepted(Box<StoredJob>),
    /// The core knows something else of a job.
    JobChanged {
        /// All that it knows.
        job: Box<Job>,
        /// When.
        at: UnixMillis,
    },
    /// An attempt is about to be launched: kept before anything runs.
    AttemptStarted {
        /// Which.
        attempt: AttemptId,
        /// Where.
        placement: Placement,
        /// When.
        at: UnixMillis,
    },
    /// An attempt has a supervisor.
    SupervisorSeen {
        /// Which attempt.
        attempt: AttemptId,
        /// Its supervisor.
        supervisor: Supervisor,
    },
    /// An attempt is over.
    AttemptEnded {
        /// Which.
        attempt: AttemptId,
        /// How.
        end: Box<AttemptEnd>,
    },
    /// Something happened.
    EventLogged(NewEvent),
    /// A minute of a device is over. Of two for the same minute, the one with more readings stays.
    SampleKept(MinuteMean),
    /// An attempt has so much memory on a device. One that is no longer kept is passed over.
    MemoryStepped {
        /// Which.
        attempt: AttemptId,
        /// Where.
        device: DeviceId,
        /// How much, from when on.
        step: MemoryStep,
    },
    /// So much more was counted.
    Tallied(Tallies),
    /// An operator wants nothing new on a device.
    GpuDrained {
        /// Which.
        device: DeviceId,
        /// Since when.
        at: UnixMillis,
    },
    /// The device may be used again.
    GpuResumed {
        /// Which.
        device: DeviceId,
    },
    /// Something of the machine is about to be changed, and is to be put back some day.
    MachineChanged(MachineChange),
    /// It was put back.
    MachineRestored(MachineChange),
    /// The manager's own time, which never goes back.
    ClockSeen(Time),
    /// What a user wants to be told of. Ways that are new begin with what happens from now on.
    NotificationsSet {
        /// Whose they are.
        uid: u32,
        /// All of them, no way twice.
        notifications: Vec<Notification>,
    },
    /// A user was told by this way of all that happened up to this event, or could not be.
    UserTold {
        /// Who.
        uid: u32,
        /// Which way.
        by: Channel,
        /// The event.
        through: u64,
    },
    /// Of what happened up to this event, nobody is to be told any more.
    AllTold {
        /// The event.
        through: u64,
    },
    /// Jobs that are over are no longer wanted, nor their attempts and events.
    JobsForgotten(Vec<JobId>),
    /// The events of these numbers are no longer wanted, unless their job is not over.
    EventsForgotten(Vec<u64>),
    /// Samples of before this minute are no longer wanted, nor steps of memory of attempts that are over.
    SamplesForgotten {
        /// The first to stay.
        before: UnixMinute,
    },
    /// Room that was freed goes back to the file system, and the planner's statistics are renewed.
    RoomReturned {
        /// At most so many pages.
        pages: u32,
    },
}

/// A job with all that is kept of it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredJob {
    /// What its user asked for.
    pub request: JobRequest,
    /// Whose it is.
    pub owner: Owner,
    /// What the core knows of it.
    pub job: Job,
    /// When it was submitted.
    pub submitted: UnixMillis,
    /// When it ended.
    pub ended: Option<UnixMillis>,
}

/// The process that supervises an attempt; both together mean one process, ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supervisor {
    /// Its number.
    pub pid: u32,
    /// When it was started, in the kernel's clock ticks since the system's start.
    pub started: u64,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptEnd {
    /// When.
    pub at: UnixMillis,
    /// What its supervisor wrote down; unset: nothing.
    pub exit: Option<Exit>,
    /// What that means.
    pub verdict: Verdict,
    /// What was measured while it ran.
    pub measured: Measured,
}

/// What was measured of an attempt.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Measured {
    /// The most memory it had on each of its devices, in rank order.
    pub peaks: Vec<MiB>,
    /// How busy it kept them, on average.
    pub utilisation: Utilisation,
    /// Energy that is accounted to it.
    pub energy: Option<Joules>,
}

/// Something that happened, for replay and for a job's timeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NewEvent {
    /// When.
    pub at: UnixMillis,
    /// The job it is told of.
    #[schema(value_type = Option<u64>)]
    pub job: Option<JobId>,
    /// What happened.
    #[serde(flatten)]
    pub event: JobEvent,
}

/// The mean of a device's samples over one minute.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MinuteMean {
    /// Which device.
    #[schema(value_type = String)]
    pub device: DeviceId,
    /// Which minute.
    pub minute: UnixMinute,
    /// Samples it is the mean of.
    pub readings: u32,
    /// Used memory, whoever used it.
    #[schema(value_type = u64)]
    pub memory_used: MiB,
    /// How busy the device was.
    #[schema(value_type = Object)]
    pub utilisation: Utilisation,
    /// Power drawn.
    #[schema(value_type = Option<f64>)]
    pub power: Option<Watts>,
}

/// From this time on, an attempt had so much memory on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MemoryStep {
    /// From when.
    pub at: UnixMillis,
    /// So much.
    #[schema(value_type = u64)]
    pub memory: MiB,
}

/// Something of the machine that was changed for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MachineChange {
    /// A GPU's compute mode.
    ComputeMode(ComputeModeChange),
    /// A GPU's power limit.
    PowerLimit(PowerLimitChange),
    /// An MPS control daemon was started.
    MpsDaemon {
        /// For this GPU.
        gpu: DeviceUuid,
        /// The folder of its pipes.
        pipes: PathBuf,
        /// The folder of its logs.
        logs: PathBuf,
    },
    /// A GPU was cut into MIG instances.
    MigInstances {
        /// Which.
        gpu: DeviceUuid,
    },
}

/// The four counters as columns.
pub(super) fn utilisation_columns(utilisation: &Utilisation) -> [Option<f64>; 4] {
    [utilisation.smact, utilisation.smocc, utilisation.drama, utilisation.gpu].map(|value| value.map(Fraction::get))
}

/// And back.
pub(super) fn utilisation_of(columns: [Option<f64>; 4]) -> Utilisation {
    let [smact, smocc, drama, gpu] = columns.map(|value| value.map(Fraction::clamped));
    Utilisation { smact, smocc, drama, gpu }
}
