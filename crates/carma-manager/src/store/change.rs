//! The changes that can be written. A batch of them is written whole or not at all.

use std::path::PathBuf;
use std::sync::Arc;

use carma_core::{ArrayId, AttemptId, DeviceId, Job, JobId, MiB, Placement, ServerId, Time, Utilisation, Verdict};
use carma_gpu::{ComputeModeChange, DeviceUuid, PowerLimitChange};
use serde::{Deserialize, Serialize};

use crate::attempt::Exit;
use crate::cluster::{JoinedServer, Pilot, Pool, PoolName};
use crate::event::NewEvent;
use crate::judge::Blame;
use crate::notification::{Channel, Notification};
use crate::request::{JobRequest, Owner};
use crate::samples::{AttemptUtilisation, MemoryStep, MinuteMean};
use crate::submission::Template;
use crate::submission_key::SubmissionKey;
use crate::tally::Tallies;
use crate::units::{Joules, UnixMillis, UnixMinute};

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A job was accepted.
    JobAccepted(Box<StoredJob>),
    /// An array or sweep was accepted.
    ArrayAccepted(Box<StoredArray>),
    /// A submission with a key was accepted.
    SubmissionKept {
        /// Its answer.
        submission: Box<KeyedSubmission>,
        /// When.
        at: UnixMillis,
    },
    /// Delete the answers to submissions before this time.
    SubmissionsDeleted {
        /// The first to stay.
        before: UnixMillis,
    },
    /// The core's state of a job changed.
    JobChanged {
        /// The new state.
        job: Box<Job>,
        /// When.
        at: UnixMillis,
    },
    /// An attempt is about to be launched. It is written before anything runs.
    AttemptStarted {
        /// Which.
        attempt: AttemptId,
        /// Where.
        placement: Placement,
        /// When.
        at: UnixMillis,
    },
    /// An attempt is over.
    AttemptEnded {
        /// Which.
        attempt: AttemptId,
        /// How.
        end: Box<AttemptEnd>,
    },
    /// The logs of these attempts were removed.
    LogsRemoved(Vec<AttemptId>),
    /// An event happened.
    EventLogged(NewEvent),
    /// The mean of a minute of a device. Of two for the same minute, the one with more readings stays.
    SampleStored(MinuteMean),
    /// The memory of an attempt on a device changed. A deleted attempt is ignored.
    MemoryChanged {
        /// Which.
        attempt: AttemptId,
        /// Where.
        device: DeviceId,
        /// The new memory, and its time.
        step: MemoryStep,
    },
    /// How busy an attempt that ended kept a device over time. A deleted attempt is ignored.
    UtilisationKept {
        /// The utilisation.
        utilisation: Box<AttemptUtilisation>,
        /// When the attempt ended.
        ended: UnixMillis,
    },
    /// Counters increased.
    Tallied(Tallies),
    /// A device is drained: no new jobs.
    GpuDrained(Drained),
    /// A device is back in use.
    GpuResumed {
        /// Which.
        device: DeviceId,
    },
    /// A server of an agent joined, or changed.
    ServerChanged(Box<JoinedServer>),
    /// A server is removed.
    ServerGone(ServerId),
    /// A pool was added or changed.
    PoolChanged(Box<Pool>),
    /// A pool is removed.
    PoolGone(PoolName),
    /// A pilot is about to be requested, or changed.
    PilotChanged(Pilot),
    /// A pilot is over, by name.
    PilotGone(String),
    /// A setting of the machine is about to be changed, and must be restored later.
    MachineChanged(MachineChange),
    /// A setting of the machine was restored.
    MachineRestored(MachineChange),
    /// The manager's own time. It never goes back.
    ClockAdvanced(Time),
    /// The notifications of a user. A new channel starts with the next event.
    NotificationsSet {
        /// The user.
        uid: u32,
        /// All of them, each channel once.
        notifications: Vec<Notification>,
    },
    /// A user was notified over a channel of all events up to this one, or could not be.
    UserNotified {
        /// The user.
        uid: u32,
        /// The channel.
        by: Channel,
        /// The event.
        through: u64,
    },
    /// All notifications up to this event are done.
    NotifiedThrough {
        /// The event.
        through: u64,
    },
    /// Hide the secrets in the requests of these jobs, except unfinished ones.
    SecretsHidden(Vec<JobId>),
    /// Delete finished jobs, with their attempts and events.
    JobsDeleted(Vec<JobId>),
    /// Delete the events of these numbers, except those of unfinished jobs.
    EventsDeleted(Vec<u64>),
    /// Delete samples before this minute, and memory steps of finished attempts.
    SamplesDeleted {
        /// The first to stay.
        before: UnixMinute,
    },
    /// Return free space to the file system, and renew the planner's statistics.
    SpaceReleased {
        /// The most pages.
        pages: u32,
    },
}

/// A job as the store keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredJob {
    /// The request of its user.
    pub request: JobRequest,
    /// Its user.
    pub owner: Owner,
    /// The core's state of it.
    pub job: Job,
    /// When it was submitted.
    pub submitted: UnixMillis,
    /// When it ended.
    pub ended: Option<UnixMillis>,
}

/// The jobs of an array or sweep as the store keeps them. Their numbers are consecutive, and the first is that of the array.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredArray {
    /// The array.
    pub array: ArrayId,
    /// The index of each job.
    pub indices: Vec<u32>,
    /// What their requests have in common.
    pub template: Arc<Template>,
    /// Their user.
    pub owner: Owner,
    /// The core's state of the last job. That of the others follows from it ([`Job::as_member`]).
    pub state: Job,
    /// When they were submitted.
    pub submitted: UnixMillis,
    /// When they ended.
    pub ended: Option<UnixMillis>,
}

impl StoredArray {
    /// The last job.
    pub fn last(&self) -> JobId {
        JobId((self.array.0 + self.indices.len() as u64).saturating_sub(1))
    }
}

/// The answer to a submission with a key. Its jobs have consecutive numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedSubmission {
    /// Its user.
    pub uid: u32,
    /// Its key.
    pub key: SubmissionKey,
    /// The first job.
    pub first: JobId,
    /// How many jobs.
    pub jobs: u64,
    /// The notes in the answer.
    pub notes: Vec<String>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptEnd {
    /// When.
    pub at: UnixMillis,
    /// The exit that its supervisor recorded, if any.
    pub exit: Option<Exit>,
    /// The verdict.
    pub verdict: Verdict,
    /// What the verdict is based on, for people.
    pub reason: Option<String>,
    /// Who is to blame, where that is known.
    pub blame: Option<Blame>,
    /// The measurements while it ran.
    pub measured: Measured,
    /// The size of its logs, while they are kept.
    #[serde(default)]
    pub log_bytes: u64,
}

/// Measurements of an attempt.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Measured {
    /// Its peak memory on each device, in rank order.
    pub peaks: Vec<MiB>,
    /// Its mean utilisation of them.
    pub utilisation: Utilisation,
    /// The energy that is attributed to it.
    pub energy: Option<Joules>,
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
    /// A GPU was partitioned into MIG instances.
    MigInstances {
        /// Which.
        gpu: DeviceUuid,
    },
}

/// A drained device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drained {
    /// Which.
    pub device: DeviceId,
    /// Since when.
    pub since: UnixMillis,
    /// Why.
    pub cause: DrainCause,
}

/// Why a device is drained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrainCause {
    /// The manager drained it because of these faults.
    Faults(String),
    /// This operator drained it.
    User(String),
    /// An operator drained it, under a manager that did not store who.
    Unknown,
}

impl DrainCause {
    /// From its stored parts.
    pub(super) fn of(faults: Option<String>, user: Option<String>) -> Self {
        faults.map(Self::Faults).or(user.map(Self::User)).unwrap_or(Self::Unknown)
    }

    /// The faults, if the manager drained it.
    pub fn faults(&self) -> Option<&str> {
        if let Self::Faults(faults) = self { Some(faults) } else { None }
    }

    /// The operator who drained it, if known.
    pub fn user(&self) -> Option<&str> {
        if let Self::User(user) = self { Some(user) } else { None }
    }
}
