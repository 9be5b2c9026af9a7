//! The engine's thread: it takes inputs, passes them to the parts, and stores the results.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use carma_core::Event;
use tokio::sync::broadcast;

use super::decide::{Effect, SharedClock};
use super::error::EngineError;
use super::handle::Handle;
use super::input::Input;
use super::refusal::unavailable;
use super::setup::Setup;
use super::state::{Condition, EngineState};
use crate::agents::{AgentExecutor, AgentReport, Executors, Servers};
use crate::executor::{LocalExecutor, LocalSettings, Requests};
use crate::heartbeat::{Heartbeat, Heartbeats, LONGEST_SLEEP, Part};
use crate::host;
use crate::link::ToAgent;
use crate::store::{Change, Store, WriteError};
use crate::turns::OWN;

/// Updates that are buffered for slow listeners.
const UPDATES: usize = 4096;
/// The wait after a failed write.
const RETRY: Duration = Duration::from_secs(1);

/// The inputs that a handle sends.
#[derive(Debug)]
pub struct EngineInbox(pub(super) Receiver<Input>);

/// The engine, in its thread.
#[derive(Debug)]
pub struct Engine(JoinHandle<()>);

impl Engine {
    /// The handle of an engine that has not started yet. Questions wait until it has.
    pub fn handle() -> (Handle, EngineInbox) {
        let (inputs, inbox) = channel();
        let handle = Handle {
            inputs,
            user: OWN,
            updates: broadcast::channel(UPDATES).0,
            recent: Arc::default(),
            clock: SharedClock::new(),
            heartbeats: Heartbeats::default(),
            agents: Arc::default(),
            needs_restart: Arc::default(),
        };
        (handle, EngineInbox(inbox))
    }

    /// Starts the engine of a handle from the store.
    pub fn start(setup: Setup, store: Arc<Store>, handle: &Handle, inbox: EngineInbox) -> Result<Self, EngineError> {
        store.beat(handle.heartbeats.start(Part::Store));
        let executor = executors(&setup, &store, handle)?;
        executor.agents.iter().for_each(|agents| drop(handle.agents.set(Arc::clone(agents))));
        let inputs = handle.inputs.clone();
        host::watch(vec![setup.places.state.clone()], move |reading| inputs.send(Input::Host(Box::new(reading))).is_ok())?;
        let mut engine = EngineState::new(setup, store, handle, executor)?;
        match engine.begin() {
            // Nothing is decided until the GPUs can be read. Jobs continue meanwhile.
            Err(EngineError::GpusUnreadable(error)) => engine.wait_until_available(&EngineError::GpusUnreadable(error).to_string()),
            begun => begun?,
        }
        let heartbeat = handle.heartbeats.start(Part::Engine);
        let thread = thread::Builder::new().name("engine".to_owned()).spawn(move || engine.run(&inbox.0, &heartbeat))?;
        Ok(Self(thread))
    }

    /// Waits for its end. False if it panicked.
    pub fn join(self) -> bool {
        self.0.join().is_ok()
    }
}

/// Attempts run on this host, and on the servers of agents.
fn executors(setup: &Setup, store: &Store, handle: &Handle) -> Result<Executors, EngineError> {
    let settings = LocalSettings {
        state: setup.places.state.clone(),
        program: setup.program.clone(),
        launch_server: Arc::clone(&setup.launch_server),
        processes: setup.configuration.manager.limits.processes_per_job,
        isolate_gpus: setup.configuration.manager.gpus.isolate,
        checkpoints: None,
        world: setup.world.clone(),
        driver: setup.driver.clone(),
    };
    let requests = || {
        let reader = store.reader()?;
        let requests: Requests = Box::new(move |job| reader.request(job).map_err(|error| error.to_string()));
        Ok(requests)
    };
    let report = || {
        let inputs = handle.inputs.clone();
        move |report| drop(inputs.send(Input::Attempt(report)))
    };
    let local = LocalExecutor::new(settings, requests, &handle.heartbeats, report())?;
    let agents = AgentExecutor::start(setup.places.state.clone(), requests, report())?;
    Ok(Executors { all: Arc::new(Servers::new(local, Arc::clone(&agents))), agents: Some(agents) })
}

impl EngineState {
    /// Runs until the engine ends.
    pub(super) fn run(mut self, inbox: &Receiver<Input>, heartbeat: &Heartbeat) {
        while self.turn(inbox, heartbeat) {}
        heartbeat.end();
    }

    /// Waits for inputs, takes them and acts on them. False if the engine ends.
    fn turn(&mut self, inbox: &Receiver<Input>, heartbeat: &Heartbeat) -> bool {
        const AT_ONCE: usize = 1024;
        heartbeat.beat();
        match inbox.recv_timeout(self.timeout().min(LONGEST_SLEEP)) {
            Ok(first) => {
                self.take(first);
                for input in inbox.try_iter().take(AT_ONCE) {
                    heartbeat.beat();
                    self.take(input);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        if self.condition == Condition::TakenOver {
            return false;
        }
        self.work();
        match &self.condition {
            Condition::TakenOver => return false,
            Condition::Unavailable { since, .. } if since.elapsed() >= RETRY => self.try_again(inbox),
            Condition::Unavailable { .. } => {}
            Condition::Working | Condition::Stopping => {
                self.timers();
                self.flush();
                let ends = self.condition == Condition::Stopping || (self.draining && self.attempts.is_empty());
                if ends && !self.writer.is_busy() {
                    self.save();
                    self.gpus.restore_power_limits();
                    return false;
                }
            }
        }
        true
    }

    /// The longest wait for an input.
    fn timeout(&self) -> Duration {
        if matches!(self.condition, Condition::Unavailable { .. }) {
            return RETRY;
        }
        if self.has_work() {
            return Duration::ZERO;
        }
        let mut housekeeping = self.timetable.until_housekeeping();
        if self.watches_servers() {
            housekeeping = housekeeping.min(self.timetable.until_cluster());
        }
        let timer = self.decisions.scheduler().next_wakeup().map(|time| self.decisions.clock.until(time));
        timer.map_or(housekeeping, |timer| timer.min(housekeeping))
    }

    /// Runs due timers.
    fn timers(&mut self) {
        self.follow_wall_clock();
        let now = self.decisions.now();
        if self.decisions.scheduler().next_wakeup().is_some_and(|time| time <= now) {
            self.decisions.tell_or_log(Event::Tick);
        }
        if self.watches_servers() && self.timetable.cluster_is_due() {
            self.check_servers();
            self.plan_pilots();
        }
        if self.timetable.housekeeping_is_due() {
            self.housekeeping();
        }
        self.act();
        self.predict();
    }

    /// Whether there are servers or pools to maintain.
    fn watches_servers(&self) -> bool {
        !self.servers.is_empty() || !self.pools.is_empty()
    }

    /// Takes an input and acts on what the core decides. Tasks wait for their turn.
    pub(crate) fn take(&mut self, input: Input) {
        match self.condition {
            Condition::Unavailable { .. } => return self.take_while_unavailable(input),
            // The decisions belong to the other manager.
            Condition::TakenOver => return,
            Condition::Working | Condition::Stopping => {}
        }
        match input {
            Input::Task { user, task } => return self.add_task(user, task),
            Input::Written(Ok(())) => {
                if let Err(error) = self.writer.confirm() {
                    return self.give_up(&error);
                }
                let effects = self.writer.written();
                self.carry_out(effects);
            }
            Input::Written(Err(error)) => return self.give_up(&error),
            other => self.react(other),
        }
        self.act();
    }

    /// Hands the batch to the store, unless another one is in flight.
    pub(crate) fn flush(&mut self) {
        while let Some(effects) = self.writer.flush(&mut self.decisions) {
            self.carry_out(effects);
            self.act();
        }
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Start(order) => self.attempts.start(order),
                Effect::Signal(attempt, signal) => self.attempts.signal(attempt, signal),
                Effect::Acknowledge(attempt) => {
                    self.attempts.acknowledge(attempt);
                    self.accounting.forget(attempt);
                }
                Effect::Answer(answer) => answer(Ok(())),
                Effect::Publish(update) => self.listeners.publish(self.decisions.wall(), update),
                Effect::Switch { device, to } => self.gpus.carry_out_switch(&mut self.decisions, device, to),
                Effect::Welcome(server, session) => self.welcome(server, &session),
                Effect::Batch(order) => self.pools.order(order),
                Effect::KeyStored(uid, key) => self.keyed.stored(uid, key),
                Effect::Forget(job) => {
                    self.jobs.forget_job(&mut self.decisions, job);
                    self.estimates.lengths.forget(job);
                    self.secrets.wake();
                    self.cancellations.remove(job);
                }
            }
        }
    }

    /// Decisions that are not on disk do not count. The engine restarts from the store once it can be written again.
    fn give_up(&mut self, error: &WriteError) {
        let reason = error.to_string();
        let is_final = matches!(error, WriteError::TakenOver { .. });
        let undecided = std::mem::take(&mut self.decisions.batch).effects;
        for effect in self.writer.written().into_iter().chain(undecided) {
            match effect {
                Effect::Answer(answer) => answer(Err(unavailable(&reason))),
                Effect::Signal(attempt, signal) if !is_final && self.cancellations.contains(attempt.job) => {
                    self.attempts.signal(attempt, signal);
                }
                _ => {}
            }
        }
        if is_final {
            tracing::error!("{reason}");
            self.condition = Condition::TakenOver;
        } else {
            self.wait_until_available(&reason);
        }
    }

    /// Waits for a restart from the store.
    fn wait_until_available(&mut self, reason: &str) {
        tracing::error!("{reason}");
        // A stopping engine decides nothing more.
        if self.condition != Condition::Stopping {
            self.condition = Condition::Unavailable { reason: reason.to_owned(), since: Instant::now() };
        }
    }

    /// Takes an input while nothing can be decided. Dropped inputs come again: the sampler samples again, and the executor repeats its reports.
    fn take_while_unavailable(&mut self, input: Input) {
        match input {
            Input::Task { user, task } => self.add_task(user, task),
            Input::Gpus(report) => self.gpus.ignore(&report),
            Input::Predicted(predicted) => self.predictions.take(predicted),
            Input::Agent(AgentReport::Hello { session, .. }) => {
                session.send(ToAgent::Wait { reason: "the store cannot be written".to_owned() });
            }
            Input::Agent(AgentReport::Closed { session, .. }) => drop(self.servers.disconnect(&session)),
            _ => {}
        }
    }

    fn try_again(&mut self, inbox: &Receiver<Input>) {
        // The result of a switch is found on the GPU, so the switch must be over and not be reported later.
        if self.gpus.is_switching() {
            return;
        }
        for input in inbox.try_iter() {
            self.take_while_unavailable(input);
        }
        let written = self.writer.write_now(vec![Change::ClockAdvanced(self.decisions.now())]);
        if let Err(error @ WriteError::TakenOver { .. }) = &written {
            return self.give_up(error);
        }
        let begun = written.map_err(|error| error.to_string()).and_then(|()| self.begin().map_err(|error| error.to_string()));
        self.condition = match begun {
            Ok(()) => {
                tracing::info!("the store and the GPUs work again");
                self.record_cancellations();
                Condition::Working
            }
            Err(reason) => Condition::Unavailable { reason, since: Instant::now() },
        };
    }
}
