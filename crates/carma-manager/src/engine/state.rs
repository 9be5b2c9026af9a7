//! The state of the engine's thread: all its parts. What the engine does is in the modules that use it.

use std::sync::mpsc::Sender;
use std::time::Instant;

use super::accounting::Accounting;
use super::attempts::Attempts;
use super::cancellations::Cancellations;
use super::decide::Decisions;
use super::estimates::Estimates;
use super::gpus::Gpus;
use super::host::Host;
use super::input::Input;
use super::jobs::Jobs;
use super::keyed::KeyedSubmissions;
use super::listeners::Listeners;
use super::log_space::LogSpace;
use super::pools::Pools;
use super::predictions::Predictions;
use super::secrets::SecretCleaner;
use super::servers::RemoteServers;
use super::setup::Setup;
use super::task::Task;
use super::timetable::Timetable;
use super::views::View;
use super::writer::Writer;
use crate::heartbeat::Heartbeats;
use crate::store::{Reader, UnixMillis};
use crate::turns::Turns;

/// The condition of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    /// It works.
    Working,
    /// Its decisions cannot be stored, or the GPUs cannot be read.
    Unavailable { reason: String, since: Instant },
    /// It ends when the batch in flight is written.
    Stopping,
    /// Another manager uses the store: the engine ends at once.
    TakenOver,
}

/// The state of the engine's thread.
pub(crate) struct EngineState {
    pub(crate) setup: Setup,
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
    pub(crate) listeners: Listeners,
    pub(crate) decisions: Decisions,
    pub(crate) jobs: Jobs,
    pub(crate) attempts: Attempts,
    pub(crate) gpus: Gpus,
    pub(crate) servers: RemoteServers,
    pub(crate) pools: Pools,
    pub(crate) accounting: Accounting,
    pub(crate) log_space: LogSpace,
    pub(crate) estimates: Estimates,
    pub(crate) predictions: Predictions,
    pub(crate) host: Host,
    pub(crate) timetable: Timetable,
    pub(crate) secrets: SecretCleaner,
    pub(crate) keyed: KeyedSubmissions,
    pub(crate) cancellations: Cancellations,
    /// Tasks of users that are not done.
    pub(crate) tasks: Turns<Task>,
    pub(crate) condition: Condition,
    /// Nothing more is launched, and the engine ends with the last attempt.
    pub(crate) draining: bool,
    pub(crate) started: UnixMillis,
    pub(crate) heartbeats: Heartbeats,
    /// For threads that are started later.
    pub(crate) inputs: Sender<Input>,
}

impl EngineState {
    /// The state for answers that change nothing.
    pub(crate) fn view(&self) -> View<'_> {
        let unavailable = match &self.condition {
            Condition::Unavailable { reason, .. } => Some(reason.as_str()),
            Condition::Working | Condition::Stopping | Condition::TakenOver => None,
        };
        View {
            setup: &self.setup,
            decisions: &self.decisions,
            jobs: &self.jobs,
            attempts: &self.attempts,
            gpus: &self.gpus,
            servers: &self.servers,
            pools: &self.pools,
            accounting: &self.accounting,
            predictions: &self.predictions,
            host: &self.host,
            started: self.started,
            heartbeats: &self.heartbeats,
            draining: self.draining,
            unavailable,
        }
    }
}
