//! Start and restart from the store: after a stop, a crash, or a failed write.

use std::collections::BTreeSet;
use std::sync::Arc;

use carma_core::{
    Active, AttemptId, DeviceId, DeviceSpec, Event, EventError, Granted, Job, JobId, Resumes, ServerId, Signal, State, StopReason, Time,
};

use super::accounting::Accounting;
use super::attempts::Attempts;
use super::cancellations::Cancellations;
use super::decide::{Clock, Core, Decisions};
use super::error::EngineError;
use super::estimates::Estimates;
use super::gpus::{GpuSetup, Gpus, Reports};
use super::handle::Handle;
use super::host::Host;
use super::housekeeping::SHARES;
use super::input::Input;
use super::jobs::Jobs;
use super::keyed::KeyedSubmissions;
use super::listeners::Listeners;
use super::log_space::LogSpace;
use super::pools::Pools;
use super::predictions::Predictions;
use super::secrets::SecretCleaner;
use super::servers::RemoteServers;
use super::setup::Setup;
use super::state::{Condition, EngineState};
use super::timetable::Timetable;
use super::writer::Writer;
use crate::agents::{Executors, address_file, secret_file};
use crate::attempt::Past;
use crate::batch::{PilotPaths, pilots_folder};
use crate::executor::Adopted;
use crate::host_gpus::LOCAL_SERVER;
use crate::memory_limits::CannotLimit;
use crate::notifications::NotifierHandle;
use crate::saved;
use crate::store::{JobFilter, Loaded, Reader, Store, StoredAttempt, UnfinishedJob, UnixMillis};
use crate::turns::{Limits, Turns};

/// The file with the usage of attempts so far.
const METER: &str = "meter.json";
/// The file that says which GPU has which number.
const NUMBERS: &str = "gpus.json";

impl EngineState {
    /// An engine that has not started yet.
    pub(crate) fn new(setup: Setup, store: Arc<Store>, handle: &Handle, executor: Executors) -> Result<Self, EngineError> {
        let Executors { all: executor, agents } = executor;
        let (state, settings) = (&setup.places.state, &setup.configuration.manager);
        let notifier = NotifierHandle::start(
            (setup.program.clone(), Arc::clone(&setup.launch_server)),
            state.clone(),
            &settings.notifications,
            &store,
            store.reader()?,
        )?;
        let inputs = handle.inputs.clone();
        let estimates =
            Estimates::start(&setup.program, &setup.launch_server, &settings.estimates, state, agents.clone(), move |order, estimated| {
                inputs.send(Input::Estimated(order, estimated)).is_ok()
            })?;
        let inputs = handle.inputs.clone();
        let predictions = Predictions::start(move |predicted| inputs.send(Input::Predicted(predicted)).is_ok())?;
        let gpu_setup = GpuSetup {
            driver: setup.driver.clone(),
            settings: settings.gpus.clone(),
            profiling: setup.world.profiling.clone(),
            observes: setup.observes,
            cannot_limit: CannotLimit::on_host(rustix::process::geteuid().is_root(), setup.enforced, setup.world.is_emulated()),
            watch: settings.watch.clone(),
            numbers: state.join(NUMBERS),
        };
        let inputs = handle.inputs.clone();
        let reports = Reports::new(move |report| inputs.send(Input::Gpus(report)).is_ok());
        Ok(Self {
            reader: store.reader()?,
            gpus: Gpus::new(gpu_setup, &setup.world, &store, reports)?,
            servers: RemoteServers::new(agents, &settings.agents),
            pools: Pools::new(PilotPaths {
                folder: pilots_folder(state),
                program: setup.program.clone(),
                address: address_file(state),
                secret: secret_file(state),
                checkpoints: state.join("attempts"),
            }),
            inputs: handle.inputs.clone(),
            accounting: Accounting::new(state.join(METER), Arc::clone(&handle.recent)),
            log_space: LogSpace::new(&settings.logs),
            host: Host::new(settings.host.clone(), settings.limits.cpu_jobs),
            decisions: Decisions::new(Core::new(&setup.configuration.rules, None)?, Clock::from(Time::ZERO, setup.world.speed)),
            listeners: Listeners::new(handle.updates.clone(), handle.clock.clone(), notifier),
            secrets: SecretCleaner::start(&store, store.reader()?, Arc::clone(&executor))?,
            attempts: Attempts::new(executor),
            keyed: KeyedSubmissions::default(),
            cancellations: Cancellations::default(),
            tasks: Turns::new(Limits::at_most(1)),
            jobs: Jobs::default(),
            timetable: Timetable::new(),
            condition: Condition::Working,
            draining: false,
            started: UnixMillis::now(),
            heartbeats: handle.heartbeats.clone(),
            writer: Writer::new(store, handle.inputs.clone()),
            estimates,
            predictions,
            setup,
        })
    }

    /// Starts from the store.
    pub(crate) fn begin(&mut self) -> Result<(), EngineError> {
        let loaded = self.reader.load()?;
        self.keyed.clear();
        self.skip_used_numbers();
        let adopted = self.attempts.adopt(&loaded.running);
        let speed = self.setup.world.speed;
        let now = time_goes_on(&loaded, &adopted, speed);
        let wall = latest_wall(&self.reader, &loaded)?.max(wall_of_attempts(&loaded, now)).max(self.decisions.wall());
        let clock = Clock::from(now, speed).not_before(wall);
        self.listeners.begin(clock);
        self.decisions = Decisions::new(Core::new(&self.setup.configuration.rules, self.setup.record.as_deref())?, clock);
        self.jobs = Jobs::default();
        self.estimates.lengths.clear();
        self.predictions.clear();
        let running: Vec<AttemptId> = adopted.iter().map(|(attempt, _)| *attempt).collect();
        let states: Vec<(&StoredAttempt, Adopted)> = loaded.running.iter().zip(adopted.iter().map(|(_, adopted)| *adopted)).collect();
        self.accounting.begin(&states, speed);
        let found = match self.gpus.find() {
            Err(error) if holds_gpus(&loaded, &adopted) => return Err(EngineError::GpusUnreadable(error)),
            // If the driver does not answer, there are no GPUs for now.
            found => found.inspect_err(|error| tracing::error!("{error}")).unwrap_or_default(),
        };
        if self.setup.local {
            self.host.attach(&mut self.decisions, self.gpus.topology(&found))?;
        }
        self.gpus.attach(&mut self.decisions, found, &loaded.machine_changes, loaded.drained.clone())?;
        // Before the ends of attempts are told, which take their energy with them.
        for (device, counter) in self.gpus.energy_counters() {
            self.accounting.bridge(device, now, counter);
        }
        if self.setup.local && (self.setup.observes || self.draining) {
            self.decisions.prepare(Event::HostShort { server: LOCAL_SERVER })?;
        }
        self.begin_servers(&loaded);
        for (job, reason) in loaded.unreadable {
            self.decisions.warn(format!("{job} cannot be read from the store and is ignored: {reason}"));
        }
        let unestimated = self.restore_jobs(loaded.jobs)?;
        for attempt in running {
            // Its log limit is at most the usual one.
            if let Some(owner) = self.jobs.owner(attempt.job) {
                self.log_space.reserve(attempt, owner.uid);
            }
        }
        self.stop_again();
        self.estimate_unestimated(unestimated);
        if !self.setup.observes {
            for (attempt, _) in adopted.iter().filter(|(_, adopted)| *adopted == Adopted::NeverStarted) {
                self.start_late(*attempt);
            }
            self.gpus.begin(&mut self.decisions, loaded.machine_changes);
        }
        self.gpus.start_sampling(&self.decisions)?;
        self.listeners.notify(clock);
        self.act();
        Ok(())
    }

    /// Attaches the servers of agents. Their agents connect again by themselves.
    fn begin_servers(&mut self, loaded: &Loaded) {
        self.servers.begin(loaded);
        self.pools.begin(loaded);
        self.gpus.clear_remote();
        let servers: Vec<ServerId> = self.servers.iter().map(|server| server.stored.id).collect();
        for server in servers {
            self.attach_server(server);
        }
        if let Err(problem) = self.serve_agents() {
            self.decisions.announce(format!("agents cannot connect: {problem}"));
        }
    }

    /// Skips job numbers that have files on the host. A power cut may have lost those jobs, and a new job must not find an old attempt.
    fn skip_used_numbers(&self) {
        let Some(highest) = self.attempts.executor().highest_job() else { return };
        let store = self.writer.store();
        let next = store.next_jobs(0).0;
        store.next_jobs((highest.0 + 1).saturating_sub(next));
    }

    /// Gives the jobs to the core, which may launch some at once. Returns those that wait for an estimate.
    fn restore_jobs(&mut self, mut unfinished: Vec<UnfinishedJob>) -> Result<Vec<JobId>, EngineError> {
        self.renew_begin_times(&mut unfinished);
        let jobs: Vec<Job> = unfinished.iter().map(|unfinished| unfinished.job.clone()).collect();
        let mut unestimated = Vec::new();
        for UnfinishedJob { job, meta } in unfinished {
            if matches!(job.state, State::Estimating { .. } | State::Held { resumes: Resumes::Estimating, .. }) {
                unestimated.push(job.id());
            }
            self.jobs.add(job.id(), meta);
        }
        let gone = attach_gone(&mut self.decisions, &jobs)?;
        let used = saved::read(&self.setup.places.state.join(SHARES));
        self.decisions.prepare(Event::SharesRestored { used })?;
        self.decisions.tell(Event::JobsRestored { jobs })?;
        for device in gone {
            self.decisions.warn(format!("{device} is lost: jobs run on it, and it is no longer among the GPUs of this manager"));
            self.decisions.tell(Event::GpuLost { device })?;
        }
        Ok(unestimated)
    }

    /// Starts an attempt that is in the store but was never started, because the manager ended before.
    fn start_late(&mut self, attempt: AttemptId) {
        let active = self.decisions.job(attempt.job).and_then(|job| job.state.active());
        match active.map(|active| active.placement.clone()) {
            Some(placement) => self.order_start(attempt, placement),
            None => self.not_started(attempt, "its GPU is no longer available"),
        }
    }

    /// Sends signals to stopping attempts again: the manager may have ended before. A shim forwards each signal once.
    fn stop_again(&self) {
        for job in self.decisions.scheduler().jobs() {
            if let Some((attempt, signal)) = stopping(job) {
                self.attempts.signal(attempt, signal);
            }
        }
    }

    /// Estimates jobs again whose estimate was not ready.
    fn estimate_unestimated(&mut self, jobs: Vec<JobId>) {
        for job in jobs {
            let owner = self.jobs.owner(job).cloned();
            if let (Ok(Some(request)), Some(owner)) = (self.reader.request(job), owner) {
                self.estimate_again(job, request, owner);
            }
        }
    }
}

/// The latest wall-clock time in the store.
fn latest_wall(reader: &Reader, loaded: &Loaded) -> Result<UnixMillis, EngineError> {
    let last = reader.history(&JobFilter::default(), None, 100)?;
    let last = last.iter().flat_map(|job| [Some(job.submitted), Some(job.since), job.ended]).flatten();
    let last = last.chain(loaded.running.iter().map(|stored| stored.launched));
    Ok(last.chain(reader.last_minute()?.map(|minute| UnixMillis(minute.0 * 60_000))).max().unwrap_or_default())
}

/// The wall clock that agrees with the manager's time about how long attempts have run.
fn wall_of_attempts(loaded: &Loaded, now: Time) -> UnixMillis {
    let of_attempt = |stored: &StoredAttempt| {
        let ran = now - active_attempt(loaded, stored.attempt)?.launched_at;
        Some(UnixMillis(stored.launched.0.saturating_add(ran.milliseconds())))
    };
    loaded.running.iter().filter_map(of_attempt).max().unwrap_or_default()
}

/// The core's state of an attempt.
fn active_attempt(loaded: &Loaded, attempt: AttemptId) -> Option<&Active> {
    loaded.jobs.iter().find_map(|unfinished| unfinished.job.state.active().filter(|active| active.attempt == attempt))
}

/// Attaches missing GPUs that attempts are on, so that the core can lose them.
fn attach_gone(decisions: &mut Decisions, jobs: &[Job]) -> Result<BTreeSet<DeviceId>, EventError> {
    let granted = jobs.iter().filter_map(|job| job.state.active()).flat_map(|active| &active.placement.devices);
    let mut gone = BTreeSet::new();
    for Granted { device, reserved, .. } in granted {
        if decisions.scheduler().fleet().device(*device).is_none() {
            decisions.prepare(Event::GpuAttached(DeviceSpec::new(*device, *reserved)))?;
            gone.insert(*device);
        }
    }
    Ok(gone)
}

/// The signal of a stopping attempt.
fn stopping(job: &Job) -> Option<(AttemptId, Signal)> {
    let active = job.state.active()?;
    let signal = match active.stopping? {
        StopReason::TimeSliceOver | StopReason::Moved | StopReason::ServerEnding => Signal::Checkpoint,
        StopReason::Requeued | StopReason::Hanging | StopReason::Borrows(_) if job.spec.may_checkpoint => Signal::Checkpoint,
        StopReason::Requeued | StopReason::Hanging | StopReason::Borrows(_) | StopReason::Cancelled | StopReason::TimeLimit => {
            Signal::Terminate
        }
        StopReason::GpuLost | StopReason::MpsServerDied => Signal::Kill,
    };
    Some((active.attempt, signal))
}

/// Whether attempts run on GPUs. They must not count as lost because the driver does not answer.
fn holds_gpus(loaded: &Loaded, adopted: &[(AttemptId, Adopted)]) -> bool {
    let runs = |adopted: &Adopted| matches!(adopted, Adopted::Running { .. } | Adopted::Starting);
    let running = |attempt| adopted.iter().any(|(other, adopted)| *other == attempt && runs(adopted));
    let active = loaded.jobs.iter().filter_map(|unfinished| unfinished.job.state.active());
    active.filter(|active| running(active.attempt)).any(|active| !active.placement.devices.is_empty())
}

/// The present time of the manager: the last stored time, or later if attempts have run since. The wall clock does not matter.
fn time_goes_on(loaded: &Loaded, adopted: &[(AttemptId, Adopted)], speed: f64) -> Time {
    let since_launch = |(attempt, adopted): &(AttemptId, Adopted)| {
        let (Adopted::Running { ran: Some(ran) } | Adopted::Over(Some(Past { ran, .. }))) = adopted else { return None };
        Some(active_attempt(loaded, *attempt)?.launched_at + ran.times(speed))
    };
    adopted.iter().filter_map(since_launch).max().unwrap_or(Time::ZERO).max(loaded.clock)
}
