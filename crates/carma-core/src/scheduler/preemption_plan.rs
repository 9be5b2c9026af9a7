//! Which attempts to preempt for a waiting job.
//!
//! Planned on copies of the servers concerned. Attempts that were signalled to stop are removed first, then those whose time slice is
//! over, the longest first, until the waiting job fits.

use std::collections::{BTreeMap, BTreeSet};

use super::Scheduler;
use crate::admission::{Demand, HeadReservation, JobQuestion, RankNeed, first_job_obstacle, host_takes, power_objection};
use crate::config::Config;
use crate::device::{Device, device_obstacles};
use crate::fleet::Server;
use crate::job::{Job, Waiting};
use crate::obstacle::{Obstacle, PlacementKind};
use crate::queue::Place;
use crate::tenant::Tenant;
use crate::units::Time;
use crate::{AttemptId, DeviceId, ServerId};

/// The most servers to plan with: those with stopping attempts, then those with the longest expired time slices.
const SERVERS: usize = 64;

/// The servers without the attempts that stop or are preempted.
pub(super) struct PreemptionPlan<'a> {
    scheduler: &'a Scheduler,
    now: Time,
    /// Jobs whose time slice is over and that are not preempted yet, the longest first.
    pub(super) over: Vec<&'a Job>,
    /// Copies of the servers concerned, without the attempts that leave.
    servers: BTreeMap<ServerId, PlannedServer>,
}

/// A server as planned.
#[derive(Clone)]
struct PlannedServer {
    server: Server,
    /// Devices that an attempt has left: their window and gate are outdated.
    left: BTreeSet<DeviceId>,
}

impl<'a> PreemptionPlan<'a> {
    pub(super) fn new(scheduler: &'a Scheduler, now: Time) -> Self {
        let job = |attempt: AttemptId| scheduler.job(attempt.job);
        let over: Vec<&Job> = scheduler.time_slices.longest_over().into_iter().filter_map(job).collect();
        let leaving: Vec<&Job> = scheduler.time_slices.leaving().filter_map(job).collect();
        let mut servers = BTreeMap::new();
        for id in leaving.iter().chain(&over).flat_map(|job| servers_of(job)) {
            if servers.len() < SERVERS
                && let Some(server) = scheduler.fleet.server(id)
            {
                servers.entry(id).or_insert_with(|| PlannedServer { server: server.clone(), left: BTreeSet::new() });
            }
        }
        for planned in servers.values_mut() {
            for job in &leaving {
                planned.leave(job, &scheduler.config, now);
            }
        }
        Self { scheduler, now, over, servers }
    }

    /// The attempts to preempt so that this job fits; none if it fits without. `None`: no preemption helps.
    pub(super) fn make_room(&mut self, waiting: &Job, kept: &[HeadReservation]) -> Option<Vec<AttemptId>> {
        let (scheduler, config, now) = (self.scheduler, &self.scheduler.config, self.now);
        let demand = scheduler.demand(waiting, now);
        let questions = [PlacementKind::Idle, PlacementKind::Share].map(|kind| scheduler.question(&demand, kind, kept));
        let fitting = Fitting { questions, demand: &demand, now };
        if self.servers.values_mut().any(|planned| fitting.enter(planned, config)) {
            return Some(Vec::new());
        }
        let place = Place::of(waiting);
        let recovers = waiting.state.waiting() == Some(Waiting::Recovering);
        // A job that would go before it again is not preempted for it.
        let may_go: Vec<&Job> = self.over.iter().copied().filter(|job| recovers || Place::behind_all(job) > place).collect();
        for planned in self.servers.values_mut() {
            let here: Vec<&Job> = may_go.iter().copied().filter(|job| servers_of(job).any(|id| id == planned.server.spec.id)).collect();
            let without = |victims: &[&Job]| {
                let mut trial = planned.clone();
                for job in victims {
                    trial.leave(job, config, now);
                }
                trial
            };
            let fits = |victims: &[&Job]| fitting.places(&without(victims)).is_some();
            let Some(enough) = (1..=here.len()).find(|count| fits(&here[..*count])) else { continue };
            // The last one is needed; some of those before it may not be.
            let mut victims = here[..enough].to_vec();
            for job in &here[..enough - 1] {
                let others: Vec<&Job> = victims.iter().copied().filter(|other| other.id() != job.id()).collect();
                if fits(&others) {
                    victims = others;
                }
            }
            let mut trial = without(&victims);
            fitting.enter(&mut trial, config);
            *planned = trial;
            self.over.retain(|job| victims.iter().all(|victim| victim.id() != job.id()));
            return Some(victims.iter().filter_map(|job| Some(job.state.active()?.attempt)).collect());
        }
        None
    }
}

/// A waiting job, and the two kinds of placement.
struct Fitting<'a> {
    questions: [JobQuestion<'a>; 2],
    demand: &'a Demand<'a>,
    now: Time,
}

impl Fitting<'_> {
    /// The devices for its ranks, if all find one.
    fn places(&self, planned: &PlannedServer) -> Option<Vec<usize>> {
        if !host_takes(&self.questions[0], &planned.server) {
            return None;
        }
        let mut taken = Vec::with_capacity(self.demand.width());
        for need in self.demand.ranks.iter() {
            let free = |place: &usize| !taken.contains(place) && self.takes(planned, &planned.server.devices[*place], need);
            taken.push((0..planned.server.devices.len()).find(free)?);
        }
        Some(taken)
    }

    fn takes(&self, planned: &PlannedServer, device: &Device, need: &RankNeed) -> bool {
        let passes = |obstacle: Obstacle| {
            let remembered = matches!(obstacle, Obstacle::Busy { .. } | Obstacle::UtilisationCap { .. } | Obstacle::GateClosed { .. });
            remembered && planned.left.contains(&device.id())
        };
        self.questions.iter().any(|question| {
            device_obstacles(device, question.kind, question.config, self.now).all(passes)
                && first_job_obstacle(question, need, device).is_none()
                && power_objection(question, &planned.server, device).is_none()
        })
    }

    /// Puts the job onto the server, if it fits.
    fn enter(&self, planned: &mut PlannedServer, config: &Config) -> bool {
        let Some(places) = self.places(planned) else { return false };
        let spec = self.demand.spec;
        let newcomer = Tenant::newcomer(spec, AttemptId { job: spec.id, number: 0 }, self.now);
        for (place, need) in places.into_iter().zip(self.demand.ranks.iter()) {
            let device = &mut planned.server.devices[place];
            device.admit(Tenant { reserved: need.reserved.on(device.spec.memory), ..newcomer.clone() }, config, self.now);
            device.refresh(config, self.now);
        }
        planned.server.host.book(self.demand.host);
        true
    }
}

impl PlannedServer {
    /// Removes a running job.
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
