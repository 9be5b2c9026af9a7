//! What the agent says to the manager, and what it does with the answers.

use std::time::{Duration, Instant};

use carma_core::{Seconds, ServerId};

use super::AgentEnd;
use super::connection::Connection;
use super::lease::Lease;
use super::run::{Agent, RECONNECT};
use crate::executor::Executor;
use crate::link::{AgentHello, FromAgent, ToAgent};
use crate::supervise::since_boot;

impl Agent {
    /// Connects, if it is time to.
    pub(super) fn connect(&mut self) {
        if self.connection.is_some() || Instant::now() < self.next_try || self.is_given_up() {
            return;
        }
        self.connections += 1;
        self.welcomed = false;
        match Connection::open(&self.setup.manager, &self.secret, self.connections, &self.inbox) {
            Ok(connection) => {
                (self.connection, self.connected) = (Some(connection), Instant::now());
                self.greeted = since_boot();
                let hello = self.hello();
                self.send(&FromAgent::Hello(Box::new(hello)));
            }
            Err(error) => self.disconnected(&error.to_string()),
        }
    }

    pub(super) fn hello(&self) -> AgentHello {
        AgentHello {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pilot: self.setup.pilot.clone(),
            server: self.server,
            incarnation: self.incarnation.clone(),
            batch_job: self.setup.batch_job.clone(),
            node: self.setup.node.clone(),
            speed: self.setup.world.speed,
            facts: self.facts.clone(),
            left: self.left(),
        }
    }

    /// Time until the batch job ends.
    pub(super) fn left(&self) -> Option<Seconds> {
        self.setup.left.map(|left| seconds(left.saturating_sub(self.started.elapsed())))
    }

    pub(super) fn disconnected(&mut self, reason: &str) {
        if self.delay == RECONNECT.0 {
            tracing::warn!("no connection to the manager, trying again: {reason}");
        }
        self.connection = None;
        self.welcomed = false;
        self.terminals.close_all();
        self.next_try = Instant::now() + self.delay;
        self.delay = (self.delay * 2).min(RECONNECT.1);
    }

    pub(super) fn send(&mut self, message: &FromAgent) {
        let Some(connection) = &mut self.connection else { return };
        if let Err(error) = connection.send(message) {
            self.disconnected(&error.to_string());
        }
    }

    /// Sends what only a manager that knows this server understands.
    pub(super) fn tell(&mut self, message: &FromAgent) {
        if self.welcomed {
            self.send(message);
        }
    }

    pub(super) fn received(&mut self, message: ToAgent) {
        match message {
            ToAgent::Welcome { server, lease, period } => self.welcome(server, lease, period),
            ToAgent::Wait { reason } => {
                tracing::info!("the manager does not accept this server yet: {reason}");
                self.delay = Duration::from_secs(1);
                self.renew(|lease| lease.extend(since_boot()));
                self.disconnected(&reason);
            }
            ToAgent::Refused { reason } => {
                tracing::warn!("the manager refuses this agent: {reason}");
                self.give_up(AgentEnd::Refused(reason));
            }
            ToAgent::Beat(number) => self.answered(number),
            ToAgent::Start(message) => {
                if self.ending.is_none() {
                    self.attempts.start(*message, &self.executor);
                }
            }
            ToAgent::Signal { attempt, signal } => self.executor.signal(attempt, signal),
            ToAgent::Acknowledge(attempt) => self.attempts.acknowledge(attempt, &self.executor),
            ToAgent::AskActivity(every) => self.gpus.ask_activity(every.map(|every| Duration::from_secs_f64(every.get()))),
            ToAgent::Terminal(message) => self.terminals.received(message, &self.setup.folder, &self.inbox),
            ToAgent::Estimate(message) => {
                if self.ending.is_none()
                    && let Some(answer) = self.estimates.start(*message, &self.inbox)
                {
                    self.tell(&answer);
                }
            }
            ToAgent::StopEstimate(id) => self.estimates.stop(&id),
            ToAgent::KeepEstimates(ids) => self.estimates.keep(&ids),
            ToAgent::Sample => self.gpus.sample_now(),
            ToAgent::Leave => self.end(AgentEnd::Done("the manager returned this server".to_owned()), Duration::ZERO),
        }
    }

    pub(super) fn welcome(&mut self, server: ServerId, lease: Seconds, period: Seconds) {
        tracing::info!("the manager knows this server as {server}");
        self.server = Some(server);
        (self.welcomed, self.delay) = (true, RECONNECT.0);
        let asked = self.greeted;
        self.renew(|known| known.granted(Duration::from_secs_f64(lease.get()), asked));
        if let Err(error) = self.gpus.start_sampling(&self.setup, Duration::from_secs_f64(period.get()), self.inbox.clone()) {
            tracing::error!("cannot sample the GPUs: {error}");
        }
        for report in self.attempts.report_again(&self.executor) {
            self.tell(&report);
        }
        self.tell_draining();
    }

    /// Changes the lease, and tells the guards.
    pub(super) fn renew(&mut self, change: impl FnOnce(&mut Lease)) {
        let before = self.lease.until();
        change(&mut self.lease);
        if let Err(error) = self.lifeline.renew(self.lease.until()) {
            tracing::error!("cannot renew the lease: {error}");
        }
        // A guard may have seen that it was over: then it stays over.
        if since_boot() > before {
            self.lose_lease();
        }
    }
}

fn seconds(duration: Duration) -> Seconds {
    Seconds::new(duration.as_secs_f64()).unwrap_or(Seconds::ZERO)
}
