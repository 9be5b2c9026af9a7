//! Switching GPUs to another mode: for the predicted gain of the waiting jobs, or for a job that could not start otherwise.
//!
//! ```text
//!  idle, rested ──SwitchMode──► switching: takes no job ──GpuModeChanged──► open again, and rests for `modes.every`
//!       ▲                            │
//!       └──ModeRefused, or no answer─┘ and is not switched to that mode again under these rules
//! ```

use std::collections::{BTreeMap, VecDeque};

use super::action::{Action, SwitchReason};
use super::timers::Timer;
use super::{EventError, Scheduler};
use crate::admission::{Demand, HeadReservation, mode_objection};
use crate::device::{Device, grown_stale};
use crate::forecast::InterferenceProfile;
use crate::job::Job;
use crate::modes::{CurrentGpu, WaitingJob, best_mode};
use crate::obstacle::PlacementKind;
use crate::sharing::{CollocationMode, GpuMode, MigLayout, Part, SharingMode};
use crate::units::{Seconds, Time};
use crate::{DeviceId, JobId};

/// A switch without an answer for this time has failed.
const SWITCH_TIMEOUT: Seconds = Seconds::from_secs(600);
/// Jobs that a GPU is chosen for.
const JOBS: usize = 8;
/// Idle GPUs that jobs of the queue are counted out to; more jobs of the queue are not considered.
const GPUS: usize = 8;

/// Data for the choice of modes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ModeSwitching {
    /// GPUs that are being switched, and when that is given up.
    in_progress: BTreeMap<DeviceId, Time>,
    /// Jobs that were started last: what comes will be like them.
    recent: VecDeque<WaitingJob>,
}

impl Scheduler {
    /// Switches the GPU that the head would get, where the waiting jobs gain by that. Recent jobs stand for those to come: that is enough to start
    /// an MPS server, but not to partition a GPU.
    pub(super) fn switch_to_gain(&mut self, head: JobId, now: Time, actions: &mut Vec<Action>) -> bool {
        if self.config.modes.allowed.is_empty() {
            return false;
        }
        let Some((placement, PlacementKind::Idle)) = self.jobs.get(&head).and_then(|job| self.place(job, &[], now)) else { return false };
        let [granted] = &placement.devices[..] else { return false };
        let gpu = DeviceId { instance: None, ..granted.device };
        if !self.may_switch(gpu, now) {
            return false;
        }
        let Some(as_it_is) = self.as_it_is(gpu) else { return false };
        // However many instances it has, it is one GPU.
        let others = self.fleet.open_devices(PlacementKind::Idle).saturating_sub(as_it_is.parts.len().max(1));
        let idle = 1 + others + self.modes.in_progress.len();
        let jobs = self.queues.in_order().take(JOBS * idle.min(GPUS)).filter_map(|job| self.jobs.get(&job));
        let mut waiting: Vec<WaitingJob> = jobs.map(|job| self.waiting_job(job, now)).collect();
        let mut choice = best_mode(&as_it_is, &waiting, idle, &self.config);
        if choice.mode.is_none() && as_it_is.mode != SharingMode::Mig {
            waiting.extend(self.modes.recent.iter().cloned());
            waiting.truncate(JOBS * idle);
            let mut whole = as_it_is;
            whole.refused.push(SharingMode::Mig);
            choice = best_mode(&whole, &waiting, idle, &self.config);
        }
        let Some(mode) = choice.mode else { return false };
        self.switch(gpu, mode, SwitchReason::Gain(choice), now, actions);
        true
    }

    /// Switches the devices to be kept for a waiting head, where it cannot use them as they are. Returns whether any is switched.
    pub(super) fn switch_for(&mut self, head: JobId, kept: &[HeadReservation], now: Time, actions: &mut Vec<Action>) -> bool {
        let enough = |job: &Job| {
            let demand = self.demand(job, now);
            self.in_preparation(&demand, now) >= demand.width()
        };
        if self.config.modes.allowed.is_empty() || self.job(head).is_none_or(enough) {
            return false;
        }
        // Jobs that passed the head in this decision went by this plan: another one could keep the devices that they are on.
        let planned = HeadReservation::of(head, kept).filter(|kept| !kept.devices.is_empty()).cloned();
        // Otherwise, instances may have become free without an attempt ending: the earlier plan may not be the soonest.
        self.reservation = planned;
        // Other jobs may still pass a head that is not due, but its switch need not wait until it is due.
        let Some(planned) = self.planned_for(head, now) else { return false };
        let devices = planned.devices.clone();
        self.reservation = Some(planned);
        let before = actions.len();
        for device in devices {
            let mode = self.jobs.get(&head).and_then(|job| self.needed_mode(&self.demand(job, now), self.fleet.device(device)?));
            if let Some(mode) = mode.filter(|_| self.may_switch(device, now)) {
                self.switch(device, mode, SwitchReason::Needed(head), now, actions);
            }
        }
        actions.len() > before
    }

    /// Devices in preparation that the job could use: being switched, or just switched and without a sample yet.
    fn in_preparation(&self, demand: &Demand<'_>, now: Time) -> usize {
        let cut = demand.switch == Some(SharingMode::Mig);
        let resting = |device: &Device| {
            let whole = self.fleet.device(DeviceId { instance: None, ..device.id() });
            whole.is_some_and(|whole| !whole.switches.have_rested(self.config.modes.every, now))
        };
        let comes = |device: &&Device| {
            if let Some(to) = device.switches.to {
                return device.id().instance.is_none() && (to.sharing() == SharingMode::Mig) == cut;
            }
            let unheard = device.exists() && !device.ending && !device.partitioned && device.telemetry.memory_used().is_none();
            let holds = demand.ranks.first().is_some_and(|need| device.spec.memory >= need.alone);
            let suits = holds && mode_objection(demand.spec, device).is_none();
            unheard && suits && resting(device)
        };
        self.fleet.devices().filter(comes).count()
    }

    /// What a GPU must be switched to for a job to run on it; nothing if it can run there as it is.
    fn needed_mode(&self, demand: &Demand<'_>, device: &Device) -> Option<GpuMode> {
        let wrong = mode_objection(demand.spec, device).is_some();
        let may = |mode: &SharingMode| self.config.modes.allows(*mode) && !device.switches.refused.contains(mode);
        let whole = [SharingMode::Streams, SharingMode::Mps];
        let to = if wrong { demand.switch.filter(may) } else { whole.into_iter().filter(|_| device.partitioned).find(may) };
        Some(match to? {
            SharingMode::Streams => GpuMode::Streams,
            SharingMode::Mps => GpuMode::Mps,
            SharingMode::Mig => {
                let fits = |layout: &MigLayout| layout.parts(device.spec.memory).iter().all(|part| demand.ranks[0].to_share <= part.memory);
                // As many as can each hold it; else the largest there are.
                GpuMode::Mig(MigLayout::ALL.into_iter().rfind(fits).unwrap_or(MigLayout::FourThree))
            }
        })
    }

    fn of_gpu(&self, gpu: DeviceId) -> impl Iterator<Item = &Device> {
        let devices = self.fleet.server(gpu.server()).into_iter().flat_map(|server| &server.devices);
        devices.filter(move |device| device.id().gpu == gpu.gpu)
    }

    /// Whether the GPU and its instances are empty and healthy, and the last switch is long enough ago.
    fn may_switch(&self, gpu: DeviceId, now: Time) -> bool {
        let free = |device: &Device| {
            let sound = !device.lost && !device.drained && !device.ending && !device.host_short && device.switches.to.is_none();
            sound && device.is_idle(&self.config) && grown_stale(device, &self.config, now).is_none()
        };
        let modes = &self.config.modes;
        let ready = |device: &Device| device.switches.have_rested(modes.every, now) && (!device.partitioned || modes.joins());
        self.fleet.device(gpu).is_some_and(ready) && self.of_gpu(gpu).all(free)
    }

    fn as_it_is(&self, gpu: DeviceId) -> Option<CurrentGpu> {
        let whole = self.fleet.device(gpu)?;
        let memory = whole.spec.memory;
        let instances = self.of_gpu(gpu).filter(|device| device.id().instance.is_some());
        let parts: Vec<Part> = instances.map(|instance| Part::with_memory(instance.spec.memory, memory)).collect();
        let mode = match whole.spec.mode {
            _ if whole.partitioned => SharingMode::Mig,
            CollocationMode::Mps { .. } => SharingMode::Mps,
            CollocationMode::Streams | CollocationMode::Mig => SharingMode::Streams,
        };
        Some(CurrentGpu { memory, mode, parts, refused: whole.switches.refused.clone() })
    }

    fn waiting_job(&self, job: &Job, now: Time) -> WaitingJob {
        let demand = self.demand(job, now);
        let spec = &job.spec;
        WaitingJob {
            user: spec.user,
            profile: InterferenceProfile::of(spec),
            memory: demand.ranks.first().map(|need| need.to_share).unwrap_or_default(),
            whole: demand.needs_idle || demand.width() > 1,
            requested: spec.mode,
            expected: spec.expected_duration,
        }
    }

    /// Notes what kind of jobs come.
    pub(super) fn remember_kind(&mut self, job: JobId, now: Time) {
        if self.config.modes.allowed.is_empty() {
            return;
        }
        let kind = self.jobs.get(&job).filter(|job| job.spec.gpus == 1).map(|job| self.waiting_job(job, now)).filter(|kind| !kind.whole);
        self.modes.recent.extend(kind);
        let surplus = self.modes.recent.len().saturating_sub(JOBS);
        self.modes.recent.drain(..surplus);
    }

    fn switch(&mut self, gpu: DeviceId, mode: GpuMode, reason: SwitchReason, now: Time, actions: &mut Vec<Action>) {
        self.set_switching(gpu, Some(mode), now);
        self.modes.in_progress.insert(gpu, now + SWITCH_TIMEOUT);
        self.timers.set(now + SWITCH_TIMEOUT, Timer::Switch(gpu));
        self.reservation = None;
        actions.push(Action::SwitchMode { device: gpu, to: mode, reason });
    }

    fn set_switching(&mut self, gpu: DeviceId, to: Option<GpuMode>, now: Time) {
        let devices: Vec<DeviceId> = self.of_gpu(gpu).map(Device::id).collect();
        for device in devices {
            self.fleet.update(device, &self.config, now, |device| device.switches.to = to);
        }
    }

    /// A GPU has another mode, requested or not: it rests.
    pub(super) fn switched(&mut self, gpu: DeviceId, now: Time) {
        self.end_switch(gpu, now);
        self.fleet.update(gpu, &self.config, now, |device| device.switches.changed_at = Some(now));
        self.look_when_rested(gpu, now);
    }

    /// A GPU that rests may be switched again when it has, by the rules in force.
    pub(super) fn look_when_rested(&mut self, gpu: DeviceId, now: Time) {
        let modes = &self.config.modes;
        let changed = self.fleet.device(gpu).and_then(|device| device.switches.changed_at).filter(|_| !modes.allowed.is_empty());
        if let Some(rested) = changed.map(|changed| changed + modes.every).filter(|rested| *rested > now) {
            self.timers.set(rested, Timer::Switch(gpu));
        }
    }

    /// Nothing more is to be expected of a switch.
    pub(super) fn end_switch(&mut self, gpu: DeviceId, now: Time) {
        if let Some(given_up) = self.modes.in_progress.remove(&gpu) {
            self.timers.cancel(given_up, Timer::Switch(gpu));
            self.set_switching(gpu, None, now);
        }
    }

    pub(super) fn mode_refused(&mut self, gpu: DeviceId, now: Time) -> Result<(), EventError> {
        let to = self.fleet.device(gpu).ok_or(EventError::UnknownDevice(gpu))?.switches.to;
        let Some(to) = to.filter(|_| self.modes.in_progress.contains_key(&gpu)) else { return Err(EventError::NotSwitching(gpu)) };
        self.end_switch(gpu, now);
        self.fleet.update(gpu, &self.config, now, |device| device.switches.refused.push(to.sharing()));
        Ok(())
    }

    /// A switch has gone unanswered, or a GPU has rested.
    pub(super) fn look_at_switch(&mut self, gpu: DeviceId, now: Time) {
        if self.modes.in_progress.get(&gpu).is_some_and(|given_up| *given_up <= now) {
            // The GPU may be gone; then there is nothing to note.
            let _ = self.mode_refused(gpu, now);
        }
        self.mark_all_dirty();
    }

    /// Every GPU whose switch is kept in two places that do not agree, for checks.
    pub(super) fn wrong_switches(&self) -> impl Iterator<Item = DeviceId> {
        let switching = |device: &&Device| device.switches.to.is_some();
        let occupied = |device: &&Device| {
            !device.tenants.is_empty() || device.id().instance.is_none() && !self.modes.in_progress.contains_key(&device.id())
        };
        self.fleet.devices().filter(switching).filter(occupied).map(Device::id)
    }
}
