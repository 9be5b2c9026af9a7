//! What would be if those whose slot is over were gone: who could use what they leave.
//!
//! Worked out on copies of the servers concerned. Those who were told to end are taken off first, then those whose slot is
//! over, the longest first, until the job that waits fits.

use std::collections::{BTreeMap, BTreeSet};

use super::Scheduler;
use crate::admission::{Demand, JobQuestion, Obstacle, RankNeed, Way, device_obstacles, first_job_obstacle, host_takes};
use crate::config::Config;
use crate::device::{Device, Tenant};
use crate::fleet::Server;
use crate::job::{Job, Waiting};
use crate::power::power_objection;
use crate::queue::{HeadReservation, Place};
use crate::units::Time;
use crate::{AttemptId, DeviceId, ServerId};

/// The most servers that are looked at: those that are left anyway, and those whose slots have been over for longest.
const SERVERS: usize = 64;

/// What would be if those whose slot is over were gone.
pub(super) struct Rehearsal<'a> {
    scheduler: &'a Scheduler,
    now: Time,
    /// Those whose slot is over and who are not asked to leave yet, the longest first.
    pub(super) over: Vec<&'a Job>,
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
    pub(super) fn new(scheduler: &'a Scheduler, now: Time) -> Self {
        let job = |attempt: AttemptId| scheduler.jobs.get(&attempt.job);
        let over: Vec<&Job> = scheduler.slots.longest_over().into_iter().filter_map(job).collect();
        let leaving: Vec<&Job> = scheduler.slots.leaving().filter_map(job).collect();
        let mut servers = BTreeMap::new();
        for id in leaving.iter().chain(&over).flat_map(|job| servers_of(job)) {
            if servers.len() < SERVERS
                && let Some(server) = scheduler.fleet.server(id)
            {
                servers.entry(id).or_insert_with(|| Stage { server: server.clone(), left: BTreeSet::new() });
            }
        }
        for stage in servers.values_mut() {
            for job in &leaving {
                stage.leave(job, &scheduler.config, now);
            }
        }
        Self { scheduler, now, over, servers }
    }

    /// Who has to go for this job to fit somewhere; nobody, if it will as things are. `None`: nothing would help.
    pub(super) fn make_room(&mut self, waiting: &Job, reservation: Option<&HeadReservation>) -> Option<Vec<AttemptId>> {
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
                for job in victims {
                    trial.leave(job, config, now);
                }
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
            remembered && stage.left.contains(&device.id())
        };
        self.questions.iter().any(|question| {
            device_obstacles(device, question.way, question.config, self.now).all(passes)
                && first_job_obstacle(question, need, device).is_none()
                && power_objection(question, &stage.server, device).is_none()
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
            device.dismiss(active.attempt, now);
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
