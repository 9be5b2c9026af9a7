//! Time slots: attempts that can checkpoint and have had theirs make room for those who wait.
//!
//! An attempt whose slot is over goes on for as long as nobody waits who could use what it frees. Whether somebody could is
//! looked at when a slot ends, when a job comes to wait and when devices or jobs change, on copies of the servers concerned:
//! those who were told to end are taken off first, then those whose slot is over, the longest first, until the job fits.

use std::collections::{BTreeMap, BTreeSet};

use super::Scheduler;
use super::action::{Action, Signal};
use super::timers::Timer;
use crate::admission::{Demand, JobQuestion, Obstacle, RankNeed, Way, device_obstacles, first_job_obstacle, host_takes};
use crate::config::Config;
use crate::device::{Device, Tenant};
use crate::fleet::Server;
use crate::job::{Job, StopReason, Waiting};
use crate::queue::{HeadReservation, Place};
use crate::units::Time;
use crate::{AttemptId, DeviceId, JobId, ServerId};

/// The most servers that are looked at for one that waits: those whose slots have been over for longest.
const SERVERS: usize = 64;

/// Attempts that have had their slot, and attempts that were told to end.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Slots {
    /// With when their slot ended.
    over: BTreeMap<AttemptId, Time>,
    leaving: BTreeSet<AttemptId>,
    /// Something has changed since it was last looked who could use what slots leave.
    unseen: bool,
}

impl Slots {
    /// Somebody may wait now who could use what a slot leaves.
    pub(super) fn look_again(&mut self) {
        self.unseen = true;
    }

    /// An attempt was told to end.
    pub(super) fn leaves(&mut self, attempt: AttemptId) {
        self.over.remove(&attempt);
        self.leaving.insert(attempt);
    }

    /// An attempt is over.
    pub(super) fn gone(&mut self, attempt: AttemptId) {
        self.over.remove(&attempt);
        self.leaving.remove(&attempt);
    }
}

impl Scheduler {
    /// When the slot of a running job ends, if it has one.
    fn slot_ends(&self, job: JobId) -> Option<(Time, AttemptId)> {
        let job = self.jobs.get(&job).filter(|job| job.spec.may_checkpoint && job.spec.gpus > 0)?;
        let active = job.state.active().filter(|active| active.stopping.is_none())?;
        Some((active.launched_at + self.config.slots.length?, active.attempt))
    }

    /// A job runs, and its slot with it.
    pub(super) fn begin_slot(&mut self, job: JobId) {
        if let Some((end, attempt)) = self.slot_ends(job) {
            self.timers.set(end, Timer::Slot(attempt));
        }
    }

    /// Slots are of another length from now on.
    pub(super) fn begin_slots_anew(&mut self) {
        self.slots.over.clear();
        if self.config.slots.length.is_some() {
            let on_gpus: BTreeSet<JobId> =
                self.fleet.devices().flat_map(|device| &device.tenants).map(|tenant| tenant.attempt.job).collect();
            on_gpus.into_iter().for_each(|job| self.begin_slot(job));
        }
    }

    /// An attempt may have had its slot; its length may have changed since that was foreseen.
    pub(super) fn slot_over(&mut self, attempt: AttemptId, now: Time) {
        if let Some((end, _)) = self.slot_ends(attempt.job).filter(|(end, under_way)| *under_way == attempt && *end <= now) {
            self.slots.over.insert(attempt, end);
            self.slots.unseen = true;
        }
    }

    /// Asks those whose slot is over to make room for those who wait and could use it.
    pub(super) fn give_slots(&mut self, now: Time, actions: &mut Vec<Action>) {
        if self.slots.over.is_empty() || !std::mem::take(&mut self.slots.unseen) {
            return;
        }
        for attempt in self.to_make_room(now) {
            self.stop(attempt, StopReason::SlotOver, Signal::Checkpoint, now, actions);
        }
    }

    fn to_make_room(&self, now: Time) -> Vec<AttemptId> {
        let Some(head) = self.queues.head() else { return Vec::new() };
        let depth = self.config.queue.discipline.depth() as usize;
        let kept = if depth > 0 { self.kept_for(head, now) } else { None };
        let mut rehearsal = Rehearsal::new(self, now);
        let mut asked = Vec::new();
        let mut behind = 0;
        for waiting in self.queues.in_order().filter_map(|job| self.jobs.get(&job)) {
            let reservation = kept.as_ref().filter(|kept| kept.head != waiting.id());
            match rehearsal.make_room(waiting, reservation) {
                Some(victims) => asked.extend(victims),
                // Nobody passes a head that waits, or only those near to it.
                None if behind >= depth => break,
                None => behind += 1,
            }
            if rehearsal.over.is_empty() {
                break;
            }
        }
        asked
    }
}

/// What would be if those whose slot is over were gone.
struct Rehearsal<'a> {
    scheduler: &'a Scheduler,
    now: Time,
    /// Those whose slot is over and who are not asked to leave yet, the longest first.
    over: Vec<&'a Job>,
    /// Copies of the servers concerned, without those who leave.
    servers: BTreeMap<ServerId, Stage>,
}

/// A server as it would be.
#[derive(Clone)]
struct Stage {
    server: Server,
    /// Devices that somebody has left: what the window and the gate remember of them is no more.
    left: BTreeSet<DeviceId>,
}

impl<'a> Rehearsal<'a> {
    fn new(scheduler: &'a Scheduler, now: Time) -> Self {
        let mut ended: Vec<(Time, AttemptId)> = scheduler.slots.over.iter().map(|(attempt, end)| (*end, *attempt)).collect();
        ended.sort_unstable();
        let job = |attempt: AttemptId| scheduler.jobs.get(&attempt.job);
        let over: Vec<&Job> = ended.into_iter().filter_map(|(_, attempt)| job(attempt)).collect();
        let leaving: Vec<&Job> = scheduler.slots.leaving.iter().filter_map(|attempt| job(*attempt)).collect();
        let mut servers = BTreeMap::new();
        for id in leaving.iter().chain(&over).flat_map(|job| servers_of(job)) {
            if servers.len() < SERVERS
                && let Some(server) = scheduler.fleet.server(id)
            {
                servers.entry(id).or_insert_with(|| Stage { server: server.clone(), left: BTreeSet::new() });
            }
        }
        for stage in servers.values_mut() {
            leaving.iter().for_each(|job| stage.leave(job, &scheduler.config, now));
        }
        Self { scheduler, now, over, servers }
    }

    /// Who has to go for this job to fit somewhere; nobody, if it will as things are. `None`: nothing would help.
    fn make_room(&mut self, waiting: &Job, reservation: Option<&HeadReservation>) -> Option<Vec<AttemptId>> {
        let (scheduler, config, now) = (self.scheduler, &self.scheduler.config, self.now);
        let demand = scheduler.demand(waiting, now);
        let questions = [Way::Idle, Way::Share].map(|way| scheduler.question(&demand, way, reservation));
        let fitting = Fitting { questions, demand: &demand, now };
        if self.servers.values_mut().any(|stage| fitting.enter(stage, config)) {
            return Some(Vec::new());
        }
        let place = Place::of(waiting);
        let recovers = waiting.state.waiting() == Some(Waiting::Recovering);
        // Whoever would stand before it again makes no room for it.
        let may_go: Vec<&Job> = self.over.iter().copied().filter(|job| recovers || Place::behind_all(job) > place).collect();
        for stage in self.servers.values_mut() {
            let here: Vec<&Job> = may_go.iter().copied().filter(|job| servers_of(job).any(|id| id == stage.server.spec.id)).collect();
            let without = |victims: &[&Job]| {
                let mut trial = stage.clone();
                victims.iter().for_each(|job| trial.leave(job, config, now));
                trial
            };
            let fits = |victims: &[&Job]| fitting.places(&without(victims)).is_some();
            let Some(enough) = (1..=here.len()).find(|count| fits(&here[..*count])) else { continue };
            // The last is needed; of those before it, some may not be.
            let mut victims = here[..enough].to_vec();
            for job in &here[..enough - 1] {
                let others: Vec<&Job> = victims.iter().copied().filter(|other| other.id() != job.id()).collect();
                if fits(&others) {
                    victims = others;
                }
            }
            let mut trial = without(&victims);
            fitting.enter(&mut trial, config);
            *stage = trial;
            self.over.retain(|job| victims.iter().all(|victim| victim.id() != job.id()));
            return Some(victims.iter().filter_map(|job| Some(job.state.active()?.attempt)).collect());
        }
        None
    }
}

/// A job that waits, and the two ways onto a device.
struct Fitting<'a> {
    questions: [JobQuestion<'a>; 2],
    demand: &'a Demand<'a>,
    now: Time,
}

impl Fitting<'_> {
    /// The devices that its ranks would have, if all find one.
    fn places(&self, stage: &Stage) -> Option<Vec<usize>> {
        if !host_takes(&self.questions[0], &stage.server) {
            return None;
        }
        let mut taken = Vec::with_capacity(self.demand.width());
        for need in self.demand.ranks.iter() {
            let free = |place: &usize| !taken.contains(place) && self.takes(stage, &stage.server.devices[*place], need);
            taken.push((0..stage.server.devices.len()).find(free)?);
        }
        Some(taken)
    }

    fn takes(&self, stage: &Stage, device: &Device, need: &RankNeed) -> bool {
        let passes = |obstacle: Obstacle| {
            let remembered = matches!(obstacle, Obstacle::Busy { .. } | Obstacle::UtilisationCap { .. } | Obstacle::GateClosed { .. });
            (remembered || obstacle == Obstacle::Observing) && stage.left.contains(&device.id())
        };
        self.questions.iter().any(|question| {
            device_obstacles(device, question.way, question.config, self.now).all(passes)
                && first_job_obstacle(question, need, device).is_none()
        })
    }

    /// Puts the job onto the server, if it fits.
    fn enter(&self, stage: &mut Stage, config: &Config) -> bool {
        let Some(places) = self.places(stage) else { return false };
        let spec = self.demand.spec;
        let newcomer = Tenant::newcomer(spec, AttemptId { job: spec.id, number: 0 }, self.now);
        for (place, need) in places.into_iter().zip(self.demand.ranks.iter()) {
            let device = &mut stage.server.devices[place];
            device.admit(Tenant { promised: need.promise.on(device.spec.memory), ..newcomer.clone() }, config, self.now);
            device.refresh(config, self.now);
        }
        stage.server.host.book(self.demand.host);
        true
    }
}

impl Stage {
    /// A running job leaves.
    fn leave(&mut self, job: &Job, config: &Config, now: Time) {
        let Some(active) = job.state.active() else { return };
        let here = |device: &&mut Device| device.tenants.iter().any(|tenant| tenant.attempt == active.attempt);
        for device in self.server.devices.iter_mut().filter(here) {
            device.dismiss(active.attempt);
            device.refresh(config, now);
            self.left.insert(device.id());
        }
        if active.placement.server == self.server.spec.id {
            self.server.host.release(active.attempt, job.spec.host_claim());
        }
    }
}

/// The servers that a running job is on.
fn servers_of(job: &Job) -> impl Iterator<Item = ServerId> + '_ {
    job.state.active().into_iter().flat_map(|active| active.placement.devices.iter().map(|granted| granted.device.server()))
}
