//! A connection of an agent, as the engine uses it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use carma_core::{Seconds, ServerId};
use carma_gpu::GpuEvent;
use tokio::sync::mpsc::UnboundedSender;

use crate::host::HostReading;
use crate::link::{AgentHello, ToAgent, WireSample};

/// News of an agent for the engine.
#[derive(Debug)]
pub(crate) enum AgentReport {
    /// An agent connected.
    Hello { hello: Box<AgentHello>, session: Session },
    /// Its GPUs were sampled.
    Samples(Session, Vec<WireSample>),
    /// Something happened to one of its GPUs.
    GpuEvent(Session, GpuEvent),
    /// Its host was read.
    Host(Session, Box<HostReading>),
    /// Nothing new should start there.
    Draining { session: Session, left: Option<Seconds>, ends_now: bool, reason: String },
    /// The connection is closed. `left`: the agent said that it ends.
    Closed { session: Session, left: bool },
}

/// A connection. All copies are the same connection.
#[derive(Debug, Clone)]
pub(crate) struct Session(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    orders: UnboundedSender<ToAgent>,
    server: OnceLock<ServerId>,
    answers: Mutex<Answers>,
}

/// Answered beats renew the lease of an agent, so whether one may be answered is decided under a lock.
#[derive(Debug)]
struct Answers {
    last: Instant,
    closed: bool,
}

impl Session {
    pub(super) fn new(orders: UnboundedSender<ToAgent>) -> Self {
        Self(Arc::new(Shared { orders, server: OnceLock::new(), answers: Mutex::new(Answers { last: Instant::now(), closed: false }) }))
    }

    /// The server of the agent, once it is welcome.
    pub(crate) fn server(&self) -> Option<ServerId> {
        self.0.server.get().copied()
    }

    /// The agent is welcome as this server.
    pub(crate) fn assign(&self, server: ServerId) {
        let _ = self.0.server.set(server);
    }

    /// Whether this is the same connection.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Sends a message, in order. One to a closed connection is lost.
    pub(crate) fn send(&self, message: ToAgent) {
        let _ = self.0.orders.send(message);
    }

    /// Answers a beat, unless the session is closed.
    pub(super) fn answer(&self, beat: u64) {
        let mut answers = self.answers();
        if !answers.closed {
            answers.last = Instant::now();
            self.send(ToAgent::Beat(beat));
        }
    }

    /// How long ago the lease was last renewed.
    pub(crate) fn silent(&self) -> Duration {
        self.answers().last.elapsed()
    }

    /// Renews the lease no more. Returns how long ago it was last renewed.
    pub(crate) fn close(&self) -> Duration {
        let mut answers = self.answers();
        answers.closed = true;
        answers.last.elapsed()
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.0.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
