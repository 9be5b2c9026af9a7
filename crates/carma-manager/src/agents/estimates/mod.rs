//! Estimates by agents: each is given to a server that could run the job, and to another one if that is lost.

mod orders;
#[cfg(test)]
mod tests;

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use carma_core::{MiB, ServerId};

use self::orders::{Orders, Placed, Server};
use super::session::Session;
use crate::cluster::ServerFacts;
use crate::estimator::EstimateTask;
use crate::event::JobEstimate;
use crate::link::{EstimateAnswer, EstimateMessage, ToAgent, random_name};

/// How many servers may be lost before the job continues without an estimate.
const TRIES: usize = 3;
/// How long an agent may take to reconnect.
const RECONNECT: Duration = Duration::from_secs(10);
/// An agent that is busy may answer this much later than the time limit of an estimate.
const ANSWER_GRACE: Duration = Duration::from_secs(60);
/// How often a waiting thread checks whether the estimate is still needed.
const PERIOD: Duration = Duration::from_millis(200);

/// The estimates of all agents.
#[derive(Debug, Default)]
pub(crate) struct AgentEstimates {
    orders: Mutex<Orders>,
    changed: Condvar,
}

/// How long an estimate waits while no agent could do it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgentWait {
    pub(crate) since: Instant,
    pub(crate) limit: Duration,
}

/// The result of an estimate on one server.
enum Outcome {
    Answered(Result<Box<JobEstimate>, String>),
    Lost,
}

impl AgentEstimates {
    /// An agent has connected. It gets all orders of its server again, and stops all others.
    pub(super) fn connected(&self, server: ServerId, session: Session, facts: &ServerFacts) {
        let mut orders = self.lock();
        let waiting: Vec<&EstimateMessage> = orders.waiting_on(server).collect();
        session.send(ToAgent::KeepEstimates(waiting.iter().map(|message| message.id.clone()).collect()));
        for message in waiting {
            session.send(ToAgent::Estimate(Box::new(message.clone())));
        }
        let known = Server {
            session,
            gpus: facts.devices.len(),
            memory: facts.devices.iter().map(|device| device.memory).min().unwrap_or(MiB::ZERO),
            gpu_type: facts.devices.first().map(|device| device.name.clone()),
            closed: false,
        };
        orders.servers.insert(server, known);
        self.changed.notify_all();
    }

    pub(super) fn disconnected(&self, server: ServerId, session: &Session) {
        let mut orders = self.lock();
        // Another connection may have replaced it.
        if orders.servers.get(&server).is_some_and(|known| known.session.is(session)) {
            orders.servers.remove(&server);
            self.changed.notify_all();
        }
    }

    /// A server gets no new estimates.
    pub(crate) fn close(&self, server: ServerId) {
        self.lock().servers.get_mut(&server).into_iter().for_each(|known| known.closed = true);
    }

    /// Whether a server has an estimate to do.
    pub(crate) fn is_busy(&self, server: ServerId) -> bool {
        self.lock().waiting_on(server).next().is_some()
    }

    /// An answer of an agent. One that was given up is dropped.
    pub(super) fn answered(&self, server: ServerId, session: &Session, answer: EstimateAnswer) {
        session.send(ToAgent::StopEstimate(answer.id.clone()));
        if let Some(order) = self.lock().by_id.get_mut(&answer.id).filter(|order| order.server == server) {
            order.answer = Some(answer.result);
            self.changed.notify_all();
        }
    }

    /// Gets an estimate from an agent that could run the job. The error is for people.
    pub(crate) fn estimate(&self, task: &EstimateTask, mut wait: AgentWait, is_needed: impl Fn() -> bool) -> Result<JobEstimate, String> {
        for _ in 0..TRIES {
            let id = self.ask(task, &mut wait, &is_needed)?;
            let outcome = self.wait(&id, task.limit() + ANSWER_GRACE, &is_needed);
            self.forget(&id);
            if let Outcome::Answered(answer) = outcome {
                return answer.map(|estimate| *estimate);
            }
            wait.since = Instant::now();
        }
        Err(format!("no estimate: {TRIES} servers were lost during the dry run"))
    }

    /// Asks a server, once there is one.
    fn ask(&self, task: &EstimateTask, wait: &mut AgentWait, is_needed: &impl Fn() -> bool) -> Result<String, String> {
        let id = random_name().map_err(|error| format!("no estimate: {error}"))?;
        let mut orders = self.lock();
        loop {
            if !is_needed() {
                return Err(NOT_NEEDED.to_owned());
            }
            match orders.place(&id, task) {
                Placed::Sent => return Ok(id),
                Placed::Busy => wait.since = Instant::now(),
                Placed::NoServer if wait.since.elapsed() < wait.limit => {}
                Placed::NoServer => {
                    return Err(match wait.limit.as_secs() {
                        0 => "no estimate: no agent is ready for a dry run".to_owned(),
                        seconds => format!("no estimate: no agent was ready for a dry run within {seconds} s"),
                    });
                }
            }
            orders = self.changed.wait_timeout(orders, PERIOD).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for the answer to an order.
    fn wait(&self, id: &str, limit: Duration, is_needed: &impl Fn() -> bool) -> Outcome {
        let since = Instant::now();
        let mut last_seen = since;
        let mut orders = self.lock();
        loop {
            let Some(order) = orders.by_id.get_mut(id) else { return Outcome::Lost };
            let server = order.server;
            if let Some(answer) = order.answer.take() {
                return Outcome::Answered(answer);
            }
            if !is_needed() {
                return Outcome::Answered(Err(NOT_NEEDED.to_owned()));
            }
            if since.elapsed() > limit {
                return Outcome::Answered(Err(format!("no estimate: the agent of {server} did not answer within {} s", limit.as_secs())));
            }
            if orders.servers.contains_key(&server) {
                last_seen = Instant::now();
            } else if last_seen.elapsed() > RECONNECT {
                return Outcome::Lost;
            }
            orders = self.changed.wait_timeout(orders, PERIOD).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// An order is done or given up: its agent stops.
    fn forget(&self, id: &str) {
        let mut orders = self.lock();
        if let Some(order) = orders.by_id.remove(id)
            && let Some(server) = orders.servers.get(&order.server)
        {
            server.session.send(ToAgent::StopEstimate(id.to_owned()));
        }
        // The server can take another one.
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const NOT_NEEDED: &str = "no estimate: it is no longer needed";
