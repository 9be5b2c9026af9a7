//! Beginning: with the devices there are and the jobs that are in the store, after a stop, a crash, or a disk that refused.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use carma_core::{AttemptId, CollocationMode, DeviceId, DeviceSpec, Event, Granted, Job, Seconds, ServerSpec, Signal, StopReason, Time};

use super::attempts::Underway;
use super::batch::{Batch, Effect};
use super::clock::{Clock, boot_time};
use super::core::Core;
use super::devices::{Devices, Numbers, SERVER};
use super::estimates::{Estimators, Memory};
use super::handle::Handle;
use super::input::Input;
use super::keep::{METER, SHARES};
use super::launcher::{Launcher, Launching, begun, stands};
use super::minutes::Minutes;
use super::outside::Outside;
use super::power;
use super::run::{Condition, EngineError, Known, Running};
use super::saved;
use super::scans::Scans;
use super::setup::Setup;
use super::steps::MemorySteps;
use crate::event::JobEvent;
use crate::host::{HostStanding, HostWatch};
use crate::notifications::Notifier;
use crate::store::{JobFilter, Loaded, MachineChange, Store, StoredAttempt, UnfinishedJob, UnixMillis};
use crate::supervise::{AttemptFolder, ExitWatch, Standing, Supervised, find};

/// Even a small host runs so many jobs without GPUs at once: some of them only wait.
const FEWEST_CPU_JOBS: u32 = 4;

impl Running {
    pub(super) fn new(setup: Setup, store: Arc<Store>, handle: &Handle) -> Result<Self, EngineError> {
        let inputs = handle.inputs.clone();
        let state = setup.places.state.clone();
        let launching = Launching {
            state: state.clone(),
            program: setup.program.clone(),
            log_limit: setup.configuration.manager.logs.size << 20,
            world: setup.world.clone(),
        };
        let_others_through(&state)?;
        let (ends, folders, program) = (inputs.clone(), state.clone(), setup.program.clone());
        let exits = ExitWatch::new(move |attempt, standing| {
            let _ = ends.send(stands(attempt, &AttemptFolder::of(&folders, attempt), standing, &program));
        })?;
        let estimators = Estimators::start(&setup.program, &setup.configuration.manager.estimates, state.join("estimates"), &inputs)?;
        let notifier = Notifier::start(setup.program.clone(), state.clone(), &setup.configuration.manager.notifications, &store)?;
        watch_host(&setup, inputs.clone())?;
        Ok(Self {
            reader: store.reader()?,
            launcher: Launcher::start(launching, &store, &inputs)?,
            core: Core::new(&setup.configuration.rules, None)?,
            clock: Clock::from(Time::ZERO, setup.world.speed),
            memory: Memory::open(state.join("history.csv")),
            power: power::limits(setup.driver.as_ref(), &store, &inputs)?,
            numbers: Numbers::read(&state.join("gpus.json")),
            started: UnixMillis::now(),
            setup,
            store,
            inputs,
            updates: handle.updates.clone(),
            face: handle.clock.clone(),
            recent: Arc::clone(&handle.recent),
            exits,
            estimators,
            notifier,
            batch: Batch::default(),
            on_the_way: None,
            jobs: HashMap::new(),
            of_user: HashMap::new(),
            attempts: HashMap::new(),
            owners: None,
            estimating: BTreeSet::new(),
            devices: Devices::default(),
            outside: Outside::default(),
            drained: BTreeSet::new(),
            scans: Scans::default(),
            looks: None,
            latest: BTreeMap::new(),
            meter: saved::read(&state.join(METER)),
            minutes: Minutes::default(),
            steps: MemorySteps::default(),
            host: HostStanding::default(),
            host_reading: None,
            condition: Condition::Working,
            draining: false,
            lingering: BTreeSet::new(),
            mps_deaths: HashMap::new(),
            xids: HashMap::new(),
            next_duties: Instant::now(),
            next_prune: Instant::now(),
        })
    }

    /// Begins with what is in the store.
    pub(super) fn begin(&mut self) -> Result<(), EngineError> {
        let loaded = self.reader.load()?;
        self.skip_used_numbers();
        let standings: Vec<(AttemptId, Found)> = loaded.running.iter().map(|stored| (stored.attempt, self.find(stored.attempt))).collect();
        let speed = self.setup.world.speed;
        self.clock = Clock::from(time_goes_on(&loaded, &standings, speed), speed).not_before(self.latest_wall(&loaded)?);
        self.face.show(self.clock);
        self.core = Core::new(&self.setup.configuration.rules, self.setup.record.as_deref())?;
        (self.batch, self.estimating, self.lingering) = (Batch::default(), BTreeSet::new(), BTreeSet::new());
        let running: BTreeSet<AttemptId> = loaded.running.iter().map(|stored| stored.attempt).collect();
        self.meter.retain(|attempt| running.contains(&attempt));
        // What was to be written and was not is seen again.
        self.steps = MemorySteps::default();
        // What the host is short of is told anew to a new core.
        self.host = HostStanding::default();
        (self.jobs, self.of_user, self.attempts, self.owners) = (HashMap::new(), HashMap::new(), HashMap::new(), None);
        let found = match self.find_devices() {
            Err(error) if holds_gpus(&loaded, &standings) => return Err(EngineError::Unseen(error)),
            // A driver that does not answer has none for now.
            found => found.inspect_err(|error| eprintln!("carma: {error}")).unwrap_or_default(),
        };
        self.attach_devices(found, &loaded.machine_changes)?;
        self.drained = loaded.drained.iter().map(|drained| drained.device).collect();
        for device in self.drained.clone() {
            // One that is not there now is drained when it comes.
            let _ = self.core.handle(Event::GpuDrained { device }, self.now());
        }
        if self.setup.observes || self.draining {
            self.core.handle(Event::HostShort { server: SERVER }, self.now())?;
        }
        let jobs: Vec<Job> = loaded.jobs.iter().map(|unfinished| unfinished.job.clone()).collect();
        for UnfinishedJob { job, name, owner, submitted } in loaded.jobs {
            *self.of_user.entry(owner.uid).or_default() += 1;
            self.jobs.insert(job.id(), Known { name, owner, submitted });
        }
        for (job, reason) in loaded.unreadable {
            self.announce(format!("{job} cannot be read back, and is left alone: {reason}"));
        }
        let never_begun = self.take_back(&loaded.running, standings);
        let gone = self.attach_gone(&jobs)?;
        self.restored(jobs)?;
        for device in gone {
            self.announce(format!("{device} is gone"));
            self.try_tell(Event::GpuLost { device })?;
        }
        self.stop_again();
        self.estimate_again();
        if !self.setup.observes {
            for attempt in never_begun {
                self.launch_late(attempt);
            }
            self.join_unwanted_instances(&loaded.machine_changes);
            self.stop_unwanted_mps(loaded.machine_changes.clone());
            self.begin_power_limits(loaded.machine_changes);
        }
        self.start_looking()?;
        let clock = self.clock;
        self.notifier.begin(move || clock.wall());
        Ok(())
    }

    /// The latest time of the wall clock that was written down of any job or GPU.
    fn latest_wall(&self, loaded: &Loaded) -> Result<UnixMillis, EngineError> {
        let last = self.reader.history(&JobFilter::default(), None, 100)?;
        let last = last.iter().flat_map(|job| [Some(job.submitted), Some(job.since), job.ended]).flatten();
        let last = last.chain(loaded.running.iter().map(|stored| stored.launched));
        Ok(last.chain(self.reader.last_minute()?.map(|minute| UnixMillis(minute.0 * 60_000))).max().unwrap_or_default())
    }

    /// Numbers that have a folder are not given again, though a disk that lost power may have lost the jobs: a new job must not meet an old one's attempt.
    fn skip_used_numbers(&self) {
        let folders = fs::read_dir(self.setup.places.state.join("attempts")).into_iter().flatten().flatten();
        let highest = folders.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok()).max().unwrap_or(0);
        let next = self.store.next_jobs(0).0;
        self.store.next_jobs((highest + 1).saturating_sub(next));
    }

    /// The jobs go to the core, which may launch some at once.
    fn restored(&mut self, jobs: Vec<Job>) -> Result<(), EngineError> {
        let now = self.now();
        let used = saved::read(&self.setup.places.state.join(SHARES));
        self.core.handle(Event::SharesRestored { used }, now)?;
        let actions = self.core.handle(Event::JobsRestored { jobs }, now)?;
        self.act_on(actions);
        Ok(())
    }

    fn find(&self, attempt: AttemptId) -> Found {
        let folder = AttemptFolder::of(&self.setup.places.state, attempt);
        match find(&folder) {
            Ok(Standing::NeverBegun) => Found::NeverBegun,
            // Its shim may be about to say who it is.
            _ => match begun(attempt, &folder, &self.setup.program) {
                Input::Launched(_, supervised) => Found::Running(*supervised),
                other => Found::Other(other),
            },
        }
    }

    /// Attempts that run are watched again; those that ended meanwhile are judged; those that were never begun are launched now.
    fn take_back(&mut self, running: &[StoredAttempt], standings: Vec<(AttemptId, Found)>) -> Vec<AttemptId> {
        let mut never_begun = Vec::new();
        for (stored, (attempt, found)) in running.iter().zip(standings) {
            self.attempts.insert(attempt, Underway::launched(stored.launched));
            let input = match found {
                Found::Running(supervised) => Input::Launched(attempt, Box::new(supervised)),
                Found::Other(input) => input,
                Found::NeverBegun => {
                    never_begun.push(attempt);
                    continue;
                }
            };
            // Told like anything else that arrives, once the core knows the jobs.
            let _ = self.inputs.send(input);
        }
        never_begun
    }

    /// It was written down that it is launched, and we ended before it was: nothing of it ever ran.
    fn launch_late(&mut self, attempt: AttemptId) {
        let placement = self.core.scheduler().job(attempt.job).and_then(|job| job.state.active()).map(|active| active.placement.clone());
        match placement.and_then(|placement| self.launch_order(attempt, placement)) {
            Some(order) => self.batch.effects.push(Effect::Launch(Box::new(order))),
            None => self.not_launched(attempt, "its GPU is no longer there"),
        }
    }

    /// GPUs that went while attempts are on them: the core must know what it loses.
    fn attach_gone(&mut self, jobs: &[Job]) -> Result<BTreeSet<DeviceId>, EngineError> {
        let granted = jobs.iter().filter_map(|job| job.state.active()).flat_map(|active| &active.placement.devices);
        let mut gone = BTreeSet::new();
        for Granted { device, promised, .. } in granted {
            if self.core.scheduler().fleet().device(*device).is_none() {
                let mode = if device.instance.is_some() { CollocationMode::Mig } else { CollocationMode::Streams };
                self.core.handle(Event::GpuAttached(DeviceSpec { id: *device, memory: *promised, mode, power: None }), self.now())?;
                gone.insert(*device);
            }
        }
        Ok(gone)
    }

    /// Attempts that were to end are told so again: we may have ended before we could tell them. Their shims pass it on once.
    fn stop_again(&mut self) {
        let stopping = |job: &Job| {
            let active = job.state.active()?;
            let signal = match active.stopping? {
                StopReason::SlotOver | StopReason::Moved => Signal::Checkpoint,
                StopReason::Requeued if job.spec.may_checkpoint => Signal::Checkpoint,
                StopReason::Requeued | StopReason::Cancelled | StopReason::TimeLimit => Signal::Terminate,
                StopReason::GpuLost | StopReason::MpsServerDied => Signal::Kill,
            };
            Some((active.attempt, signal))
        };
        let stopping: Vec<(AttemptId, Signal)> = self.core.scheduler().jobs().filter_map(stopping).collect();
        for (attempt, signal) in stopping {
            self.signal(attempt, signal);
        }
    }

    /// Jobs that were waiting for their estimate, or for a manager that launches, wait again.
    fn estimate_again(&mut self) {
        let held: Vec<_> =
            self.core.scheduler().jobs().filter(|job| matches!(job.state, carma_core::State::Held { .. })).map(Job::id).collect();
        for job in held {
            let Ok(Some(history)) = self.reader.job(job) else { continue };
            let by_user = history.events.iter().rev().find_map(|stored| match stored.event.event {
                JobEvent::Held(_) => Some(true),
                JobEvent::Released(_) => Some(false),
                _ => None,
            });
            let kept_back = by_user.unwrap_or(history.job.request.schedule.hold);
            if !kept_back {
                self.estimate_or_release(job, history.job.request, history.job.owner);
            }
        }
    }

    fn attach_devices(&mut self, found: Devices, changes: &[MachineChange]) -> Result<(), EngineError> {
        let now = self.now();
        let host = HostWatch::new(Vec::new()).look().ok();
        let cpu_jobs =
            self.setup.configuration.manager.limits.cpu_jobs.or_else(|| host.as_ref().map(|host| host.cores.max(FEWEST_CPU_JOBS)));
        let spec = ServerSpec {
            cpu_jobs: cpu_jobs.filter(|limit| *limit > 0),
            cores: host.as_ref().map(|host| host.cores),
            host_memory: host.as_ref().map(|host| host.memory_total),
            topology: self.topology(&found),
            ..ServerSpec::new(SERVER)
        };
        self.core.handle(Event::ServerAttached(spec), now)?;
        self.devices = found;
        self.keep_switched(changes);
        if !self.setup.observes {
            let daemons = self.mps_daemons();
            for trouble in daemons.start_for_new(&mut self.devices, &Devices::default()) {
                self.announce(trouble);
            }
        }
        for device in self.devices.clone().iter() {
            self.core.handle(Event::GpuAttached(device.spec()), now)?;
        }
        // Without the file, GPUs have the driver's numbers after a restart.
        let _ = self.numbers.write(&self.setup.places.state.join("gpus.json"));
        Ok(())
    }
}

/// How an attempt of before was found.
pub(super) enum Found {
    Running(Supervised),
    Other(Input),
    NeverBegun,
}

/// Whether attempts run on GPUs: they must not be taken for lost because nobody could look.
fn holds_gpus(loaded: &Loaded, standings: &[(AttemptId, Found)]) -> bool {
    let running = |attempt| standings.iter().any(|(other, found)| *other == attempt && matches!(found, Found::Running(_)));
    let active = loaded.jobs.iter().filter_map(|unfinished| unfinished.job.state.active());
    active.filter(|active| running(active.attempt)).any(|active| !active.placement.devices.is_empty())
}

/// The time that it is: later than all that was written down, and as much later as attempts have run since, whatever the wall clock did.
fn time_goes_on(loaded: &Loaded, standings: &[(AttemptId, Found)], speed: f64) -> Time {
    let now = boot_time();
    let since_launch = |(attempt, found): &(AttemptId, Found)| {
        let Found::Running(supervised) = found else { return None };
        let active = loaded.jobs.iter().find_map(|unfinished| unfinished.job.state.active().filter(|active| active.attempt == *attempt))?;
        Some(active.launched_at + Seconds::new((now - supervised.begun()?).max(0.0) * speed).ok()?)
    };
    standings.iter().filter_map(since_launch).max().unwrap_or(Time::ZERO).max(loaded.clock)
}

/// Where root runs jobs of others, these must reach their scripts and progress files. What is not theirs they may not read all the same.
fn let_others_through(state: &Path) -> std::io::Result<()> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    let mode = fs::metadata(state)?.permissions().mode();
    fs::set_permissions(state, Permissions::from_mode(mode | 0o011))
}

/// Looks at the host once a second, from a thread of its own: a disk that hangs must not keep the engine waiting.
fn watch_host(setup: &Setup, inputs: Sender<Input>) -> std::io::Result<()> {
    const PERIOD: Duration = Duration::from_secs(1);
    let mut watch = HostWatch::new(vec![setup.places.state.clone()]);
    let run = move || {
        loop {
            let looked = watch.look();
            // A host that cannot be read is not known to be short.
            if let Ok(reading) = looked
                && inputs.send(Input::Host(Box::new(reading))).is_err()
            {
                return;
            }
            thread::sleep(PERIOD);
        }
    };
    thread::Builder::new().name("host".to_owned()).spawn(run).map(drop)
}
