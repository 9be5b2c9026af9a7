//! Why is this job waiting? For each device, what stands in the way.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{EventError, Scheduler};
use crate::admission::{Demand, Obstacle, Way, device_obstacles, job_obstacles};
use crate::device::Device;
use crate::job::{Dependency, Job, State};
use crate::mapping;
use crate::queue::Place;
use crate::risk::Risk;
use crate::units::{MiB, Time};
use crate::{DeviceId, JobId};

/// What a job waits for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// The job.
    pub job: JobId,
    /// Where it stands.
    pub state: State,
    /// What holds it back apart from room, or that it is room.
    pub reason: WaitReason,
    /// For each device, what stands in the way; nothing stands in the way where the list is empty.
    pub devices: Vec<DeviceAnswer>,
}

/// What holds a job back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum WaitReason {
    /// It does not wait: it runs, or it is over.
    NotWaiting,
    /// It is held until somebody releases it.
    Held,
    /// It waits for other jobs.
    Dependencies {
        /// Which, and how they must end.
        on: Vec<Dependency>,
    },
    /// It is not to begin before this.
    NotBefore {
        /// When.
        begin: Time,
    },
    /// As many jobs of its array run as may.
    ArrayLimit {
        /// How many that is.
        at_most: u32,
    },
    /// No server could hold it even if all else ended.
    TooLarge {
        /// GPUs wanted.
        gpus: u32,
        /// The most memory a rank needs.
        memory: MiB,
        /// The largest device there is.
        largest: MiB,
    },
    /// No host takes another job without GPUs.
    NoHost,
    /// It is next, and there is no room yet.
    Room,
    /// Another job is next.
    Behind {
        /// The head of the queue.
        head: JobId,
        /// How many jobs are before it.
        ahead: usize,
    },
}

/// What one device says to a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceAnswer {
    /// The device.
    pub device: DeviceId,
    /// All that stands in the way.
    pub obstacles: Vec<Obstacle>,
}

/// The risk analysis of one device: whether anything may be collocated there, and why not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// The device.
    pub device: DeviceId,
    /// Its risk scores.
    pub risk: Risk,
    /// Nobody is on it.
    pub idle: bool,
    /// Our jobs on it.
    pub jobs: Vec<JobId>,
    /// Memory promised to them.
    pub promised: MiB,
    /// Memory that can still be promised.
    pub available: MiB,
    /// What keeps every newcomer from sharing it.
    pub obstacles: Vec<Obstacle>,
}

impl Scheduler {
    /// Says what a job waits for.
    ///
    /// ```
    /// use carma_core::{Config, Event, JobId, JobSpec, Scheduler, ServerId, ServerSpec, Time};
    /// let mut scheduler = Scheduler::new(Config::default());
    /// scheduler.handle(Event::ServerAttached(ServerSpec::new(ServerId(0))), Time::ZERO)?;
    /// scheduler.handle(Event::JobSubmitted(Box::new(JobSpec::new(JobId(1)))), Time::ZERO)?;
    /// let why = scheduler.explain(JobId(1))?.to_string();
    /// assert!(why.starts_with("job 1 is too large: it wants 1 GPUs"), "{why}");
    /// # Ok::<(), carma_core::EventError>(())
    /// ```
    pub fn explain(&self, job: JobId) -> Result<Explanation, EventError> {
        let known = self.known_job(job)?;
        let demand = self.demand(known, self.clock);
        let waits = known.state.waiting().is_some() && demand.width() > 0;
        let devices = if waits { self.answers(&demand) } else { Vec::new() };
        Ok(Explanation { job, state: known.state.clone(), reason: self.wait_reason(known, &demand), devices })
    }

    /// What each device says to the neediest rank of the job.
    fn answers(&self, demand: &Demand<'_>) -> Vec<DeviceAnswer> {
        let reservation = self.head_reservation().filter(|reservation| reservation.head != demand.spec.id);
        let way = if self.config.mapping.policy.shares && !demand.needs_idle { Way::Share } else { Way::Idle };
        let question = self.question(demand, way, reservation.as_ref());
        let answer = |device: &Device| {
            let closed = device_obstacles(device, way, &self.config, self.clock);
            let unwelcome = demand.ranks.first().into_iter().flat_map(|need| job_obstacles(&question, need, device));
            DeviceAnswer { device: device.id(), obstacles: closed.chain(unwelcome).collect() }
        };
        self.fleet.devices().map(answer).collect()
    }

    fn wait_reason(&self, job: &Job, demand: &Demand<'_>) -> WaitReason {
        let place = Place::of(job);
        match &job.state {
            State::Held { .. } => WaitReason::Held,
            State::Starting(_) | State::Running(_) | State::Done { .. } => WaitReason::NotWaiting,
            _ if !job.unmet.is_empty() => WaitReason::Dependencies { on: job.unmet.clone() },
            _ if self.arrays.is_waiting(job) => {
                WaitReason::ArrayLimit { at_most: job.spec.array.and_then(|member| member.at_most).unwrap_or_default() }
            }
            _ if !self.queues.contains(&place) => WaitReason::NotBefore { begin: job.spec.begin.unwrap_or_default() },
            _ if demand.width() == 0 => WaitReason::NoHost,
            _ if self.queues.is_set_aside(&place) || !mapping::could_ever_fit(&self.fleet, demand) => WaitReason::TooLarge {
                gpus: job.spec.gpus,
                memory: demand.ranks.first().map(|need| need.alone).unwrap_or_default(),
                largest: self.fleet.largest(),
            },
            _ => match self.queues.head() {
                Some(head) if head != job.id() => {
                    WaitReason::Behind { head, ahead: self.queues.in_order().take_while(|other| *other != job.id()).count() }
                }
                _ => WaitReason::Room,
            },
        }
    }

    /// The collocation risk analysis: for every device, its scores and what keeps newcomers out.
    pub fn survey(&self) -> impl Iterator<Item = DeviceReport> + '_ {
        self.fleet.devices().map(|device| DeviceReport {
            device: device.id(),
            risk: device.risk,
            idle: device.is_idle(&self.config),
            jobs: device.tenants.iter().map(|tenant| tenant.attempt.job).collect(),
            promised: device.promised(),
            available: device.available(&self.config),
            obstacles: device_obstacles(device, Way::Share, &self.config, self.clock).collect(),
        })
    }
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWaiting => f.write_str("does not wait"),
            Self::Held => f.write_str("is held until it is released"),
            Self::Dependencies { on } => {
                let jobs: Vec<String> = on.iter().map(|dependency| dependency.job.to_string()).collect();
                write!(f, "waits for {}", jobs.join(", "))
            }
            Self::NotBefore { begin } => write!(f, "is not to begin before {begin}"),
            Self::ArrayLimit { at_most } => write!(f, "waits for its turn: {at_most} of its array may run at once"),
            Self::TooLarge { gpus, memory, largest } => {
                write!(f, "is too large: it wants {gpus} GPUs of at least {memory}, and no server has them; the largest has {largest}")
            }
            Self::NoHost => f.write_str("waits for a host that takes another job without GPUs"),
            Self::Room => f.write_str("is next, and waits for room"),
            Self::Behind { head, ahead } => write!(f, "waits behind {head}; {ahead} ahead of it"),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.reason == WaitReason::NotWaiting {
            return write!(f, "{}: {}", self.job, self.state);
        }
        write!(f, "{} {}", self.job, self.reason)?;
        for DeviceAnswer { device, obstacles } in &self.devices {
            let device = device.to_string();
            if obstacles.is_empty() {
                write!(f, "\n  {device} would take it")?;
            }
            for (line, obstacle) in obstacles.iter().enumerate() {
                let name = if line == 0 { device.as_str() } else { "" };
                write!(f, "\n  {name:<width$} {obstacle}", width = device.len())?;
            }
        }
        Ok(())
    }
}
