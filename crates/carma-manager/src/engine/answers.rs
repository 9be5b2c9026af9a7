//! Answers to those who only want to know.

use carma_core::{DeviceId, Event, Explanation, Job, JobId, MiB, Time};

use super::devices::SERVER;
use super::handle::Question;
use super::run::{Condition, Running, unavailable};
use super::submit::refused;
use crate::api::{ArrayPlace, GpuDetail, GpuTenant, Problem, Status, Why};
use crate::store::Joules;
use crate::words;

/// Less memory than this that no process holds is what drivers keep for contexts.
pub(crate) const ORPHANED: MiB = MiB(1024);
/// Attempts that the machine does not let us launch, of those that are told of: they tend to have one reason.
const REFUSED_SHOWN: usize = 3;

/// Where a job stands in its array, if it is of one.
pub(super) fn array_place(job: &Job) -> Option<ArrayPlace> {
    job.spec.array.map(|member| ArrayPlace { array: member.array, index: member.index })
}

/// A moment of the scheduler's clock, for people.
pub(super) fn moment(time: Time, now: Time) -> String {
    format!("in {}", words::duration((time - now).get()))
}

impl Why {
    /// An explanation that is given now.
    pub(super) fn new(explanation: Explanation, now: Time) -> Self {
        let text = explanation.words(&|time| moment(time, now));
        Self { job: explanation.job, state: explanation.state, reason: explanation.reason, devices: explanation.devices, text }
    }
}

impl Running {
    pub(super) fn answer(&mut self, question: Question) {
        if self.condition == Condition::Stopping {
            return self.answer_without_change(question, "the manager is stopping");
        }
        self.answer_with(question);
    }

    fn answer_with(&mut self, question: Question) {
        match question {
            Question::Submit { owner, jobs, reply } => self.submit(&owner, jobs, reply),
            Question::Forecast { owner, jobs, reply } => self.asked_for_forecast(owner, jobs, reply),
            Question::Act { jobs, act, by, reply } => self.act(jobs, &act, &by, reply),
            Question::Drain { device, drained, by, reply } => self.drain_device(device, drained, &by, reply),
            Question::Why { job, reply } => drop(reply.send(self.why(job))),
            Question::Queue { query, reply } => drop(reply.send(Ok(self.queue(&query)))),
            Question::Gpus { reply } => drop(reply.send(Ok(self.gpus()))),
            Question::Shares { reply } => {
                let shares = self.core.scheduler().shares(self.now());
                drop(reply.send(Ok(shares.into_iter().map(Into::into).collect())));
            }
            Question::SoFar { job, reply } => {
                let attempt = self.core.scheduler().job(job).and_then(|job| job.state.active()).map(|active| active.attempt);
                drop(reply.send(Ok(attempt.map(|attempt| self.meter.so_far(attempt)))));
            }
            Question::Status { reply } => drop(reply.send(Ok(self.status(None)))),
            Question::Facts { reply } => drop(reply.send(Ok(self.facts()))),
            Question::Settings { reply } => drop(reply.send(Ok(self.setup.configuration.rules.clone()))),
            Question::Configure { settings, reply } => self.configure(*settings, reply),
            Question::Notify { uid, notifications, reply } => self.set_notifications(uid, notifications, reply),
            Question::TryNotifications { owner, reply } => self.notifier.try_out(owner, reply),
            Question::Shutdown { shutdown, reply } => self.shut_down(shutdown, reply),
        }
    }

    /// While nothing can be changed, those who only want to know are told what is known.
    pub(super) fn answer_without_change(&mut self, question: Question, reason: &str) {
        let problem = || unavailable(reason);
        match question {
            Question::Submit { reply, .. } => drop(reply.send(Err(problem()))),
            Question::Act { reply, .. } => drop(reply.send(Err(problem()))),
            Question::Drain { reply, .. } | Question::Configure { reply, .. } | Question::Notify { reply, .. } => {
                drop(reply.send(Err(problem())));
            }
            Question::Shutdown { reply, .. } if self.condition == Condition::Stopping => drop(reply.send(Ok(()))),
            Question::Status { reply } => drop(reply.send(Ok(self.status(Some(reason))))),
            other => self.answer_with(other),
        }
    }

    /// Why a job waits. A manager that launches nothing says what it would do.
    fn why(&self, job: JobId) -> Result<Why, Problem> {
        let (scheduler, now) = (self.core.scheduler(), self.clock.now());
        let mut explanation = scheduler.explain(job).map_err(|error| refused(&error))?;
        if self.estimating.contains(&job) {
            return Ok(Why { text: format!("{job} is being estimated, and waits for that"), ..Why::new(explanation, now) });
        }
        if !self.setup.observes && !self.draining {
            return Ok(Why::new(explanation, now));
        }
        let launches_nothing = if self.draining { "draining" } else { "observing" };
        let mut would = scheduler.clone();
        let actions = would.handle(Event::HostFine { server: SERVER }, now).map_err(|error| refused(&error))?;
        let placed = actions.iter().find_map(|action| match action {
            carma_core::Action::Launch { attempt, placement, .. } if attempt.job == job => Some(placement),
            _ => None,
        });
        if let Some(placement) = placed {
            let devices: Vec<String> = placement.devices.iter().map(|granted| granted.device.to_string()).collect();
            let place = if devices.is_empty() { "without a GPU".to_owned() } else { format!("on {}", devices.join(", ")) };
            let text = format!("{job} would start now {place}; the manager is {launches_nothing} and launches nothing");
            return Ok(Why { text, ..Why::new(explanation, now) });
        }
        explanation = would.explain(job).map_err(|error| refused(&error))?;
        let why = Why::new(explanation, now);
        Ok(Why { text: format!("{}\nThe manager is {launches_nothing} and launches nothing.", why.text), ..why })
    }

    fn gpus(&self) -> Vec<GpuDetail> {
        let survey = self.core.scheduler().survey();
        survey.filter_map(|report| self.gpu(report.device, &report)).collect()
    }

    pub(super) fn gpu(&self, id: DeviceId, report: &carma_core::DeviceReport) -> Option<GpuDetail> {
        let known = self.core.scheduler().fleet().device(id)?;
        let device = self.devices.get(id)?;
        let latest = self.latest.get(&id);
        let reading = latest.and_then(|looked| looked.reading.as_ref().ok());
        let counter = |pick: fn(&carma_gpu::profiling::Counters) -> Option<carma_core::Fraction>| {
            latest.and_then(|looked| pick(looked.counters.as_ref()?))
        };
        let tenants = known.tenants.iter().map(|tenant| {
            let job = self.jobs.get(&tenant.attempt.job);
            let usage = self.meter.usage(tenant.attempt, id);
            GpuTenant {
                attempt: tenant.attempt,
                name: job.and_then(|job| job.name.clone()),
                array: self.core.scheduler().job(tenant.attempt.job).and_then(array_place),
                user: job.map(|job| job.owner.name.clone()).unwrap_or_default(),
                promised: tenant.promised,
                memory: match tenant.memory {
                    carma_core::TenantMemory::Reading(memory) => Some(memory),
                    carma_core::TenantMemory::Unseen | carma_core::TenantMemory::Unreadable => None,
                },
                smact: usage.and_then(|usage| usage.smact_now).map(carma_core::Fraction::get),
                energy: usage.map(|usage| Joules(usage.energy.joules())),
                launched: self.attempts.get(&tenant.attempt).map(|underway| underway.launched).unwrap_or_default(),
            }
        });
        Some(GpuDetail {
            device: id,
            uuid: device.uuid.clone(),
            name: device.name.clone(),
            mode: known.spec.mode,
            lost: known.lost,
            drained: known.drained,
            memory: known.spec.memory,
            memory_used: reading.map(|reading| reading.memory_used),
            promised: report.promised,
            available: report.available,
            utilisation: carma_core::Utilisation {
                smact: counter(|counters| counters.smact),
                smocc: counter(|counters| counters.smocc),
                drama: counter(|counters| counters.drama),
                gpu: reading.and_then(|reading| reading.utilisation),
            },
            power: reading.and_then(|reading| reading.power),
            energy: self.meter.energy(id).map(|energy| Joules(energy.all.joules())),
            temperature: reading.and_then(|reading| reading.temperature),
            tenants: tenants.collect(),
            foreign: known.foreign.len(),
            closed: report.obstacles.iter().map(|obstacle| obstacle.words(&|time| moment(time, self.clock.now()))).collect(),
            obstacles: report.obstacles.clone(),
            counters: latest.map(|looked| looked.source.to_string()).unwrap_or_default(),
        })
    }

    pub(super) fn status(&self, unwritable: Option<&str>) -> Status {
        let fleet = self.core.scheduler().fleet();
        let drained = fleet.devices().filter(|device| device.drained).map(|device| format!("{} is drained", device.id()));
        let lost = fleet.devices().filter(|device| device.lost).map(|device| format!("{} is lost", device.id()));
        let short = self.host.shortage().map(|shortage| format!("the host is short: {shortage}"));
        let orphaned = self.latest.values().filter_map(|looked| {
            let unaccounted = looked.reading.as_ref().ok()?.unaccounted().filter(|memory| *memory >= ORPHANED)?;
            Some(format!("{}: {unaccounted} in use belong to no process", looked.device))
        });
        let unwritable = unwritable.map(|reason| format!("nothing can be accepted or launched: {reason}"));
        let unsupervised = self.attempts.iter().filter(|(_, underway)| underway.supervised.is_none());
        let refused = unsupervised.filter_map(|(attempt, underway)| {
            Some(format!("{attempt} could not be launched, and is tried again: {}", underway.refused.as_ref()?))
        });
        let troubles = unwritable.into_iter().chain(short).chain(lost).chain(drained).chain(orphaned).chain(refused.take(REFUSED_SHOWN));
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            now: self.clock.wall(),
            started: self.started,
            up: carma_core::Seconds::new((crate::store::UnixMillis::now().0.saturating_sub(self.started.0)) as f64 / 1000.0)
                .unwrap_or_default(),
            observes: self.setup.observes,
            draining: self.draining,
            world: self.setup.world.words.clone(),
            // Real GPUs are found without being told where.
            emulated: !self.setup.world.environment.is_empty(),
            speed: self.clock.speed(),
            gpus: u32::try_from(fleet.devices().filter(|device| !device.partitioned).count()).unwrap_or(u32::MAX),
            policy: self.core.scheduler().config().mapping.policy.name.to_owned(),
            jobs: self.counts(),
            left_out: self.outside.words.clone(),
            troubles: troubles.collect(),
        }
    }
}
