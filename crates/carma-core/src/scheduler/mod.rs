//! The scheduler: events in, actions out. It owns all state and has no clock, no I/O and no randomness.
//!
//! ```text
//! handle(event, now):  apply the event ─► fire what fell due ─► decide ─► actions
//!                      (jobs, attempts,    (timers)             (decide)
//!                       devices)
//! ```
//!
//! A refused event changes nothing. The same events at the same times give the same actions.

mod action;
mod attempts;
mod audit;
mod backlog;
mod borrowers;
mod correction;
mod cpu_jobs;
mod decide;
mod devices;
mod dirty_scope;
mod error;
mod event;
mod explain;
mod front;
mod head;
mod idle_jobs;
mod jobs;
mod log;
mod modes;
mod pace;
mod power;
mod preemption_plan;
mod quotas;
mod restore;
mod servers;
mod shares;
mod stalls;
mod time_slices;
mod timers;
mod wait_reason;

pub use action::{Action, LaunchReason, RequeueReason, Signal, SwitchReason};
pub use error::EventError;
pub use event::{Estimate, Event, LimitChange};
pub use explain::{DeviceAnswer, DeviceReport, Explanation, HostAnswer};
pub use log::{EventLog, LogError, LogHeader, Record, replay};
pub use shares::{PastUse, ShareReport};
pub use wait_reason::{Precedence, WaitReason};

use std::collections::BTreeMap;

use crate::admission::HeadReservation;
use crate::config::Config;
use crate::fleet::Fleet;
use crate::job::{Job, Verdict};
use crate::queue::{Arrays, Dependents, Place, Queues, Quotas};
use crate::units::Time;
use crate::{AttemptId, DeviceId, JobId, JobLabel};
use backlog::Backlog;
use dirty_scope::DirtyScope;
use modes::ModeSwitching;
use pace::Pace;
use time_slices::TimeSlices;
use timers::Timers;

/// The decision core.
///
/// ```
/// use carma_core::*;
///
/// let mut scheduler = Scheduler::new(Config::default());
/// let (server, gpu) = (ServerId(0), DeviceId::gpu(ServerId(0), 0));
/// let now = Time::from_secs(1);
/// scheduler.handle(Event::ServerAttached(ServerSpec::new(server)), now)?;
/// scheduler.handle(Event::GpuAttached(DeviceSpec::new(gpu, MiB(40_960))), now)?;
/// scheduler.handle(Event::GpuSampled { device: gpu, sample: Sample::new(now, MiB(4)) }, now)?;
/// let actions = scheduler.handle(Event::JobSubmitted(Box::new(JobSpec::new(JobId(1)))), now)?;
/// assert!(matches!(&actions[..], [Action::Launch { placement, .. }] if placement.devices[0].device == gpu));
/// # Ok::<(), EventError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Scheduler {
    config: Config,
    clock: Time,
    /// In boxes: a node of the tree has room for eleven, and half of it is empty where numbers only rise.
    jobs: BTreeMap<JobId, Box<Job>>,
    fleet: Fleet,
    queues: Queues,
    dependents: Dependents,
    arrays: Arrays,
    quotas: Quotas,
    timers: Timers,
    modes: ModeSwitching,
    time_slices: TimeSlices,
    /// Speeds of attempts that report progress; kept where placements are corrected by them.
    paces: BTreeMap<AttemptId, Pace>,
    /// Counts accepted jobs, and those put back behind others.
    sequence: u64,
    /// The device placed on last, for policies that go round.
    cursor: Option<DeviceId>,
    /// GPU time that running attempts should still take.
    backlog: Backlog,
    /// The longest job, where it is next for being that.
    critical: Option<JobId>,
    /// What the next decision has to consider.
    dirty: DirtyScope,
    /// What is kept for the head of the queue; unset when it must be planned again.
    reservation: Option<HeadReservation>,
}

impl Scheduler {
    /// A scheduler that knows of no server and no job.
    pub fn new(config: Config) -> Self {
        Self {
            queues: Queues::new(&config.queue),
            config,
            clock: Time::ZERO,
            jobs: BTreeMap::new(),
            fleet: Fleet::default(),
            dependents: Dependents::default(),
            arrays: Arrays::default(),
            quotas: Quotas::default(),
            timers: Timers::default(),
            time_slices: TimeSlices::default(),
            paces: BTreeMap::new(),
            modes: ModeSwitching::default(),
            sequence: 0,
            cursor: None,
            backlog: Backlog::default(),
            critical: None,
            dirty: DirtyScope::default(),
            reservation: None,
        }
    }

    /// Takes in an event and answers what is to be done. `now` should come from a steady clock: time never runs backwards
    /// here, and an earlier `now` counts as the latest.
    pub fn handle(&mut self, event: Event, now: Time) -> Result<Vec<Action>, EventError> {
        let now = now.max(self.clock);
        let mut actions = Vec::new();
        let reach = DirtyScope::reach_of(&event);
        self.apply(event, now, &mut actions)?;
        self.clock = now;
        if reach == DirtyScope::Anything {
            self.review_reserve(now);
            self.mark_all_dirty();
        }
        self.fire_timers(now, &mut actions);
        self.decide(now, &mut actions);
        self.preempt(now, &mut actions);
        Ok(actions)
    }

    /// Every arm checks before it changes anything, so that a refused event leaves no trace.
    fn apply(&mut self, event: Event, now: Time, actions: &mut Vec<Action>) -> Result<(), EventError> {
        match event {
            Event::ServerAttached(spec) => self.server_attached(spec, now),
            Event::ServerEnds { server, at } => self.server_ends(server, at, now),
            Event::ServerDraining { server } => self.server_draining(server, now, actions),
            Event::ServerDetached { server } => self.server_detached(server, now),
            Event::GpuAttached(spec) => self.gpu_attached(spec, now, actions),
            Event::GpuDetached { device } => self.gpu_detached(device, now),
            Event::GpuModeChanged { device, mode } => self.gpu_mode_changed(device, mode, now),
            Event::ModeRefused { device, .. } => self.mode_refused(device, now),
            Event::GpuLost { device } => self.gpu_lost(device, now, actions),
            Event::GpuRecovered { device } => self.gpu_recovered(device, now, actions),
            Event::GpuDrained { device } => self.gpu_drained(device, true, now),
            Event::GpuFailing { device } => self.gpu_failing(device, now, actions),
            Event::GpuResumed { device } => self.gpu_drained(device, false, now),
            Event::MpsServerDied { device } => self.mps_server_died(device, now, actions),
            Event::GpuSampled { device, sample } => self.gpu_sampled(device, sample, now, actions),
            Event::GpuWindow { device, window } => self.gpu_window(device, window, now, actions),
            Event::PowerLimited { device, limit } => self.power_limited(device, limit, now),
            Event::ActivitySeen { device, attempts } => self.activity_seen(device, &attempts, now, actions),
            Event::ProcessesSeen { device, processes } => self.processes_seen(device, &processes, now, actions),
            Event::HostShort { server } => self.host_short(server, true, now),
            Event::HostRecovered { server } => self.host_short(server, false, now),
            Event::HostMemory { server, available } => self.host_memory(server, available),
            Event::JobSubmitted(spec) => self.job_submitted(*spec, now, actions),
            Event::JobsSubmitted { jobs } => self.jobs_submitted(jobs, now, actions),
            Event::SharesRestored { used } => {
                self.shares_restored(&used, now);
                Ok(())
            }
            Event::JobsRestored { jobs } => self.jobs_restored(jobs, now, actions),
            Event::JobCancelled { job } => self.job_cancelled(job, now, actions),
            Event::JobHeld { job } => self.job_held(job, now),
            Event::JobReleased { job } => self.job_released(job, now),
            Event::JobRequeued { job } => self.job_requeued(job, now, actions),
            Event::JobChanged { job, priority, time_limit } => self.job_changed(job, priority, time_limit, now),
            Event::BeginMoved { job, begin } => self.begin_moved(job, begin, now),
            Event::JobForgotten { job } => self.job_forgotten(job),
            Event::EstimateReady { job, estimate } => self.estimate_ready(job, *estimate, now),
            Event::Progress { attempt, done } => self.progressed(attempt, done, now, actions),
            Event::StallSeen { attempt, stall } => self.stall_seen(attempt, stall, now, actions),
            Event::Checkpointed { attempt } => self.checkpointed(attempt, now),
            Event::MemoryNeeded { attempt, needed } => self.memory_needed(attempt, needed),
            Event::EndedAt { attempt, at } => self.ended_at(attempt, at, now),
            Event::NotLimited { attempt, device } => self.not_limited(attempt, device, now),
            Event::LaunchFailed { attempt, reason } => self.exited(attempt, Verdict::CouldNotStart { reason }, now, actions),
            Event::JobExited { attempt, verdict } => self.exited(attempt, verdict, now, actions),
            Event::ConfigurationChanged(settings) => {
                let before = std::mem::replace(&mut self.config, settings.check()?);
                self.apply_queue_rules(&before.queue, now);
                self.apply_rules(now);
                self.limit_all_power(now, actions);
                self.judge_all_idle(now);
                Ok(())
            }
            Event::Tick => Ok(()),
        }
    }

    /// The rules in force.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The time of the latest event.
    pub const fn now(&self) -> Time {
        self.clock
    }

    /// When it wants to be called again even if nothing happens: with [`Event::Tick`], at this time.
    ///
    /// ```
    /// use carma_core::{Config, Event, JobId, JobSpec, Scheduler, Time};
    /// let mut scheduler = Scheduler::new(Config::default());
    /// let begin = Some(Time::from_secs(60));
    /// scheduler.handle(Event::JobSubmitted(Box::new(JobSpec { begin, ..JobSpec::new(JobId(1)) })), Time::ZERO)?;
    /// // A driver sleeps until something happens or this time has come, whichever is first.
    /// while let Some(wakeup) = scheduler.next_wakeup() {
    ///     let actions = scheduler.handle(Event::Tick, wakeup)?;
    ///     // ... and does what the actions say.
    ///     # assert!(actions.is_empty());
    /// }
    /// # Ok::<(), carma_core::EventError>(())
    /// ```
    pub fn next_wakeup(&self) -> Option<Time> {
        self.timers.next()
    }

    /// A job by name.
    pub fn job(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(&id).map(Box::as_ref)
    }

    /// The name of a job for users; the number of an unknown job.
    pub fn label(&self, id: JobId) -> JobLabel {
        self.job(id).map_or_else(|| id.into(), |job| job.spec.label())
    }

    /// Every job it remembers, in order of name.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().map(Box::as_ref)
    }

    /// The servers and their devices.
    pub const fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// Jobs that want GPUs and could start if there were room, in the order in which they will be tried.
    pub fn queue(&self) -> impl Iterator<Item = &Job> {
        self.queue_ids().filter_map(|job| self.job(job))
    }

    /// The ids of [`Self::queue`]: cheaper where most of them are skipped.
    pub fn queue_ids(&self) -> impl Iterator<Item = JobId> {
        // The longest job may be next, wherever it stands.
        let head = self.head();
        head.into_iter().chain(self.queues.in_order().filter(move |job| Some(*job) != head))
    }

    /// Whether a job is in [`Self::queue`].
    pub fn is_queued(&self, job: &Job) -> bool {
        self.queues.awaits_gpus(&Place::of(job))
    }

    /// What is kept for the head of the queue while it waits; nothing without backfill.
    pub fn head_reservation(&self) -> Option<HeadReservation> {
        let head = self.head()?;
        self.config.queue.backfill.and_then(|_| self.kept_for(head, self.clock))
    }
}
