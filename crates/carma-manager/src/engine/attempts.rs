//! What the core wants done, and what becomes of attempts.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use carma_core::{Action, AttemptId, Event, EventError, Fraction, Idle, JobId, Outcome, Placement, Signal, State, Verdict};

use super::batch::Effect;
use super::checkpoints::CheckpointWatch;
use super::exits::Remains;
use super::input::Input;
use super::launcher::{LaunchOrder, begun};
use super::run::Running;
use crate::api::Update;
use crate::event::JobEvent;
use crate::judge::{DeviceFacts, Evidence, HostFacts, Judgement, verdict};
use crate::launch::CheckpointTerms;
use crate::measure::Measurement;
use crate::metrics::{Tally, kind_of};
use crate::store::{AttemptEnd, Change, Joules, Measured, Phase, UnixMillis};
use crate::supervise::{AttemptFolder, Supervised};

/// How long until an attempt that could not be looked at is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long until a launch that the machine refused is tried again.
const LAUNCH_AGAIN: Duration = Duration::from_secs(5);

/// An attempt under way, as far as the core does not know it.
#[derive(Debug)]
pub(super) struct Underway {
    /// When it was to be launched.
    pub(super) launched: UnixMillis,
    pub(super) supervised: Option<Supervised>,
    /// What it is to be told once there is somebody to tell.
    signals: Vec<Signal>,
    /// All its processes that were seen on GPUs.
    pub(super) pids: BTreeSet<u32>,
    /// What was seen of its folder for checkpoints.
    pub(super) checkpoints: Option<CheckpointWatch>,
    /// Why the machine last did not let it be launched.
    pub(super) refused: Option<String>,
}

impl Underway {
    pub(super) fn launched(launched: UnixMillis) -> Self {
        Self { launched, supervised: None, signals: Vec::new(), pids: BTreeSet::new(), checkpoints: None, refused: None }
    }
}

impl Running {
    /// Tells the core, and sees to what it wants.
    pub(super) fn tell(&mut self, event: Event) -> bool {
        self.try_tell(event).inspect_err(|error| eprintln!("carma: {error}")).is_ok()
    }

    /// The same where the core may refuse.
    pub(super) fn try_tell(&mut self, event: Event) -> Result<(), EventError> {
        let actions = self.core.handle(event, self.clock.now())?;
        self.act_on(actions);
        Ok(())
    }

    pub(super) fn act_on(&mut self, actions: Vec<Action>) {
        for action in actions {
            let at = self.clock.wall();
            match action {
                Action::Launch { attempt, placement, reason } => {
                    self.attempts.insert(attempt, Underway::launched(at));
                    self.count_launch(attempt);
                    self.batch.changes.push(Change::AttemptStarted { attempt, placement: placement.clone(), at });
                    self.batch.log(at, attempt.job, JobEvent::Launched { attempt: attempt.number, placement: placement.clone(), reason });
                    self.news(attempt.job, format!("{attempt} is launched"));
                    match self.launch_order(attempt, placement) {
                        Some(order) => self.batch.effects.push(Effect::Launch(Box::new(order))),
                        None => self.not_launched(attempt, "its GPU is no longer there"),
                    }
                }
                Action::Signal { attempt, signal, reason } => {
                    self.batch.tallies.count(Tally::Decided("signal".to_owned()));
                    self.batch.log(at, attempt.job, JobEvent::Signalled { attempt: attempt.number, signal, reason });
                    self.news(attempt.job, format!("{attempt} is told to end"));
                    self.batch.effects.push(Effect::Signal(attempt, signal));
                }
                Action::Requeue { job, floor, whole_gpu, reason } => {
                    self.count_requeue(&reason);
                    self.batch.log(at, job, JobEvent::Requeued { floor: Some(floor), whole_gpu, reason });
                    self.news(job, format!("{job} waits again"));
                }
                Action::LimitPower { device, limit } => self.limit_power(device, limit),
                Action::Idle { job, idle } => {
                    let text = idle.map_or("works again", idle_words);
                    self.note(job, JobEvent::Idle { idle, text: text.to_owned() }, format!("{job} {text}"));
                }
                Action::Finish { job, outcome } => self.finished(job, &outcome),
                Action::SwitchMode { device, to, reason } => self.switch_mode(device, to, &reason),
            }
        }
    }

    fn finished(&mut self, job: JobId, outcome: &Outcome) {
        self.batch.log(self.clock.wall(), job, JobEvent::Finished { outcome: outcome.clone(), text: outcome.to_string() });
        self.news(job, format!("{job} {outcome}"));
        self.estimating.remove(&job);
        self.batch.tallies.count(Tally::Decided("finish".to_owned()));
        self.batch.tallies.count(Tally::Finished(kind_of(outcome)));
        self.batch.effects.push(Effect::Forget(job));
    }

    /// The core knows something else of a job: it is written down, and told.
    fn news(&mut self, job: JobId, text: String) {
        self.batch.changed.insert(job);
        let (Some(known), Some(core)) = (self.jobs.get(&job), self.core.scheduler().job(job)) else { return };
        let (uid, attempt) = (known.owner.uid, core.attempts);
        self.batch.effects.push(Effect::Tell(Update::Job { job, uid, state: Phase::from(&core.state), attempt, text }));
    }

    /// The same for what has a line in its timeline.
    pub(super) fn note(&mut self, job: JobId, event: JobEvent, text: String) {
        self.batch.log(self.clock.wall(), job, event);
        self.news(job, text);
    }

    pub(super) fn launch_order(&self, attempt: AttemptId, placement: Placement) -> Option<LaunchOrder> {
        let owner = self.jobs.get(&attempt.job)?.owner.clone();
        let uuid = |granted: &carma_core::Granted| self.devices.get(granted.device).map(|device| device.uuid.clone());
        let devices = placement.devices.iter().map(uuid).collect::<Option<Vec<_>>>()?;
        let client = placement.devices.first().filter(|granted| matches!(granted.limits, carma_core::Limits::Mps { .. }));
        let mps = client.and_then(|granted| self.mps_control(granted.device));
        let rules = self.core.scheduler().config();
        let checkpoints = CheckpointTerms { grace: rules.queue.grace, slot: rules.slots.length };
        Some(LaunchOrder { attempt, owner, placement, devices, mps, checkpoints })
    }

    pub(super) fn launched(&mut self, attempt: AttemptId, supervised: Supervised) {
        let Some(underway) = self.attempts.get_mut(&attempt) else {
            // Nothing runs that nobody watches.
            return drop(supervised.signal(Signal::Kill));
        };
        for signal in std::mem::take(&mut underway.signals) {
            let _ = supervised.signal(signal);
        }
        underway.supervised = Some(supervised.clone());
        self.owners = None;
        if let Err(error) = self.exits.add(attempt, supervised) {
            self.unclear(attempt, &format!("it cannot be watched: {error}"));
        }
    }

    /// An attempt that cannot be looked at is looked at again; until then it counts as running.
    pub(super) fn unclear(&mut self, attempt: AttemptId, reason: &str) {
        if !self.attempts.contains_key(&attempt) {
            return;
        }
        eprintln!("carma: how {attempt} stands is looked at again in a moment: {reason}");
        let (folder, inputs) = (AttemptFolder::of(&self.setup.places.state, attempt), self.inputs.clone());
        let program = self.setup.program.clone();
        let run = move || {
            thread::sleep(LOOK_AGAIN);
            let _ = inputs.send(begun(attempt, &folder, &program));
        };
        if thread::Builder::new().name("look again".to_owned()).spawn(run).is_err() {
            eprintln!("carma: {attempt} is not looked at until the manager is started again");
        }
    }

    /// The machine did not let us launch: the attempt keeps its place, and it is tried again.
    pub(super) fn launch_refused(&mut self, order: Box<LaunchOrder>, reason: &str) {
        self.announce(format!("{} could not be launched, and will be tried again: {reason}", order.attempt));
        if let Some(underway) = self.attempts.get_mut(&order.attempt) {
            underway.refused = Some(reason.to_owned());
        }
        let inputs = self.inputs.clone();
        let run = move || {
            thread::sleep(LAUNCH_AGAIN);
            let _ = inputs.send(Input::LaunchAgain(order));
        };
        let _ = thread::Builder::new().name("launch again".to_owned()).spawn(run);
    }

    pub(super) fn launch_again(&mut self, order: Box<LaunchOrder>) {
        match self.attempts.get(&order.attempt) {
            None => {}
            Some(underway) if underway.signals.is_empty() => self.launcher.launch(order),
            // It was to end before it began.
            Some(_) => self.not_launched(order.attempt, "it was told to end before it could be launched"),
        }
    }

    pub(super) fn signal(&mut self, attempt: AttemptId, signal: Signal) {
        let Some(underway) = self.attempts.get_mut(&attempt) else { return };
        match &underway.supervised {
            Some(supervised) => {
                let told = supervised.signal(signal);
                let _ = told.inspect_err(|error| eprintln!("carma: {attempt} cannot be told to end: {error}"));
            }
            None => underway.signals.push(signal),
        }
    }

    pub(super) fn not_launched(&mut self, attempt: AttemptId, reason: &str) {
        let judgement = Judgement {
            verdict: Verdict::CouldNotStart { reason: reason.to_owned() },
            because: reason.to_owned(),
            whose: None,
            needed: None,
        };
        self.conclude(attempt, None, &judgement, Event::LaunchFailed { attempt, reason: reason.to_owned() });
    }

    /// An attempt is over: it is judged, and the core goes on from there.
    pub(super) fn ended(&mut self, remains: &Remains) {
        let attempt = remains.attempt;
        let Some(underway) = self.attempts.get(&attempt) else { return };
        let Some(State::Starting(active) | State::Running(active)) = self.core.scheduler().job(attempt.job).map(|job| &job.state) else {
            return;
        };
        let facts = |granted: &carma_core::Granted| self.device_facts(granted.device, attempt, active.launched_at);
        let evidence = Evidence {
            exit: remains.ended.as_ref().map(|ended| ended.exit.clone()),
            launched_at: active.launched_at,
            stopped: active.stopping,
            stdout: &remains.stdout,
            stderr: &remains.stderr,
            pids: underway.pids.clone(),
            devices: active.placement.devices.iter().map(facts).collect(),
            host: HostFacts { oom_kills: None, kernel_log: remains.kernel_log.as_deref() },
        };
        let judgement = verdict(&evidence);
        if let Some(needed) = judgement.needed {
            self.tell(Event::MemoryNeeded { attempt, needed });
        }
        let verdict = judgement.verdict.clone();
        self.read_progress([attempt]);
        self.look_for_checkpoint(attempt, true);
        self.conclude(attempt, Some(remains), &judgement, Event::JobExited { attempt, verdict });
        // What it held is free now, and the GPU says so at the next look.
        self.looks.as_ref().inspect(|looks| looks.now());
    }

    fn conclude(&mut self, attempt: AttemptId, remains: Option<&Remains>, judgement: &Judgement, event: Event) {
        let at = self.clock.wall();
        let measurement = self.meter.finish(attempt);
        let placement = self.core.scheduler().job(attempt.job).and_then(|job| job.state.active()).map(|active| active.placement.clone());
        let Some(placement) = placement.filter(|_| self.attempts.remove(&attempt).is_some()) else { return };
        self.learn(attempt, &measurement, judgement);
        self.count_end(attempt, &measurement, &judgement.verdict);
        let steps = self.steps.last(attempt).into_iter();
        self.batch.changes.extend(steps.map(|(device, step)| Change::MemoryStepped { attempt, device, step }));
        let end = AttemptEnd {
            at,
            exit: remains.and_then(|remains| Some(remains.ended.as_ref()?.exit.clone())),
            verdict: judgement.verdict.clone(),
            measured: measured(&measurement, &placement),
        };
        self.batch.changes.push(Change::AttemptEnded { attempt, end: Box::new(end) });
        let Judgement { verdict, because, whose, .. } = judgement.clone();
        let text = format!("{attempt} ended: {because}");
        self.note(attempt.job, JobEvent::Ended { attempt: attempt.number, verdict, because, whose }, text);
        self.tell(event);
        self.forget_gone_instances(&placement);
    }

    /// What was seen of a GPU, for a judgement.
    fn device_facts(&self, device: carma_core::DeviceId, attempt: AttemptId, since: carma_core::Time) -> DeviceFacts {
        let known = self.core.scheduler().fleet().device(device);
        let reading = self.latest.get(&device).and_then(|looked| looked.reading.as_ref().ok());
        let tenant = known.and_then(|known| known.tenants.iter().find(|tenant| tenant.attempt == attempt));
        DeviceFacts {
            lost: known.is_some_and(|known| known.lost),
            mps_server_died: self.mps_deaths.get(&device).is_some_and(|died| *died >= since),
            xids: self.xids.get(&device).cloned().unwrap_or_default(),
            memory_total: reading.map(|reading| reading.memory_total),
            memory_used: reading.map(|reading| reading.memory_used),
            own_memory: tenant.map(carma_core::Tenant::attributed),
            promised: tenant.map(|tenant| tenant.promised),
            ..DeviceFacts::new(device)
        }
    }

    /// How far attempts are that say so.
    pub(super) fn read_progress(&mut self, attempts: impl IntoIterator<Item = AttemptId>) {
        for attempt in attempts {
            let note = self.attempts.get(&attempt).and_then(|underway| super::exits::progress(underway.supervised.as_ref()?.folder()));
            let Some(done) = note.map(Fraction::clamped) else { continue };
            if self.core.scheduler().job(attempt.job).is_some_and(|job| job.progress != Some(done)) {
                // It may have ended meanwhile.
                let _ = self.try_tell(Event::Progress { attempt, done });
            }
        }
    }
}

/// What is said of a job that holds GPUs and does not use them.
pub(super) const fn idle_words(idle: Idle) -> &'static str {
    if idle.lent { "holds its GPUs and does not use them: others may" } else { "holds its GPUs and does not use them" }
}

/// What is kept of what an attempt took.
pub(crate) fn measured(measurement: &Measurement, placement: &Placement) -> Measured {
    let usage = |granted: &carma_core::Granted| measurement.gpus.get(&granted.device);
    let fullest = measurement.gpus.values().max_by_key(|usage| usage.peak_memory);
    Measured {
        peaks: placement.devices.iter().map(|granted| usage(granted).map(|usage| usage.peak_memory).unwrap_or_default()).collect(),
        utilisation: carma_core::Utilisation {
            smact: fullest.and_then(|usage| usage.smact.mean()),
            smocc: fullest.and_then(|usage| usage.smocc.mean()),
            drama: fullest.and_then(|usage| usage.drama.mean()),
            gpu: fullest.and_then(|usage| usage.utilisation.mean()),
        },
        energy: (!measurement.gpus.is_empty()).then(|| Joules(measurement.energy().joules())),
    }
}
