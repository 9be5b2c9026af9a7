//! Attempts on the servers of agents. Orders are sent again whenever an agent connects: an agent starts each attempt once.

use std::collections::HashMap;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use carma_core::{AttemptId, ServerId, Signal};

use super::estimates::AgentEstimates;
use super::session::Session;
use super::terminals::Terminals;
use super::{listener, log_copy};
use crate::cluster::ServerFacts;
use crate::executor::{CheckpointTimes, ExecutorError, Report, Requests, StartOrder};
use crate::link::{AttemptNote, LogPiece, StartMessage, TerminalMessage, ToAgent, remove_end};
use crate::pool::Pool;
use crate::supervise::AttemptFolder;
use crate::turns::Limits;

/// Threads that look up requests and send orders.
const THREADS: usize = 2;

/// Runs attempts through agents.
pub(crate) struct AgentExecutor {
    state: PathBuf,
    report: Box<dyn Fn(Report) + Send + Sync>,
    inner: Mutex<Inner>,
    sends: OnceLock<Pool<AttemptId>>,
    terminals: Terminals,
    estimates: AgentEstimates,
}

#[derive(Debug, Default)]
struct Inner {
    sessions: HashMap<ServerId, Session>,
    attempts: HashMap<AttemptId, RemoteAttempt>,
}

/// An attempt on the server of an agent, until its end is stored.
#[derive(Debug)]
struct RemoteAttempt {
    server: ServerId,
    /// Unset until the engine has ordered it again after a restart.
    order: Option<StartOrder>,
    /// All signals so far: they are sent again with the order.
    signals: Vec<Signal>,
    note: Option<AttemptNote>,
}

impl AgentExecutor {
    /// Starts the threads. `report` is called by tasks of connections.
    pub(crate) fn start(
        state: PathBuf,
        mut requests: impl FnMut() -> Result<Requests, ExecutorError>,
        report: impl Fn(Report) + Send + Sync + 'static,
    ) -> Result<Arc<Self>, ExecutorError> {
        let executor = Arc::new(Self {
            state,
            report: Box::new(report),
            inner: Mutex::default(),
            sends: OnceLock::new(),
            terminals: Terminals::default(),
            estimates: AgentEstimates::default(),
        });
        let sends = Pool::start("orders", Limits::at_most(THREADS), || {
            let (request_of, executor): (Requests, Weak<Self>) = (requests()?, Arc::downgrade(&executor));
            Ok::<_, ExecutorError>(move |attempt: AttemptId| {
                let Some(executor) = executor.upgrade() else { return false };
                executor.send_order(attempt, &request_of);
                true
            })
        })?;
        let _ = executor.sends.set(sends);
        Ok(executor)
    }

    /// An agent is welcome: it gets all orders for its server.
    pub(crate) fn connected(&self, server: ServerId, session: Session, facts: &ServerFacts) {
        self.estimates.connected(server, session.clone(), facts);
        let mut inner = self.inner();
        inner.sessions.insert(server, session);
        let ordered = inner.attempts.iter().filter(|(_, known)| known.server == server && known.order.is_some());
        let ordered: Vec<(AttemptId, u32)> =
            ordered.filter_map(|(attempt, known)| Some((*attempt, known.order.as_ref()?.owner.uid))).collect();
        drop(inner);
        for (attempt, user) in ordered {
            self.sends.get().inspect(|sends| sends.add(user, attempt));
        }
    }

    /// The connection of a server is closed.
    pub(crate) fn disconnected(&self, server: ServerId, session: &Session) {
        self.terminals.disconnected(server);
        self.estimates.disconnected(server, session);
        let mut inner = self.inner();
        // Another one may have replaced it.
        if inner.sessions.get(&server).is_some_and(|current| current.is(session)) {
            inner.sessions.remove(&server);
        }
    }

    /// A report of an agent. About an attempt that is no longer known, the agent gets the answer at once.
    pub(super) fn reported(&self, server: ServerId, session: &Session, report: Report) {
        let attempt = match &report {
            Report::Started(attempt)
            | Report::NotLimited { attempt, .. }
            | Report::Ran { attempt, .. }
            | Report::Delayed { attempt, .. }
            | Report::NotStarted { attempt, .. } => *attempt,
            Report::Ended(leftovers) => leftovers.attempt,
        };
        if self.runs_on(attempt, server) {
            return (self.report)(report);
        }
        session.send(match report {
            // Nothing runs without its manager's knowledge.
            Report::NotLimited { .. } | Report::Started(_) | Report::Ran { .. } | Report::Delayed { .. } => {
                ToAgent::Signal { attempt, signal: Signal::Kill }
            }
            Report::NotStarted { .. } | Report::Ended(_) => ToAgent::Acknowledge(attempt),
        });
    }

    /// Estimates by agents.
    pub(crate) fn estimates(&self) -> &AgentEstimates {
        &self.estimates
    }

    /// The terminal of an attempt, if it runs on the server of an agent.
    pub(crate) fn open_terminal(&self, attempt: AttemptId) -> Option<io::Result<UnixStream>> {
        let inner = self.inner();
        let server = inner.attempts.get(&attempt)?.server;
        let Some(session) = inner.sessions.get(&server).cloned() else {
            return Some(Err(io::Error::new(io::ErrorKind::NotConnected, "the agent of its server is not connected")));
        };
        drop(inner);
        Some(self.terminals.open(server, attempt, &session))
    }

    pub(super) fn terminal(&self, server: ServerId, message: TerminalMessage) {
        self.terminals.received(server, message);
    }

    pub(super) fn noted(&self, server: ServerId, note: AttemptNote) {
        let mut inner = self.inner();
        if let Some(known) = inner.attempts.get_mut(&note.attempt).filter(|known| known.server == server) {
            known.note = Some(note);
        }
    }

    /// Copies a piece of a log. A full disk costs some of the log, not the job.
    pub(super) fn log_grew(&self, server: ServerId, piece: &LogPiece) {
        if self.runs_on(piece.attempt, server)
            && let Err(error) = log_copy::write(&self.state, piece)
        {
            listener::warn_rarely(&format!("cannot copy the log of {}: {error}", piece.attempt));
        }
    }

    fn runs_on(&self, attempt: AttemptId, server: ServerId) -> bool {
        self.inner().attempts.get(&attempt).is_some_and(|known| known.server == server)
    }

    pub(super) fn knows(&self, attempt: AttemptId) -> bool {
        self.inner().attempts.contains_key(&attempt)
    }

    /// Takes over an attempt of an earlier manager. The engine orders it again.
    pub(super) fn adopt(&self, attempt: AttemptId, server: ServerId) {
        let adopted = RemoteAttempt { server, order: None, signals: Vec::new(), note: None };
        self.inner().attempts.entry(attempt).or_insert(adopted);
    }

    pub(super) fn retain(&self, wanted: impl Fn(AttemptId) -> bool) {
        self.inner().attempts.retain(|attempt, _| wanted(*attempt));
    }

    pub(super) fn order(&self, order: StartOrder) {
        let (attempt, user) = (order.attempt, order.owner.uid);
        let mut inner = self.inner();
        let server = order.placement.server;
        let known = inner.attempts.entry(attempt).or_insert(RemoteAttempt { server, order: None, signals: Vec::new(), note: None });
        known.order = Some(order);
        let connected = inner.sessions.contains_key(&server);
        drop(inner);
        if connected {
            self.sends.get().inspect(|sends| sends.add(user, attempt));
        }
    }

    fn send_order(&self, attempt: AttemptId, request_of: &Requests) {
        let Some(order) = self.inner().attempts.get(&attempt).and_then(|known| known.order.clone()) else { return };
        let reason = match request_of(attempt.job) {
            Ok(Some(request)) => {
                self.create_job_folder(attempt);
                let inner = self.inner();
                // It may have ended, and the connection with it.
                let (Some(known), Some(session)) = (inner.attempts.get(&attempt), inner.sessions.get(&order.placement.server)) else {
                    return;
                };
                session.send(ToAgent::Start(Box::new(StartMessage { order, request })));
                known.signals.iter().for_each(|signal| session.send(ToAgent::Signal { attempt, signal: *signal }));
                return;
            }
            Ok(None) => format!("the request of {} is no longer known", attempt.job),
            Err(error) => error,
        };
        (self.report)(Report::NotStarted { attempt, reason });
    }

    /// Creates the folder of a job, in which its servers create one for checkpoints, and leave ends that they cannot report. They never create it:
    /// where the manager's disk is not mounted, both would be lost with the server.
    fn create_job_folder(&self, attempt: AttemptId) {
        if let Some(folder) = AttemptFolder::of(&self.state, attempt).path().parent()
            && let Err(error) = DirBuilder::new().recursive(true).mode(0o711).create(folder)
        {
            tracing::warn!("cannot create {}: {error}", folder.display());
        }
    }

    pub(super) fn signal(&self, attempt: AttemptId, signal: Signal) {
        let mut inner = self.inner();
        let Some(known) = inner.attempts.get_mut(&attempt) else { return };
        known.signals.push(signal);
        let server = known.server;
        if let Some(session) = inner.sessions.get(&server) {
            session.send(ToAgent::Signal { attempt, signal });
        }
    }

    pub(super) fn acknowledge(&self, attempt: AttemptId) {
        let mut inner = self.inner();
        let Some(known) = inner.attempts.remove(&attempt) else { return };
        if let Some(session) = inner.sessions.get(&known.server) {
            session.send(ToAgent::Acknowledge(attempt));
        }
        drop(inner);
        // Its agent may have written it down while the manager was away.
        remove_end(&self.state.join("attempts"), attempt);
    }

    pub(super) fn progress(&self, attempt: AttemptId) -> Option<f64> {
        self.inner().attempts.get(&attempt)?.note?.progress
    }

    pub(super) fn checkpoint(&self, attempt: AttemptId) -> Option<CheckpointTimes> {
        self.inner().attempts.get(&attempt)?.note?.checkpoint
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for AgentExecutor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AgentExecutor").field("inner", &self.inner).finish_non_exhaustive()
    }
}
