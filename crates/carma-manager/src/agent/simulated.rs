//! Many agents in one process, for measurements of a manager: real connections and messages, and jobs that end as soon as they are ordered.

use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant, SystemTime};

use super::connection::Connection;
use super::lease::Lease;
use super::run::AgentInput;
use super::server::ServerGpus;
use super::{AgentError, AgentSetup};
use crate::attempt::{Ended, Exit};
use crate::executor::{Leftovers, Report};
use crate::host_gpus::Sampled;
use crate::link::{AgentHello, FromAgent, Secret, StartMessage, ToAgent, WireSample, random_name};
use crate::supervise::since_boot;

/// Between two samples of an agent.
const PERIOD: Duration = Duration::from_secs(1);
/// How long the first sample may take.
const FIRST: Duration = Duration::from_secs(30);

struct Simulated {
    connection: Connection,
    lease: Option<Lease>,
    next_sample: Instant,
}

/// Runs this many agents until the manager closes a connection. All have the GPUs of this setup, on nodes with names of their own.
pub fn simulate(setup: &AgentSetup, count: usize) -> Result<(), AgentError> {
    let secret = Secret::read(&setup.secret)?;
    let (inbox, inputs) = channel();
    let (mut gpus, facts) = ServerGpus::find(setup)?;
    let samples = first_samples(&mut gpus, setup)?;
    let mut agents = Vec::with_capacity(count);
    for number in 0..count {
        let mut connection = Connection::open(&setup.manager, &secret, number as u64, &inbox)?;
        connection.send(&FromAgent::Hello(Box::new(AgentHello {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pilot: None,
            server: None,
            incarnation: random_name()?,
            batch_job: None,
            node: format!("{}-{number}", setup.node),
            speed: setup.world.speed,
            facts: facts.clone(),
            left: None,
        })))?;
        let spread = PERIOD.mul_f64(number as f64 / count as f64);
        agents.push(Simulated { connection, lease: None, next_sample: Instant::now() + PERIOD + spread });
    }
    loop {
        for input in inputs.recv_timeout(Duration::from_millis(5)).into_iter().chain(inputs.try_iter().take(1000)) {
            match input {
                AgentInput::Received { number, message } => {
                    if let Some(agent) = agents.get_mut(number as usize) {
                        agent.received(message)?;
                    }
                }
                AgentInput::Disconnected { reason, .. } => {
                    tracing::info!("the manager is gone: {reason}");
                    return Ok(());
                }
                _ => {}
            }
        }
        for agent in &mut agents {
            agent.tick(&samples)?;
        }
    }
}

/// The constant values of the real sampler.
fn first_samples(gpus: &mut ServerGpus, setup: &AgentSetup) -> Result<Vec<WireSample>, AgentError> {
    let (inbox, inputs): (Sender<AgentInput>, _) = channel();
    gpus.start_sampling(setup, PERIOD, inbox)?;
    let until = Instant::now() + FIRST;
    while let Ok(input) = inputs.recv_timeout(until.saturating_duration_since(Instant::now())) {
        if let AgentInput::Sampled(Sampled::Samples(samples)) = input {
            return Ok(samples.into_iter().filter_map(|sample| gpus.wire_with(sample, Vec::new())).collect());
        }
    }
    Err(AgentError::Executor("the GPUs cannot be sampled".to_owned()))
}

impl Simulated {
    fn received(&mut self, message: ToAgent) -> Result<(), AgentError> {
        match message {
            ToAgent::Welcome { lease, .. } => self.lease = Some(Lease::new(Duration::from_secs_f64(lease.get()), since_boot())),
            ToAgent::Beat(number) => self.lease.iter_mut().for_each(|lease| lease.answered(number)),
            ToAgent::Start(message) => self.start(&message)?,
            ToAgent::Refused { reason } | ToAgent::Wait { reason } => return Err(AgentError::Executor(reason)),
            _ => {}
        }
        Ok(())
    }

    /// The job starts, and succeeds.
    fn start(&mut self, message: &StartMessage) -> Result<(), AgentError> {
        let (attempt, now) = (message.order.attempt, SystemTime::now());
        let ended = Ended { exit: Exit::Code(0), started: now, ended: now, oom_kills: None, at_memory_limit: false };
        let left = Leftovers { attempt, ended: Some(ended), stdout: Vec::new(), stderr: Vec::new(), log_bytes: 0, kernel_log: None };
        self.connection.send(&FromAgent::Report(Report::Started(attempt)))?;
        Ok(self.connection.send(&FromAgent::Report(Report::Ended(Box::new(left))))?)
    }

    fn tick(&mut self, samples: &[WireSample]) -> Result<(), AgentError> {
        let Some(lease) = &mut self.lease else { return Ok(()) };
        if let Some(number) = lease.beat(since_boot()) {
            self.connection.send(&FromAgent::Beat(number))?;
        }
        if Instant::now() >= self.next_sample {
            self.next_sample += PERIOD;
            self.connection.send(&FromAgent::Samples(samples.to_vec()))?;
        }
        Ok(())
    }
}
