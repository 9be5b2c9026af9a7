//! The servers of agents, and the estimates that they do.

use std::collections::{BTreeMap, HashMap};

use carma_core::{MiB, ServerId};

use crate::agents::session::Session;
use crate::estimator::EstimateTask;
use crate::event::JobEstimate;
use crate::link::{EstimateMessage, ToAgent};

/// Estimates on a server at the same time: they compete with its jobs for cores.
pub(super) const PER_SERVER: usize = 2;

/// The connected servers, and the orders without a final answer.
#[derive(Debug, Default)]
pub(super) struct Orders {
    pub(super) servers: BTreeMap<ServerId, Server>,
    pub(super) by_id: HashMap<String, Order>,
}

/// A server whose agent is connected.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) session: Session,
    pub(super) gpus: usize,
    /// Memory of its smallest GPU.
    pub(super) memory: MiB,
    /// The type of its GPUs.
    pub(super) gpu_type: Option<String>,
    /// It ends soon, or is returned.
    pub(super) closed: bool,
}

/// An estimate that a server does.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) server: ServerId,
    message: EstimateMessage,
    pub(super) answer: Option<Result<Box<JobEstimate>, String>>,
}

/// The result of an attempt to place an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placed {
    /// A server got the order.
    Sent,
    /// All suitable servers are busy.
    Busy,
    /// No server is suitable.
    NoServer,
}

impl Orders {
    /// Orders that a server has not answered.
    pub(super) fn waiting_on(&self, server: ServerId) -> impl Iterator<Item = &EstimateMessage> {
        self.by_id.values().filter(move |order| order.server == server && order.answer.is_none()).map(|order| &order.message)
    }

    /// Sends an order to the suitable server with the fewest.
    pub(super) fn place(&mut self, id: &str, task: &EstimateTask) -> Placed {
        let suitable = || self.servers.iter().filter(|(_, server)| server.could_run(task)).map(|(id, _)| *id);
        let load = |server: &ServerId| self.waiting_on(*server).count();
        match suitable().filter(|server| load(server) < PER_SERVER).min_by_key(load) {
            Some(server) => {
                self.send(id, server, task);
                Placed::Sent
            }
            None if suitable().next().is_some() => Placed::Busy,
            None => Placed::NoServer,
        }
    }

    fn send(&mut self, id: &str, server: ServerId, task: &EstimateTask) {
        let Some(known) = self.servers.get(&server) else { return };
        let gpu = task.gpu.clone().or_else(|| known.gpu_type.clone());
        let message = EstimateMessage { id: id.to_owned(), task: EstimateTask { gpu, ..task.clone() } };
        known.session.send(ToAgent::Estimate(Box::new(message.clone())));
        self.by_id.insert(id.to_owned(), Order { server, message, answer: None });
    }
}

impl Server {
    fn could_run(&self, task: &EstimateTask) -> bool {
        let resources = &task.request.resources;
        let has_memory = resources.memory.is_none_or(|memory| memory <= self.memory);
        !self.closed && self.gpus >= resources.gpus as usize && has_memory
    }
}
