//! The agent's loop: one thread that takes all inputs and talks to the manager.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use carma_core::{AttemptId, ServerId};

use super::attempts::{AgentAttempts, KnownRequests};
use super::connection::Connection;
use super::estimates::AgentEstimates;
use super::folder::AgentFolder;
use super::held_ends::HeldEnds;
use super::lease::Lease;
use super::server::ServerGpus;
use super::terminals::{AgentTerminals, TerminalInput};
use super::{AgentEnd, AgentError, AgentSetup, signals};
use crate::attempt::Exit;
use crate::cluster::ServerFacts;
use crate::estimator::Estimator;
use crate::executor::{ExecutorError, Leftovers, LocalExecutor, LocalSettings, Report};
use crate::heartbeat::Heartbeats;
use crate::host;
use crate::host_gpus::Sampled;
use crate::link::{EstimateAnswer, FromAgent, Secret, ToAgent, random_name};
use crate::supervise::{LaunchServer, Lifeline, since_boot};

/// How long an agent tries to reach its manager before it has a lease.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(300);
/// How often the loop checks logs, notes and times.
const TICK: Duration = Duration::from_millis(200);
/// A manager that does not welcome a connected agent for this long is asked again.
const HELLO_TIMEOUT: Duration = Duration::from_secs(15);
/// Attempts that were asked to end are killed after this time: batch systems kill everything after 30 s.
const GRACE: Duration = Duration::from_secs(20);
/// How long an ending agent waits for the last answers of the manager.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Between two tries to connect: at first, and at most.
pub(super) const RECONNECT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// An input of the agent.
#[derive(Debug)]
pub(super) enum AgentInput {
    Received { number: u64, message: ToAgent },
    Disconnected { number: u64, reason: String },
    Sampled(Sampled),
    Host(Box<host::HostReading>),
    Report(Report),
    Terminal(TerminalInput),
    Estimated(EstimateAnswer),
    EndAnnounced,
    EndRequested,
}

/// The agent ends.
#[derive(Debug)]
pub(super) struct Ending {
    end: AgentEnd,
    since: Instant,
    /// Attempts have this long to end.
    grace: Duration,
    killed: bool,
}

pub(super) struct Agent {
    pub(super) setup: AgentSetup,
    pub(super) secret: Secret,
    pub(super) inbox: Sender<AgentInput>,
    pub(super) executor: LocalExecutor,
    pub(super) attempts: AgentAttempts,
    pub(super) terminals: AgentTerminals,
    pub(super) estimates: AgentEstimates,
    pub(super) gpus: ServerGpus,
    pub(super) facts: ServerFacts,
    pub(super) lifeline: Arc<Lifeline>,
    pub(super) incarnation: String,
    /// Unset until it is welcome.
    pub(super) server: Option<ServerId>,
    pub(super) started: Instant,
    pub(super) connection: Option<Connection>,
    pub(super) connected: Instant,
    pub(super) connections: u64,
    pub(super) welcomed: bool,
    pub(super) next_try: Instant,
    pub(super) delay: Duration,
    pub(super) lease: Lease,
    /// When this connection was opened, since boot.
    pub(super) greeted: Duration,
    /// Why nothing new starts here, and whether the batch system ends it now.
    pub(super) draining: Option<(String, bool)>,
    held: HeldEnds,
    pub(super) ending: Option<Ending>,
}

/// Runs an agent until its manager, its batch system or its lease ends it.
pub fn run(setup: AgentSetup) -> Result<AgentEnd, AgentError> {
    let secret = Secret::read(&setup.secret)?;
    let folder = AgentFolder::create(&setup.folder)?;
    folder.remove_dead_ones()?;
    let (inbox, inputs) = channel();
    signals::watch(inbox.clone())?;
    let lifeline = Arc::new(Lifeline::new(setup.folder.join("lease"), CONNECT_TIMEOUT)?);
    let launch_server = Arc::new(LaunchServer::on_lifeline(&setup.launch_program, Arc::clone(&lifeline)));
    let estimator = Estimator::new(setup.program.clone(), setup.folder.join("estimates"), Arc::clone(&launch_server));
    let requests = KnownRequests::default();
    let settings = LocalSettings {
        state: setup.folder.clone(),
        program: setup.program.clone(),
        launch_server,
        processes: None,
        isolate_gpus: false,
        checkpoints: Some(setup.checkpoints.clone()),
        world: setup.world.clone(),
        driver: None,
    };
    let reports = inbox.clone();
    let executor = LocalExecutor::new(
        settings,
        || Ok::<_, ExecutorError>(requests.look_up()),
        &Heartbeats::default(),
        move |report| {
            drop(reports.send(AgentInput::Report(report)));
        },
    )?;
    let readings = inbox.clone();
    host::watch(vec![setup.folder.clone()], move |reading| readings.send(AgentInput::Host(Box::new(reading))).is_ok())?;
    let (gpus, facts) = ServerGpus::find(&setup)?;
    let agent = Agent {
        attempts: AgentAttempts::new(&setup.folder, &setup.checkpoints, requests),
        terminals: AgentTerminals::default(),
        estimates: AgentEstimates::new(estimator),
        incarnation: random_name()?,
        lease: Lease::new(CONNECT_TIMEOUT, since_boot()),
        greeted: Duration::ZERO,
        server: None,
        started: Instant::now(),
        setup,
        secret,
        inbox,
        executor,
        gpus,
        facts,
        lifeline,
        connection: None,
        connected: Instant::now(),
        connections: 0,
        welcomed: false,
        next_try: Instant::now(),
        delay: RECONNECT.0,
        draining: None,
        held: HeldEnds::default(),
        ending: None,
    };
    let end = agent.run(&inputs);
    // Only what nothing needs is left.
    folder.remove();
    Ok(end)
}

impl Agent {
    fn run(mut self, inputs: &Receiver<AgentInput>) -> AgentEnd {
        loop {
            self.connect();
            match inputs.recv_timeout(TICK) {
                Ok(input) => {
                    let mut waiting: Vec<AgentInput> = std::iter::once(input).chain(inputs.try_iter().take(1000)).collect();
                    // An agent that falls behind must not lose its lease because answers wait behind old samples.
                    let newest = waiting.iter().rposition(is_sample);
                    let mut place = 0..;
                    waiting.retain(|input| place.next() == newest || !is_sample(input));
                    for input in waiting {
                        self.take(input);
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if let Some(end) = self.tick() {
                return end;
            }
        }
    }

    fn take(&mut self, input: AgentInput) {
        // An agent that was stopped must not act on what waited meanwhile: its jobs may run elsewhere by now.
        self.check_lease();
        match input {
            AgentInput::Received { number, message } => {
                if self.connection.as_ref().is_some_and(|connection| connection.number == number) {
                    self.received(message);
                }
            }
            AgentInput::Disconnected { number, reason } => {
                if self.connection.as_ref().is_some_and(|connection| connection.number == number) {
                    self.disconnected(&reason);
                }
            }
            AgentInput::Sampled(Sampled::Samples(samples)) => {
                let samples = samples.into_iter().filter_map(|sample| self.gpus.wire(sample, &self.executor)).collect();
                self.tell(&FromAgent::Samples(samples));
            }
            AgentInput::Sampled(Sampled::Event(event)) => self.tell(&FromAgent::GpuEvent(event)),
            // Agents start no MPS daemons.
            AgentInput::Sampled(Sampled::MpsDied(..)) => {}
            AgentInput::Host(reading) => self.tell(&FromAgent::Host(reading)),
            AgentInput::Report(report) => {
                if let Some(report) = self.held.hold(report) {
                    self.report(report);
                }
            }
            AgentInput::Terminal(input) => {
                let answer = self.terminals.happened(input);
                if let Some(answer) = answer {
                    self.tell(&answer);
                }
            }
            AgentInput::Estimated(answer) => {
                let answer = self.estimates.done(answer);
                if let Some(answer) = answer {
                    self.tell(&answer);
                }
            }
            AgentInput::EndAnnounced => self.drain("its batch system announced the end", false),
            AgentInput::EndRequested => {
                self.drain("its batch system ends it", true);
                self.attempts.end_all(&self.executor);
                self.end(AgentEnd::Done("its batch system ended it".to_owned()), GRACE);
            }
        }
    }

    fn report(&mut self, report: Report) {
        match &report {
            Report::Ended(leftovers) => {
                self.last_words(leftovers.attempt);
                if self.is_its_own(leftovers) {
                    self.attempts.keep_end(leftovers);
                }
            }
            Report::NotStarted { attempt, .. } => self.attempts.ended(*attempt),
            Report::NotLimited { .. } | Report::Started(_) | Report::Ran { .. } | Report::Delayed { .. } => {}
        }
        self.tell(&FromAgent::Report(report));
    }

    /// Whether an attempt ended by itself, and not because its server ends.
    fn is_its_own(&self, leftovers: &Leftovers) -> bool {
        leftovers.ended.as_ref().is_some_and(|ended| !self.ends_now() || ended.exit == Exit::Code(0))
    }

    fn ends_now(&self) -> bool {
        self.is_given_up() || self.draining.as_ref().is_some_and(|(_, ends_now)| *ends_now)
    }

    fn report_held(&mut self) {
        for report in self.held.due(self.ends_now()) {
            self.report(report);
        }
    }

    /// The manager gets the logs, progress and checkpoints of an attempt before its end.
    fn last_words(&mut self, attempt: AttemptId) {
        self.attempts.ended(attempt);
        self.send_logs(Some(attempt));
        self.send_notes();
    }

    pub(super) fn check_lease(&mut self) {
        if self.lease.is_over(since_boot()) {
            self.lose_lease();
        }
    }

    pub(super) fn lose_lease(&mut self) {
        if !self.is_given_up() {
            tracing::error!("no answer from the manager within the lease: all attempts end");
            self.give_up(AgentEnd::LeaseLost);
        }
    }

    /// The manager puts all jobs back. It hears nothing more: it would take the ends of killed attempts for failures of the jobs.
    pub(super) fn give_up(&mut self, end: AgentEnd) {
        self.attempts.kill_all(&self.executor);
        self.estimates.keep(&[]);
        (self.connection, self.welcomed) = (None, false);
        self.ending = Some(Ending { end, since: Instant::now(), grace: Duration::ZERO, killed: true });
    }

    pub(super) fn is_given_up(&self) -> bool {
        self.ending.as_ref().is_some_and(|ending| !matches!(ending.end, AgentEnd::Done(_)))
    }

    pub(super) fn answered(&mut self, number: u64) {
        self.attempts.answered(number);
        self.renew(|lease| lease.answered(number));
    }

    fn drain(&mut self, reason: &str, ends_now: bool) {
        if self.draining.as_ref().is_none_or(|(_, before)| ends_now && !before) {
            tracing::info!("nothing new starts here: {reason}");
            self.draining = Some((reason.to_owned(), ends_now));
            self.tell_draining();
        }
    }

    pub(super) fn tell_draining(&mut self) {
        if let Some((reason, ends_now)) = self.draining.clone() {
            let left = self.left();
            self.tell(&FromAgent::Draining { left, ends_now, reason });
        }
    }

    pub(super) fn end(&mut self, end: AgentEnd, grace: Duration) {
        self.estimates.keep(&[]);
        self.ending.get_or_insert(Ending { end, since: Instant::now(), grace, killed: false });
    }

    /// Does what is due. Returns how the agent ended.
    fn tick(&mut self) -> Option<AgentEnd> {
        self.report_held();
        // A short batch job must have time to run something.
        let drain = self.setup.left.map(|left| self.setup.drain.min(left / 4));
        if self.left().zip(drain).is_some_and(|(left, drain)| left.get() <= drain.as_secs_f64()) {
            self.drain("its batch job ends soon", false);
        }
        self.check_lease();
        if self.connection.is_some() && !self.welcomed && self.connected.elapsed() > HELLO_TIMEOUT {
            self.disconnected("the manager does not answer");
        }
        if self.welcomed {
            self.send_logs(None);
            self.send_notes();
            self.beat();
        } else {
            self.attempts.write_ends();
        }
        self.ended()
    }

    fn beat(&mut self) {
        if let Some(number) = self.lease.beat(since_boot()) {
            self.attempts.beat(number);
            self.send(&FromAgent::Beat(number));
        }
    }

    fn send_logs(&mut self, of: Option<AttemptId>) {
        if !self.welcomed {
            return;
        }
        let mut pieces = Vec::new();
        self.attempts.new_logs(of, |piece| pieces.push(piece));
        for piece in &pieces {
            self.tell(piece);
        }
    }

    fn send_notes(&mut self) {
        if self.welcomed {
            for note in self.attempts.new_notes(&self.executor) {
                self.tell(&note);
            }
        }
    }

    /// The end, once nothing runs and the manager knows it, or has not answered for a while.
    fn ended(&mut self) -> Option<AgentEnd> {
        let ending = self.ending.as_mut()?;
        let waited = ending.since.elapsed();
        if self.attempts.any_runs() && waited < ending.grace + CLOSE_TIMEOUT {
            if waited > ending.grace && !std::mem::replace(&mut ending.killed, true) {
                self.attempts.kill_all(&self.executor);
            }
            return None;
        }
        if self.estimates.any_runs() && waited < CLOSE_TIMEOUT {
            return None;
        }
        // A restarting manager still reads the last ends.
        let is_known = self.attempts.is_empty() || !matches!(ending.end, AgentEnd::Done(_));
        if !is_known && waited < ending.grace + CLOSE_TIMEOUT {
            return None;
        }
        let end = ending.end.clone();
        self.attempts.write_ends();
        self.tell(&FromAgent::Leaving);
        Some(end)
    }
}

fn is_sample(input: &AgentInput) -> bool {
    matches!(input, AgentInput::Sampled(Sampled::Samples(_)))
}
