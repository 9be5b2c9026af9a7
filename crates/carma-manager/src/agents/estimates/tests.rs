use std::sync::Arc;
use std::thread;

use carma_core::{CollocationMode, DeviceId, Seconds};
use carma_gpu::DeviceUuid;
use carma_gpu::profiling::Target;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::orders::PER_SERVER;
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

fn start(estimates: &Arc<AgentEstimates>, limit: Duration) -> thread::JoinHandle<Result<JobEstimate, String>> {
    let estimates = Arc::clone(estimates);
    thread::spawn(move || estimates.estimate(&task(), wait_for(limit), || true))
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
