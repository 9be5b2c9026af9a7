//! The messages between the manager and an agent.

use std::collections::BTreeMap;

use carma_core::{AttemptId, Fraction, Seconds, ServerId, Signal};
use carma_gpu::profiling::{Counters, Source};
use carma_gpu::{DeviceUuid, GpuEvent, ProcessActivity, Reading};
use serde::{Deserialize, Serialize};

use crate::cluster::ServerFacts;
use crate::estimator::EstimateTask;
use crate::event::JobEstimate;
use crate::executor::{CheckpointTimes, Report, StartOrder};
use crate::host::HostReading;
use crate::request::JobRequest;

/// From an agent to the manager.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromAgent {
    /// The first message of a connection.
    Hello(Box<AgentHello>),
    /// A sign of life. The manager answers with the same number, once it has taken all messages before it.
    Beat(u64),
    /// All GPUs were sampled.
    Samples(Vec<WireSample>),
    /// Something happened to a GPU.
    GpuEvent(GpuEvent),
    /// The host was read.
    Host(Box<HostReading>),
    /// News of an attempt.
    Report(Report),
    /// Progress and checkpoints of an attempt.
    Note(AttemptNote),
    /// A piece of a log.
    Log(LogPiece),
    /// From the terminal of a job.
    Terminal(TerminalMessage),
    /// An estimate is done, or cannot be.
    Estimated(EstimateAnswer),
    /// The server ends after this time. Nothing new should start there.
    Draining {
        /// Time left, if known.
        left: Option<Seconds>,
        /// The batch system ends it now: what does not succeed from now on is not the job's fault.
        ends_now: bool,
        /// Why, for people.
        reason: String,
    },
    /// The agent ends. All of its attempts have ended and are acknowledged, or are given up.
    Leaving,
}

/// From the manager to an agent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToAgent {
    /// It is one of the manager's servers now. Without an answer to a beat for the time of the lease, it ends its attempts.
    Welcome {
        /// Its number.
        server: ServerId,
        /// The lease.
        lease: Seconds,
        /// Time between two samples.
        period: Seconds,
    },
    /// Try again soon: an earlier agent of the same pilot is not known to have ended.
    Wait {
        /// Why, for people.
        reason: String,
    },
    /// It is not wanted: it ends its attempts and itself.
    Refused {
        /// Why, for people.
        reason: String,
    },
    /// The answer to a beat.
    Beat(u64),
    /// Start an attempt, unless it was started before.
    Start(Box<StartMessage>),
    /// Signal an attempt.
    Signal {
        /// Which.
        attempt: AttemptId,
        /// How.
        signal: Signal,
    },
    /// The end of an attempt is stored.
    Acknowledge(AttemptId),
    /// Ask the driver this often for the activity of processes.
    AskActivity(Option<Seconds>),
    /// For the terminal of a job.
    Terminal(TerminalMessage),
    /// Estimate a job, unless this estimate was started before.
    Estimate(Box<EstimateMessage>),
    /// An estimate is stored, or no longer needed.
    StopEstimate(String),
    /// All other estimates are no longer needed.
    KeepEstimates(Vec<String>),
    /// Sample now.
    Sample,
    /// No attempt is there, and none will come: end.
    Leave,
}

/// An agent introduces itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AgentHello {
    /// The version of its program.
    pub(crate) version: String,
    /// The name of the pilot that it runs in; unset: a server that joins without a pilot.
    pub(crate) pilot: Option<String>,
    /// The server that it is for the manager, if it was welcome before.
    pub(crate) server: Option<ServerId>,
    /// Unique for each agent process.
    pub(crate) incarnation: String,
    /// The number of its batch job.
    pub(crate) batch_job: Option<String>,
    /// The name of its host.
    pub(crate) node: String,
    /// How much faster than real time its clock runs: 1 except on emulated GPUs.
    pub(crate) speed: f64,
    /// Its GPUs and its host.
    pub(crate) facts: ServerFacts,
    /// Time until its batch job ends.
    pub(crate) left: Option<Seconds>,
}

/// A sample of a device, with the owners of its processes: only the agent can look them up.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WireSample {
    pub(crate) device: DeviceUuid,
    pub(crate) reading: Result<Reading, String>,
    pub(crate) counters: Option<Counters>,
    pub(crate) activity: Option<BTreeMap<u32, Fraction>>,
    /// The driver was asked for activity, and does not report it.
    pub(crate) activity_unknown: bool,
    pub(crate) source: Source,
    pub(crate) owners: Vec<(u32, AttemptId)>,
}

impl WireSample {
    /// The activity of processes, if it was asked for.
    pub(crate) fn activity(&mut self) -> Option<ProcessActivity> {
        let known = self.activity.take().map(ProcessActivity::Known);
        known.or_else(|| self.activity_unknown.then_some(ProcessActivity::Unknown))
    }
}

/// An order with everything that the agent needs to start it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StartMessage {
    pub(crate) order: StartOrder,
    pub(crate) request: JobRequest,
}

/// A job to estimate.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EstimateMessage {
    /// Unique for all managers.
    pub(crate) id: String,
    pub(crate) task: EstimateTask,
}

/// The estimate of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EstimateAnswer {
    pub(crate) id: String,
    /// The error is for people.
    pub(crate) result: Result<Box<JobEstimate>, String>,
}

/// A message about a terminal that a client has opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TerminalMessage {
    /// Which client.
    pub(crate) id: u64,
    pub(crate) event: TerminalEvent,
}

/// What happens at a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TerminalEvent {
    /// A client wants the terminal of an attempt.
    Open(AttemptId),
    /// Bytes of its protocol.
    Bytes(#[serde(with = "crate::text_bytes")] Vec<u8>),
    Closed,
}

/// Progress and checkpoints of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct AttemptNote {
    pub(crate) attempt: AttemptId,
    pub(crate) progress: Option<f64>,
    pub(crate) checkpoint: Option<CheckpointTimes>,
}

/// Which log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum LogStream {
    Output,
    Errors,
}

/// A piece of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogPiece {
    pub(crate) attempt: AttemptId,
    pub(crate) stream: LogStream,
    /// Where it begins in the file.
    pub(crate) offset: u64,
    /// The middle of the log was dropped: what was after `offset` is no longer valid.
    pub(crate) replaces: bool,
    #[serde(with = "crate::text_bytes")]
    pub(crate) bytes: Vec<u8>,
}
