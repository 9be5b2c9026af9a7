//! The engine's thread: it takes what arrives, tells the core, and has written down what follows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use carma_core::{AttemptId, DeviceId, Event, EventError, JobId, LogError, Seconds, Time};
use carma_gpu::DriverError;
use thiserror::Error;
use tokio::sync::broadcast;

use super::attempts::Underway;
use super::batch::{Batch, Effect};
use super::clock::{Clock, ClockFace};
use super::core::Core;
use super::devices::{Devices, Numbers};
use super::estimates::{Estimators, Memory, Purpose};
use super::handle::Handle;
use super::input::Input;
use super::launcher::{Launcher, StartError};
use super::looks::{Looked, Looks};
use super::minutes::Minutes;
use super::outside::Outside;
use super::pool::Pool;
use super::power::PowerOrder;
use super::recent::Recent;
use super::scans::Scans;
use super::setup::Setup;
use super::steps::MemorySteps;
use crate::api::{Problem, ProblemKind, Update};
use crate::host::{HostReading, HostStanding};
use crate::judge::XidSeen;
use crate::measure::Meter;
use crate::notifications::Notifier;
use crate::request::Owner;
use crate::store::{Change, Reader, Store, StoreError, UnixMillis, WriteError};
use crate::supervise::{ExitWatch, Owners};

/// Updates that a slow listener may be behind before it misses some.
const UPDATES: usize = 4096;
/// How often the manager's own time is written down, and other duties are seen to.
const DUTIES: Duration = Duration::from_secs(60);
/// How long to wait before trying again to write to a disk that refused.
const RETRY: Duration = Duration::from_secs(1);

/// Why an engine did not start.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The rules.
    #[error(transparent)]
    Rules(#[from] LogError),
    /// Threads.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
    /// The core refused what was in the store.
    #[error("the core refuses what is in the store: {0}")]
    Refused(#[from] EventError),
    /// The driver, while attempts are on its GPUs.
    #[error("attempts run on GPUs that cannot be looked at: {0}")]
    Unseen(DriverError),
}

impl From<StartError> for EngineError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Store(error) => Self::Store(error),
            StartError::Thread(error) => Self::Thread(error),
        }
    }
}

/// A job that is not over, as far as the core does not know it.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) name: Option<String>,
    pub(super) owner: Owner,
    pub(super) submitted: UnixMillis,
}

/// What reaches an engine through its handle.
#[derive(Debug)]
pub struct Arriving(Receiver<Input>);

/// The engine, in its thread.
#[derive(Debug)]
pub struct Engine(JoinHandle<()>);

impl Engine {
    /// A way to ask an engine that is yet to start: whoever does waits until it has.
    pub fn handle() -> (Handle, Arriving) {
        let (inputs, arriving) = channel();
        let handle = Handle { inputs, updates: broadcast::channel(UPDATES).0, recent: Arc::default(), clock: ClockFace::new() };
        (handle, Arriving(arriving))
    }

    /// Starts the engine of a handle; it goes on where the store left off.
    pub fn start(setup: Setup, store: Arc<Store>, handle: &Handle, arriving: Arriving) -> Result<Self, EngineError> {
        let mut running = Running::new(setup, store, handle)?;
        match running.begin() {
            // Nothing is decided until they can be, and jobs go on meanwhile.
            Err(EngineError::Unseen(error)) => running.wait_until_well(&EngineError::Unseen(error).to_string()),
            begun => begun?,
        }
        let thread = thread::Builder::new().name("engine".to_owned()).spawn(move || running.run(&arriving.0))?;
        Ok(Self(thread))
    }

    /// Waits until it has ended; false where it broke.
    pub fn join(self) -> bool {
        self.0.join().is_ok()
    }
}

/// How the engine is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    /// At work.
    Working,
    /// What it decided could not be written down, or what it would decide by could not be looked at.
    Unwritable { reason: String, since: Instant },
    /// It ends when what is on its way to the disk is there.
    Stopping,
}

/// All that the engine's thread has.
pub(super) struct Running {
    pub(super) setup: Setup,
    pub(super) store: Arc<Store>,
    pub(super) reader: Reader,
    pub(super) inputs: Sender<Input>,
    pub(super) updates: broadcast::Sender<(UnixMillis, Update)>,
    pub(super) clock: Clock,
    pub(super) face: ClockFace,
    pub(super) core: Core,
    pub(super) batch: Batch,
    /// Effects of the batch that is on its way to the disk.
    pub(super) on_the_way: Option<Vec<Effect>>,
    pub(super) jobs: HashMap<JobId, Known>,
    /// How many jobs of each user are not over.
    pub(super) of_user: HashMap<u32, u64>,
    pub(super) attempts: HashMap<AttemptId, Underway>,
    /// Whose processes are; unset when attempts have come since.
    pub(super) owners: Option<Owners>,
    /// Jobs that wait for their estimate.
    pub(super) estimating: BTreeSet<JobId>,
    pub(super) memory: Memory,
    pub(super) estimators: Estimators,
    pub(super) notifier: Notifier,
    pub(super) devices: Devices,
    /// GPUs that are not for us.
    pub(super) outside: Outside,
    /// Those that take nothing new, there or not.
    pub(super) drained: BTreeSet<DeviceId>,
    pub(super) numbers: Numbers,
    pub(super) scans: Scans,
    pub(super) looks: Option<Looks>,
    pub(super) latest: BTreeMap<DeviceId, Looked>,
    pub(super) meter: Meter,
    pub(super) minutes: Minutes,
    pub(super) recent: Arc<Recent>,
    pub(super) steps: MemorySteps,
    pub(super) host: HostStanding,
    /// The last look at the host.
    pub(super) host_reading: Option<HostReading>,
    pub(super) launcher: Launcher,
    pub(super) exits: ExitWatch,
    pub(super) condition: Condition,
    pub(super) draining: bool,
    pub(super) started: UnixMillis,
    /// Jobs that are over and cannot be forgotten yet.
    pub(super) lingering: BTreeSet<JobId>,
    /// GPUs whose MPS server died, and when.
    pub(super) mps_deaths: HashMap<DeviceId, Time>,
    /// Who limits the power of GPUs.
    pub(super) power: Pool<PowerOrder>,
    /// Errors of GPUs, the latest of each.
    pub(super) xids: HashMap<DeviceId, Vec<XidSeen>>,
    pub(super) next_duties: Instant,
    pub(super) next_prune: Instant,
}

impl Running {
    fn run(mut self, arriving: &Receiver<Input>) {
        const AT_ONCE: usize = 1024;
        loop {
            match arriving.recv_timeout(self.patience()) {
                Ok(first) => {
                    self.take(first);
                    arriving.try_iter().take(AT_ONCE).for_each(|input| self.take(input));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            match &self.condition {
                Condition::Unwritable { since, .. } if since.elapsed() >= RETRY => self.try_again(arriving),
                Condition::Unwritable { .. } => {}
                Condition::Working | Condition::Stopping => {
                    self.see_to_time();
                    self.flush();
                    let idle = self.on_the_way.is_none();
                    if idle && (self.condition == Condition::Stopping || (self.draining && self.attempts.is_empty())) {
                        self.save_meter();
                        self.save_shares();
                        self.restore_power_limits();
                        return;
                    }
                }
            }
        }
    }

    /// How long nothing needs to be done if nothing arrives.
    fn patience(&self) -> Duration {
        if matches!(self.condition, Condition::Unwritable { .. }) {
            return RETRY;
        }
        let duties = self.next_duties.saturating_duration_since(Instant::now());
        let timer = self.core.scheduler().next_wakeup().map(|time| self.clock.until(time));
        timer.map_or(duties, |timer| timer.min(duties))
    }

    fn see_to_time(&mut self) {
        let now = self.clock.now();
        if self.core.scheduler().next_wakeup().is_some_and(|time| time <= now) {
            self.tell(Event::Tick);
        }
        if Instant::now() >= self.next_duties {
            self.next_duties = Instant::now() + DUTIES;
            self.see_to_duties();
        }
    }

    fn take(&mut self, input: Input) {
        if matches!(self.condition, Condition::Unwritable { .. }) {
            return self.take_while_unwritable(input);
        }
        match input {
            Input::Asked(question) => self.answer(question),
            Input::Written(Ok(())) => {
                let effects = self.on_the_way.take().unwrap_or_default();
                self.carry_out(effects);
            }
            Input::Written(Err(error)) => self.give_up(&error),
            Input::Launched(attempt, supervised) => self.launched(attempt, *supervised),
            Input::NotLaunched(attempt, reason) => self.not_launched(attempt, &reason),
            Input::LaunchRefused(order, reason) => self.launch_refused(order, &reason),
            Input::LaunchAgain(order) => self.launch_again(order),
            Input::Unclear(attempt, reason) => self.unclear(attempt, &reason),
            Input::Ended(remains) => self.ended(&remains),
            Input::Looked(looked) => self.looked(looked),
            Input::Gpu(event) => self.gpu_event(&event),
            Input::MpsDied(device, died) => self.mps_died(device, &died),
            Input::Found(scan) => self.scanned(scan),
            Input::Switched(switched) => self.switched(switched),
            Input::PowerLimited(device, came_to) => self.power_limited(device, came_to),
            Input::Host(reading) => self.host_looked(*reading),
            Input::Estimated(order, estimated) => match order.purpose {
                Purpose::Job(job) => self.estimated(job, &order.request, *estimated),
                Purpose::Forecast { jobs, reply } => drop(reply.send(self.forecast(&order.owner, jobs, Some(&estimated)))),
            },
        }
    }

    /// Hands what is to be written to the store, if nothing is on its way there.
    fn flush(&mut self) {
        if self.on_the_way.is_some() || self.batch.is_empty() {
            return;
        }
        let (mut changes, effects) = std::mem::take(&mut self.batch).settle(self.core.scheduler(), self.clock.wall());
        if changes.is_empty() {
            return self.carry_out(effects);
        }
        // Time must go on from what is written down with it.
        changes.push(Change::ClockSeen(self.now()));
        self.on_the_way = Some(effects);
        let inputs = self.inputs.clone();
        self.store.write_then(changes, move |result| drop(inputs.send(Input::Written(result))));
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Launch(order) => self.launcher.launch(order),
                Effect::Signal(attempt, signal) => self.signal(attempt, signal),
                Effect::Answer(answer) => answer(Ok(())),
                Effect::Tell(update) => {
                    let _ = self.updates.send((self.clock.wall(), update));
                    self.notifier.look();
                }
                Effect::Switch(order) => self.carry_out_switch(*order),
                Effect::Forget(job) => self.forget(job),
            }
        }
    }

    /// What was decided is not on the disk, so it was not decided. Everything begins anew from what is there, once that can be written again.
    fn give_up(&mut self, error: &WriteError) {
        let reason = error.to_string();
        let lost = std::mem::take(&mut self.batch).effects;
        for effect in self.on_the_way.take().into_iter().flatten().chain(lost) {
            if let Effect::Answer(answer) = effect {
                answer(Err(unavailable(&reason)));
            }
        }
        self.wait_until_well(&reason);
    }

    /// Everything begins anew in a while.
    fn wait_until_well(&mut self, reason: &str) {
        eprintln!("carma: {reason}");
        // One that is stopping anyway has nothing more to decide.
        if self.condition != Condition::Stopping {
            self.condition = Condition::Unwritable { reason: reason.to_owned(), since: Instant::now() };
        }
    }

    /// Whatever else arrives is found again when everything begins anew: supervised attempts are in their folders.
    fn take_while_unwritable(&mut self, input: Input) {
        match (input, &self.condition) {
            (Input::Asked(question), Condition::Unwritable { reason, .. }) => {
                let reason = reason.clone();
                self.answer_without_change(question, &reason);
            }
            (Input::Switched(_), _) => self.scans.switch_ends(),
            _ => {}
        }
    }

    fn try_again(&mut self, arriving: &Receiver<Input>) {
        // What launches and switches that were under way came to is found where they left it, so they must be over, and not be told of later.
        if self.launcher.is_busy() || self.scans.is_switching() {
            return;
        }
        for input in arriving.try_iter() {
            self.take_while_unwritable(input);
        }
        let written = self.store.write(vec![Change::ClockSeen(self.clock.now())]).wait();
        let begun = written.map_err(|error| error.to_string()).and_then(|()| self.begin().map_err(|error| error.to_string()));
        self.condition = match begun {
            Ok(()) => {
                eprintln!("carma: all can be written down and looked at again");
                Condition::Working
            }
            Err(reason) => Condition::Unwritable { reason, since: Instant::now() },
        };
    }

    /// The manager's own time.
    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Waits that are told in the core's time, really.
    pub(super) fn real(&self, span: Seconds) -> Duration {
        self.clock.real(span)
    }
}

/// The answer to whoever asks for what cannot be written down.
pub(super) fn unavailable(reason: &str) -> Problem {
    ProblemKind::Unavailable.because(format!("nothing was changed: {reason}"))
}
