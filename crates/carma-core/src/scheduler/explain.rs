//! Why is this job waiting? The obstacles on each device.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

use super::{EventError, Scheduler, WaitReason};
use crate::admission::{Demand, host_obstacles, job_obstacles, power_objection};
use crate::device::{Device, device_obstacles};
use crate::fleet::Server;
use crate::job::{Job, State};
use crate::obstacle::{Obstacle, PlacementKind, Wording};
use crate::risk::Risk;
use crate::units::MiB;
use crate::{DeviceId, JobId, ServerId};

/// What a job waits for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// The job.
    pub job: JobId,
    /// The state of the job.
    pub state: State,
    /// What holds it back apart from room, or that it is room.
    pub reason: WaitReason,
    /// For each device, its obstacles; an empty list: it would take the job.
    pub devices: Vec<DeviceAnswer>,
    /// The same for each host, for a job without GPUs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostAnswer>,
}

/// The answer of one device to a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeviceAnswer {
    /// The device.
    pub device: DeviceId,
    /// All obstacles.
    pub obstacles: Vec<Obstacle>,
    /// Jobs that hold it and do not use it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle: Vec<JobId>,
}

/// The answer of one host to a job without GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HostAnswer {
    /// The server.
    pub server: ServerId,
    /// All obstacles.
    pub obstacles: Vec<Obstacle>,
}

/// The risk analysis of one device: whether anything may be collocated there, and why not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// The device.
    pub device: DeviceId,
    /// Its risk scores.
    pub risk: Risk,
    /// No process is on it.
    pub idle: bool,
    /// Our jobs on it.
    pub jobs: Vec<JobId>,
    /// Memory reserved for them.
    #[serde(alias = "promised")]
    pub reserved: MiB,
    /// Memory that can still be reserved.
    pub available: MiB,
    /// What keeps every new job from sharing it.
    pub obstacles: Vec<Obstacle>,
}

impl Scheduler {
    /// Explains what a job waits for.
    ///
    /// ```
    /// use carma_core::{Config, Event, JobId, JobSpec, Scheduler, ServerId, ServerSpec, Time};
    /// let mut scheduler = Scheduler::new(Config::default());
    /// scheduler.handle(Event::ServerAttached(ServerSpec::new(ServerId(0))), Time::ZERO)?;
    /// scheduler.handle(Event::JobSubmitted(Box::new(JobSpec::new(JobId(1)))), Time::ZERO)?;
    /// let why = scheduler.explain(JobId(1))?.to_string();
    /// assert!(why.starts_with("job 1 can never start: it needs 1 GPU"), "{why}");
    /// # Ok::<(), carma_core::EventError>(())
    /// ```
    pub fn explain(&self, job: JobId) -> Result<Explanation, EventError> {
        let known = self.known_job(job)?;
        let demand = self.demand(known, self.clock);
        let waits = known.state.waiting().is_some();
        let devices = if waits && demand.width() > 0 { self.answers(&demand) } else { Vec::new() };
        let hosts = if waits && demand.width() == 0 { self.host_answers(known, &demand) } else { Vec::new() };
        Ok(Explanation { job, state: known.state.clone(), reason: self.wait_reason(known, &demand), devices, hosts })
    }

    /// The answer of each host to a job without GPUs.
    fn host_answers(&self, job: &Job, demand: &Demand<'_>) -> Vec<HostAnswer> {
        let kept = self.kept_for_claiming_head(job, self.clock);
        let question = self.question(demand, PlacementKind::Idle, kept.as_slice());
        let answer = |server: &Server| {
            let ending = server.ending.then_some(Obstacle::ServerEnding);
            let short = server.host_short.then_some(Obstacle::HostShort);
            let full = server.spec.cpu_jobs.filter(|limit| server.cpu_jobs() >= *limit as usize).map(|limit| Obstacle::JobLimit { limit });
            let obstacles = ending.into_iter().chain(short).chain(full).chain(host_obstacles(&question, server)).collect();
            HostAnswer { server: server.spec.id, obstacles }
        };
        self.fleet.servers().iter().map(answer).collect()
    }

    /// The answer of each device to the neediest rank of the job.
    fn answers(&self, demand: &Demand<'_>) -> Vec<DeviceAnswer> {
        let reservation = self.head_reservation().filter(|reservation| reservation.head != demand.spec.id);
        let kind = if self.config.mapping.policy.shares && !demand.needs_idle { PlacementKind::Share } else { PlacementKind::Idle };
        let question = self.question(demand, kind, reservation.as_slice());
        let answer = |server: &Server, device: &Device| {
            let closed = device_obstacles(device, kind, &self.config, self.clock).chain(host_obstacles(&question, server));
            let unwelcome = demand.ranks.first().into_iter().flat_map(|need| job_obstacles(&question, need, device));
            let power = power_objection(&question, server, device);
            let obstacles = closed.chain(unwelcome).chain(power).collect();
            DeviceAnswer { device: device.id(), obstacles, idle: self.idle_on(device).collect() }
        };
        self.fleet.servers().iter().flat_map(|server| server.devices.iter().map(move |device| answer(server, device))).collect()
    }

    /// The collocation risk analysis: for every device, its scores and what keeps new jobs out.
    pub fn survey(&self) -> impl Iterator<Item = DeviceReport> + '_ {
        self.fleet.devices().map(|device| DeviceReport {
            device: device.id(),
            risk: device.risk,
            idle: device.is_idle(&self.config),
            jobs: device.tenants.iter().map(|tenant| tenant.attempt.job).collect(),
            reserved: device.reserved(),
            available: device.available(&self.config),
            obstacles: device_obstacles(device, PlacementKind::Share, &self.config, self.clock).collect(),
        })
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(Wording::PLAIN))
    }
}

impl Explanation {
    /// All of it as text, in these words.
    pub fn text(&self, words: Wording<'_>) -> String {
        // That a single GPU has room would contradict that the job can never start.
        let counts = |obstacles: &[Obstacle]| !(obstacles.is_empty() && self.reason.is_for_ever());
        let devices =
            self.devices.iter().filter(|answer| counts(&answer.obstacles)).map(|answer| (answer.device.to_string(), answer.texts(words)));
        let hosts =
            self.hosts.iter().filter(|answer| counts(&answer.obstacles)).map(|answer| (answer.server.to_string(), answer.texts(words)));
        let mut text = self.summary(words);
        for (place, texts) in devices.chain(hosts) {
            for (line, obstacle) in texts.iter().enumerate() {
                let name = if line == 0 { place.as_str() } else { "" };
                // Text takes all that is written to it.
                let _ = write!(text, "\n  {name:<width$} {obstacle}", width = place.len());
            }
        }
        text
    }

    /// What holds the job back, without the obstacles on single devices and hosts.
    pub fn summary(&self, words: Wording<'_>) -> String {
        match &self.reason {
            WaitReason::NotWaiting => format!("{}: {}", (words.job)(self.job), self.state),
            reason => format!("{} {}", (words.job)(self.job), reason.text(words)),
        }
    }
}

impl DeviceAnswer {
    /// The obstacles, a line each.
    pub fn texts(&self, words: Wording<'_>) -> Vec<String> {
        let idle = self.idle.iter().map(|job| format!("{} holds it without using it", (words.job)(*job)));
        texts(&self.obstacles, words).into_iter().chain(idle).collect()
    }
}

impl HostAnswer {
    /// The obstacles, a line each.
    pub fn texts(&self, words: Wording<'_>) -> Vec<String> {
        texts(&self.obstacles, words)
    }
}

fn texts(obstacles: &[Obstacle], words: Wording<'_>) -> Vec<String> {
    if obstacles.is_empty() {
        return vec!["would take it".to_owned()];
    }
    obstacles.iter().map(|obstacle| obstacle.text(words)).collect()
}
