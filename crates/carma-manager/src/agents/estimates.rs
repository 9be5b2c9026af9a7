//! Estimates by agents: each is given to a server that could run the job, and to another one if that is lost.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use carma_core::{MiB, ServerId};

use super::session::Session;
use crate::cluster::ServerFacts;
use crate::estimator::EstimateTask;
use crate::event::JobEstimate;
use crate::link::{EstimateAnswer, EstimateMessage, ToAgent, random_name};

/// Estimates on a server at the same time: they compete with its jobs for cores.
const PER_SERVER: usize = 2;
/// How many servers may be lost before the job goes on without an estimate.
const TRIES: usize = 3;
/// How long an agent that lost its connection may take to come back.
const RECONNECT: Duration = Duration::from_secs(10);
/// An agent that is busy may answer this much later than the time limit of an estimate.
const ANSWER_GRACE: Duration = Duration::from_secs(60);
/// How often a waiting thread looks whether the estimate is still needed.
const PERIOD: Duration = Duration::from_millis(200);

/// The estimates of all agents.
#[derive(Debug, Default)]
pub(crate) struct AgentEstimates {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    servers: BTreeMap<ServerId, Server>,
    asked: HashMap<String, Asked>,
}

/// A server whose agent is connected.
#[derive(Debug)]
struct Server {
    session: Session,
    gpus: usize,
    /// Memory of its smallest GPU.
    memory: MiB,
    /// The kind of its GPUs.
    kind: Option<String>,
    /// It ends soon, or is returned.
    closed: bool,
}

/// An estimate that an agent has been asked for.
#[derive(Debug)]
struct Asked {
    server: ServerId,
    message: EstimateMessage,
    answer: Option<Result<Box<JobEstimate>, String>>,
}

/// How long an estimate waits while no agent could do it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgentWait {
    pub(crate) since: Instant,
    pub(crate) limit: Duration,
}

/// How an estimate of one server came out.
enum Outcome {
    Answered(Result<Box<JobEstimate>, String>),
    Lost,
}

impl AgentEstimates {
    /// An agent is welcome: it gets all orders for its server again, and stops all others.
    pub(super) fn connected(&self, server: ServerId, session: Session, facts: &ServerFacts) {
        let mut inner = self.lock();
        let asked: Vec<&EstimateMessage> = inner.waiting_on(server).collect();
        session.send(ToAgent::KeepEstimates(asked.iter().map(|message| message.id.clone()).collect()));
        for message in asked {
            session.send(ToAgent::Estimate(Box::new(message.clone())));
        }
        let known = Server {
            session,
            gpus: facts.devices.len(),
            memory: facts.devices.iter().map(|device| device.memory).min().unwrap_or(MiB::ZERO),
            kind: facts.devices.first().map(|device| device.name.clone()),
            closed: false,
        };
        inner.servers.insert(server, known);
        self.changed.notify_all();
    }

    pub(super) fn disconnected(&self, server: ServerId, session: &Session) {
        let mut inner = self.lock();
        // Another connection may have replaced it.
        if inner.servers.get(&server).is_some_and(|known| known.session.is(session)) {
            inner.servers.remove(&server);
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
        if let Some(asked) = self.lock().asked.get_mut(&answer.id).filter(|asked| asked.server == server) {
            asked.answer = Some(answer.result);
            self.changed.notify_all();
        }
    }

    /// Has a job estimated by an agent that could run it, and waits for the answer; the error is for people.
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
        let mut inner = self.lock();
        loop {
            if !is_needed() {
                return Err(NOT_NEEDED.to_owned());
            }
            let able: Vec<ServerId> = inner.servers.iter().filter(|(_, server)| server.could_run(task)).map(|(id, _)| *id).collect();
            let load = |server: &ServerId| inner.waiting_on(*server).count();
            if let Some(server) = able.iter().copied().filter(|server| load(server) < PER_SERVER).min_by_key(load) {
                inner.send(id.clone(), server, task);
                return Ok(id);
            }
            if !able.is_empty() {
                // It has others to estimate first.
                wait.since = Instant::now();
            } else if wait.since.elapsed() >= wait.limit {
                return Err(match wait.limit.as_secs() {
                    0 => "no estimate: no agent is ready for a dry run".to_owned(),
                    seconds => format!("no estimate: no agent was ready for a dry run within {seconds} s"),
                });
            }
            inner = self.changed.wait_timeout(inner, PERIOD).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for the answer to an order.
    fn wait(&self, id: &str, limit: Duration, is_needed: &impl Fn() -> bool) -> Outcome {
        let since = Instant::now();
        let mut last_seen = since;
        let mut inner = self.lock();
        loop {
            let Some(asked) = inner.asked.get_mut(id) else { return Outcome::Lost };
            let server = asked.server;
            if let Some(answer) = asked.answer.take() {
                return Outcome::Answered(answer);
            }
            if !is_needed() {
                return Outcome::Answered(Err(NOT_NEEDED.to_owned()));
            }
            if since.elapsed() > limit {
                return Outcome::Answered(Err(format!("no estimate: the agent of {server} did not answer within {} s", limit.as_secs())));
            }
            if inner.servers.contains_key(&server) {
                last_seen = Instant::now();
            } else if last_seen.elapsed() > RECONNECT {
                return Outcome::Lost;
            }
            inner = self.changed.wait_timeout(inner, PERIOD).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// An order is done or given up: its agent stops.
    fn forget(&self, id: &str) {
        let mut inner = self.lock();
        if let Some(asked) = inner.asked.remove(id)
            && let Some(server) = inner.servers.get(&asked.server)
        {
            server.session.send(ToAgent::StopEstimate(id.to_owned()));
        }
        // The server can take another one.
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const NOT_NEEDED: &str = "no estimate: it is no longer needed";

impl Inner {
    /// Orders that a server has not answered.
    fn waiting_on(&self, server: ServerId) -> impl Iterator<Item = &EstimateMessage> {
        self.asked.values().filter(move |asked| asked.server == server && asked.answer.is_none()).map(|asked| &asked.message)
    }

    fn send(&mut self, id: String, server: ServerId, task: &EstimateTask) {
        let Some(known) = self.servers.get(&server) else { return };
        let gpu = task.gpu.clone().or_else(|| known.kind.clone());
        let message = EstimateMessage { id: id.clone(), task: EstimateTask { gpu, ..task.clone() } };
        known.session.send(ToAgent::Estimate(Box::new(message.clone())));
        self.asked.insert(id, Asked { server, message, answer: None });
    }
}

impl Server {
    fn could_run(&self, task: &EstimateTask) -> bool {
        let resources = &task.request.resources;
        let has_memory = resources.memory.is_none_or(|memory| memory <= self.memory);
        !self.closed && self.gpus >= resources.gpus as usize && has_memory
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use carma_core::{CollocationMode, DeviceId, Seconds};
    use carma_gpu::DeviceUuid;
    use carma_gpu::profiling::Target;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;
    use crate::estimator::Method;
    use crate::host_gpus::Device;
    use crate::request::{JobCommand, JobRequest, Owner};

    const SHORT: Duration = Duration::from_secs(20);

    fn task() -> EstimateTask {
        EstimateTask {
            job: None,
            request: JobRequest::new(JobCommand::Program(vec!["python".to_owned(), "train.py".to_owned()]), "/tmp"),
            owner: Owner { uid: 1, gid: 1, name: "ada".to_owned() },
            method: Method::DryRun,
            gpu: None,
            seconds: Seconds::from_secs(5),
            python: "python3".into(),
        }
    }

    fn facts(gpus: u16) -> ServerFacts {
        let device = |ordinal| {
            let uuid: DeviceUuid = format!("GPU-0000000{ordinal}-0000-0000-0000-000000000000").parse().unwrap();
            Device {
                id: DeviceId::gpu(ServerId(1), ordinal),
                target: Target::gpu(uuid.clone()),
                uuid,
                file: None,
                name: "NVIDIA A100-SXM4-40GB".to_owned(),
                memory: MiB(40_960),
                mode: CollocationMode::Streams,
                power: None,
                limits_memory: false,
            }
        };
        ServerFacts { devices: (0..gpus).map(device).collect(), topology: None, cores: None, host_memory: None }
    }

    struct Agent {
        server: ServerId,
        session: Session,
        orders: UnboundedReceiver<ToAgent>,
    }

    impl Agent {
        fn connect(estimates: &AgentEstimates, number: u32, gpus: u16) -> Self {
            let (sender, orders) = unbounded_channel();
            let (session, server) = (Session::new(sender), ServerId(number));
            estimates.connected(server, session.clone(), &facts(gpus));
            Self { server, session, orders }
        }

        /// The next order for an estimate.
        fn order(&mut self) -> EstimateMessage {
            let until = Instant::now() + SHORT;
            loop {
                match self.orders.try_recv() {
                    Ok(ToAgent::Estimate(message)) => return *message,
                    Ok(_) => {}
                    Err(_) => {
                        assert!(Instant::now() < until, "nothing is ordered");
                        thread::sleep(Duration::from_millis(5));
                    }
                }
            }
        }

        fn answer(&self, estimates: &AgentEstimates, id: &str, source: &str) {
            let result = Ok(Box::new(JobEstimate { source: Some(source.to_owned()), ..JobEstimate::default() }));
            estimates.answered(self.server, &self.session, EstimateAnswer { id: id.to_owned(), result });
        }

        fn disconnect(self, estimates: &AgentEstimates) {
            estimates.disconnected(self.server, &self.session);
        }
    }

    fn wait_for(limit: Duration) -> AgentWait {
        AgentWait { since: Instant::now(), limit }
    }

    fn start(estimates: &Arc<AgentEstimates>, patience: Duration) -> thread::JoinHandle<Result<JobEstimate, String>> {
        let estimates = Arc::clone(estimates);
        thread::spawn(move || estimates.estimate(&task(), wait_for(patience), || true))
    }

    #[test]
    fn an_estimate_waits_for_an_agent_that_could_run_the_job() {
        let estimates = Arc::new(AgentEstimates::default());
        let small = Agent::connect(&estimates, 1, 0);
        let waiting = start(&estimates, SHORT);
        let mut agent = Agent::connect(&estimates, 2, 1);
        let order = agent.order();
        assert!(estimates.is_busy(agent.server) && !estimates.is_busy(small.server));
        assert_eq!(order.task.gpu.as_deref(), Some("NVIDIA A100-SXM4-40GB"), "of that server");
        // Another server cannot answer it.
        small.answer(&estimates, &order.id, "wrong");
        agent.answer(&estimates, &order.id, "dry-run");
        assert_eq!(waiting.join().unwrap().unwrap().source.as_deref(), Some("dry-run"));
        assert!(!estimates.is_busy(agent.server));
    }

    #[test]
    fn without_an_agent_the_job_continues() {
        let estimates = Arc::new(AgentEstimates::default());
        let reason = start(&estimates, Duration::ZERO).join().unwrap().unwrap_err();
        assert_eq!(reason, "no estimate: no agent is ready for a dry run");
        let agent = Agent::connect(&estimates, 1, 1);
        estimates.close(agent.server);
        // The wait counts from the order, not from when a thread is free.
        let before = AgentWait { since: Instant::now().checked_sub(SHORT).unwrap(), limit: SHORT };
        assert!(estimates.estimate(&task(), before, || true).is_err());
        let reason = start(&estimates, Duration::from_secs(1)).join().unwrap().unwrap_err();
        assert_eq!(reason, "no estimate: no agent was ready for a dry run within 1 s");
    }

    #[test]
    fn an_agent_that_connects_again_gets_the_same_order_and_no_others() {
        let estimates = Arc::new(AgentEstimates::default());
        let mut agent = Agent::connect(&estimates, 1, 1);
        let waiting = start(&estimates, SHORT);
        let order = agent.order();
        agent.disconnect(&estimates);
        let mut again = Agent::connect(&estimates, 1, 1);
        assert!(matches!(again.orders.try_recv(), Ok(ToAgent::KeepEstimates(ids)) if ids == [order.id.clone()]));
        assert_eq!(again.order().id, order.id);
        again.answer(&estimates, &order.id, "dry-run");
        assert!(waiting.join().unwrap().is_ok());
    }

    #[test]
    fn a_lost_agent_is_replaced_by_another() {
        let estimates = Arc::new(AgentEstimates::default());
        let mut first = Agent::connect(&estimates, 1, 1);
        let waiting = start(&estimates, SHORT);
        let order = first.order();
        let mut second = Agent::connect(&estimates, 2, 1);
        first.disconnect(&estimates);
        let again = second.order();
        assert_ne!(again.id, order.id);
        second.answer(&estimates, &again.id, "dry-run");
        assert!(waiting.join().unwrap().is_ok());
    }

    #[test]
    fn a_server_has_a_few_estimates_at_a_time_and_one_that_is_not_needed_is_stopped() {
        let estimates = Arc::new(AgentEstimates::default());
        let mut agent = Agent::connect(&estimates, 1, 1);
        let needed = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let (watched, shared) = (Arc::clone(&needed), Arc::clone(&estimates));
        let is_needed = move || watched.load(std::sync::atomic::Ordering::Relaxed);
        let stopped = thread::spawn(move || shared.estimate(&task(), wait_for(Duration::ZERO), is_needed));
        let first = agent.order();
        let others: Vec<_> = (1..=PER_SERVER).map(|_| start(&estimates, Duration::ZERO)).collect();
        let second = agent.order();
        thread::sleep(2 * PERIOD);
        assert!(agent.orders.try_recv().is_err(), "the third waits");
        needed.store(false, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(stopped.join().unwrap().unwrap_err(), NOT_NEEDED);
        assert!(matches!(agent.orders.blocking_recv(), Some(ToAgent::StopEstimate(id)) if id == first.id));
        let third = agent.order();
        for order in [second, third] {
            agent.answer(&estimates, &order.id, "dry-run");
        }
        assert!(others.into_iter().all(|other| other.join().unwrap().is_ok()));
    }
}
