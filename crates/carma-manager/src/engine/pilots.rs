//! When the engine requests pilots, and returns them.

use std::time::{Duration, Instant};

use carma_core::{Event, Job, JobId, JobSpec, Obstacle, Seconds, ServerId, WaitReason};

use super::pools::plan::{Need, WaitingJob, need};
use super::state::EngineState;
use crate::batch::{BatchReport, PREFIX};
use crate::cluster::PoolName;
use crate::link::{ToAgent, random_name};
use crate::units::UnixMillis;

/// Waiting jobs that are considered. More would not lead to more pilots soon.
const MAX_CONSIDERED: usize = 100;
/// The shortest time before the end of a pilot at which its successor is requested.
const MIN_LEAD: Seconds = Seconds::from_secs(120);
/// A server is new for this long.
const NEW_SERVER: Duration = Duration::from_secs(30);

impl EngineState {
    pub(super) fn batch_reported(&mut self, report: BatchReport) {
        match report {
            BatchReport::Submitted { pilot, result } => self.pools.submitted(&mut self.decisions, &pilot, result),
            BatchReport::Listed(listed) => {
                self.pools.listed(&mut self.decisions, &listed);
                for line in listed {
                    let server = self.pools.pilot(&line.name).and_then(|pilot| pilot.server);
                    server.zip(line.left).into_iter().for_each(|(server, left)| self.time_left(server, left));
                }
            }
            // Nothing changes: the agents report whether pilots run.
            BatchReport::NotListed(reason) => self.pools.problem = Some(reason),
        }
    }

    /// The batch system says when a server ends.
    fn time_left(&mut self, id: ServerId, left: Duration) {
        const TOLERANCE: u64 = 60_000;
        let speed = self.decisions.clock.speed();
        let ends = UnixMillis(self.decisions.wall().0 + (left.as_secs_f64() * 1000.0 * speed) as u64);
        let Some(server) = self.servers.iter_mut().find(|server| server.stored.id == id) else { return };
        if server.stored.ends.is_none_or(|known| known.0.abs_diff(ends.0) > TOLERANCE) {
            server.stored.ends = Some(ends);
            let at = Some(self.core_time(ends));
            let _ = self.decisions.tell(Event::ServerEnds { server: id, at });
        }
    }

    /// Requests pilots for jobs that wait, and returns those without work.
    pub(super) fn plan_pilots(&mut self) {
        self.return_idle();
        if self.draining || self.setup.observes {
            return;
        }
        let names: Vec<PoolName> = self.pools.iter().filter(|pool| !pool.removed).map(|pool| pool.name.clone()).collect();
        if names.is_empty() {
            return;
        }
        let waiting = self.waiting_jobs();
        for name in names {
            if self.needs_pilot(&name, &waiting) == Need::Request
                && let Ok(random) = random_name()
            {
                self.pools.request(&mut self.decisions, &name, format!("{PREFIX}{random}"));
            }
        }
    }

    /// Whether a pool should request a pilot for these jobs.
    pub(super) fn needs_pilot(&self, name: &PoolName, waiting: &[WaitingJob]) -> Need {
        let Some(pool) = self.pools.get(name) else { return Need::No("it is removed".to_owned()) };
        let lead = pool.queue_wait.map_or(MIN_LEAD, |wait| wait.times(1.5).max(MIN_LEAD)).min(pool.settings.time.times(0.5));
        let (pending, connected): (Vec<_>, Vec<_>) =
            self.pools.pilots_of(name).filter(|pilot| !pilot.returned).partition(|pilot| pilot.is_pending());
        let present = connected.iter().filter_map(|pilot| pilot.server).filter(|server| !self.ends_within(*server, lead)).count();
        let mut waiting = waiting.to_vec();
        // Jobs that an ending pilot will requeue need its successor.
        for server in connected.iter().filter_map(|pilot| pilot.server).filter(|server| self.ends_within(*server, lead)) {
            let jobs = self.attempts.on(server).into_iter().filter_map(|attempt| self.decisions.job(attempt.job));
            waiting.extend(jobs.filter(|job| !self.ends_before(job, server)).map(|job| self.waiting_job(&job.spec, None)));
        }
        need(pool, pending.len(), present, &waiting)
    }

    /// Whether a server ends within this time.
    fn ends_within(&self, server: ServerId, span: Seconds) -> bool {
        let ends = self.servers.get(server).and_then(|server| server.stored.ends);
        let span = self.decisions.clock.speed() * span.get() * 1000.0;
        ends.is_some_and(|ends| ends.0 < self.decisions.wall().0 + span as u64)
    }

    /// Whether a running job is known to end before its server.
    fn ends_before(&self, job: &Job, server: ServerId) -> bool {
        let left = job.expected_remaining(self.decisions.now());
        left.is_some_and(|left| !self.ends_within(server, left))
    }

    /// Jobs that wait for room, or for an agent that estimates them, in queue order.
    pub(super) fn waiting_jobs(&self) -> Vec<WaitingJob> {
        let scheduler = self.decisions.scheduler();
        let waits = |job: &Job| job.state.waiting().is_some() || self.estimates.needs_agent(job.id());
        let jobs = scheduler.jobs().filter(|job| waits(job) && job.spec.gpus > 0);
        jobs.take(MAX_CONSIDERED).filter_map(|job| self.waits_for_room(job)).collect()
    }

    /// A job that waits, if more GPUs would help it.
    pub(super) fn waits_for_room(&self, job: &Job) -> Option<WaitingJob> {
        let explanation = self.decisions.scheduler().explain(job.id()).ok()?;
        let helps = !matches!(
            explanation.reason,
            WaitReason::NotWaiting
                | WaitReason::Held
                | WaitReason::Dependencies { .. }
                | WaitReason::NotBefore { .. }
                | WaitReason::ArrayLimit { .. }
                | WaitReason::Quota { .. }
        );
        // A dry run that no present agent can do needs a pilot too.
        let estimating = matches!(explanation.reason, WaitReason::Estimating);
        let estimated_soon =
            || !self.estimates.needs_agent(job.id()) || self.servers.iter().any(|server| server.could_estimate(job.spec.gpus));
        if !helps || (estimating && estimated_soon()) {
            return None;
        }
        let soonest =
            explanation.devices.iter().filter_map(|answer| self.predicted(answer.device.server(), &answer.obstacles, answer.device));
        let mut soonest: Vec<Seconds> = soonest.collect();
        soonest.sort_unstable_by(|a, b| a.get().total_cmp(&b.get()));
        // As many GPUs as it needs must be ready.
        let predicted = soonest.get((job.spec.gpus as usize).saturating_sub(1)).copied();
        Some(self.waiting_job(&job.spec, predicted))
    }

    fn waiting_job(&self, spec: &JobSpec, predicted: Option<Seconds>) -> WaitingJob {
        let known = spec.memory.known.as_ref().and_then(|known| known.get(0)).copied();
        let estimated = || spec.memory.estimated.as_ref().and_then(|estimated| estimated.get(0)).map(|estimate| estimate.expected);
        let real = |span: Seconds| span.times(1.0 / self.decisions.clock.speed());
        WaitingJob {
            gpus: spec.gpus,
            memory: known.or_else(estimated),
            exclusive: spec.exclusive,
            needs: spec.time_limit.filter(|_| !spec.may_checkpoint).map(real),
            predicted: predicted.map(real),
        }
    }

    /// When a device is predicted to take a job with these obstacles; unset: unknown.
    fn predicted(&self, server: ServerId, obstacles: &[Obstacle], device: carma_core::DeviceId) -> Option<Seconds> {
        let now = self.decisions.now();
        let mut latest = Seconds::ZERO;
        let is_connected =
            server == crate::host_gpus::LOCAL_SERVER || self.servers.get(server).is_some_and(super::servers::RemoteServer::is_connected);
        // A new one is connected when it is in the store.
        if !is_connected && !self.has_just_joined(server) {
            return None;
        }
        for obstacle in obstacles {
            let wait = match obstacle {
                // The first samples of a new server come within moments.
                Obstacle::Observing | Obstacle::Stale { .. } if self.has_just_joined(server) => Seconds::ZERO,
                // These pass by themselves within a minute or so.
                Obstacle::Observing | Obstacle::Switching { .. } | Obstacle::Stale { .. } | Obstacle::GateClosed { until: None, .. } => {
                    Seconds::from_secs(60)
                }
                Obstacle::GateClosed { until: Some(until), .. } => *until - now,
                // These pass when jobs on it end.
                Obstacle::Memory { .. }
                | Obstacle::NotIdle { .. }
                | Obstacle::HeldExclusively { .. }
                | Obstacle::JobLimit { .. }
                | Obstacle::Busy { .. } => self.soonest_end(device)?,
                _ => return None,
            };
            latest = latest.max(wait);
        }
        Some(latest)
    }

    fn has_just_joined(&self, server: ServerId) -> bool {
        let joined = self.servers.get(server).map(|server| server.stored.joined);
        let passed = |joined: UnixMillis| self.decisions.wall().0.saturating_sub(joined.0) as f64 / 1000.0 / self.decisions.clock.speed();
        joined.is_some_and(|joined| passed(joined) < NEW_SERVER.as_secs_f64())
    }

    /// When the first job on a device is expected to end, by its time limit or by earlier runs.
    fn soonest_end(&self, device: carma_core::DeviceId) -> Option<Seconds> {
        let now = self.decisions.now();
        let tenants = &self.decisions.scheduler().fleet().device(device)?.tenants;
        let ends = tenants.iter().filter_map(|tenant| {
            let job = self.decisions.job(tenant.attempt.job)?;
            let limit = job.state.active().zip(job.spec.time_limit).map(|(active, limit)| (active.launched_at + limit) - now);
            job.expected_remaining(now).or(limit)
        });
        ends.min_by(|a, b| a.get().total_cmp(&b.get()))
    }

    /// Returns pilots that had no work for a while, that end, or whose pool is removed.
    fn return_idle(&mut self) {
        let (mut leaving, mut used) = (Vec::new(), Vec::new());
        let agents = self.servers.agents();
        for server in self.servers.iter_mut().filter(|server| server.is_connected()) {
            let id = server.stored.id;
            if server.draining.is_none() && agents.as_ref().is_some_and(|agents| agents.estimates().is_busy(id)) {
                // The job comes next.
                server.idle_since = None;
                continue;
            }
            if !self.attempts.on(id).is_empty() {
                server.idle_since = None;
                if !std::mem::replace(&mut server.used, true) {
                    used.extend(server.stored.pilot.clone());
                }
                continue;
            }
            let idle = server.idle_since.get_or_insert_with(Instant::now).elapsed();
            let pilot = server.stored.pilot.as_ref().and_then(|name| self.pools.pilot(name));
            let pool = pilot.and_then(|pilot| self.pools.get(&pilot.pool.parse().ok()?));
            let is_over = pool.is_some_and(|pool| pool.removed || idle >= self.decisions.clock.real(pool.settings.idle));
            if is_over || server.draining.is_some() {
                leaving.push((id, server.stored.pilot.clone()));
            }
        }
        for pilot in used {
            self.pools.used(&mut self.decisions, &pilot);
        }
        for (id, pilot) in leaving {
            if let Some(name) = pilot {
                self.pools.returned(&mut self.decisions, &name);
            }
            // Nothing may start there between this and the end of the agent.
            let _ = self.decisions.tell(Event::ServerDraining { server: id });
            self.servers.close_to_estimates(id);
            if self.attempts.on(id).is_empty() {
                self.servers.send(id, ToAgent::Leave);
            }
        }
        let removed: Vec<String> = self
            .pools
            .iter()
            .filter(|pool| pool.removed)
            .flat_map(|pool| self.pools.pilots_of(&pool.name).filter(|pilot| pilot.is_pending()).map(|pilot| pilot.name.clone()))
            .collect();
        for name in removed {
            self.pools.returned(&mut self.decisions, &name);
        }
        self.pools.forget_removed(&mut self.decisions);
    }

    /// The most GPUs that a job can have, if there are pools: jobs never span servers.
    pub(super) fn most_gpus_of_a_pilot(&self) -> Option<u32> {
        let pools = self.pools.iter().map(|pool| pool.settings.gpus).max()?;
        let servers = self.decisions.scheduler().fleet().servers().iter().map(|server| server.devices.len());
        Some(servers.max().and_then(|most| u32::try_from(most).ok()).map_or(pools, |most| most.max(pools)))
    }

    /// Whether a pilot of some pool could run such a job.
    pub(super) fn a_pilot_could_run(&self, spec: &JobSpec) -> bool {
        let job = self.waiting_job(spec, None);
        self.pools.iter().filter(|pool| !pool.removed).any(|pool| super::pools::plan::misfit(pool, &job).is_none())
    }

    /// What pools could do for a job, for people.
    pub(super) fn why_no_pilot(&self, id: JobId) -> Vec<String> {
        let Some(job) = self.decisions.job(id).and_then(|job| self.waits_for_room(job)) else { return Vec::new() };
        let jobs = std::slice::from_ref(&job);
        let texts = self.pools.iter().filter(|pool| !pool.removed).map(|pool| {
            let text = super::pools::plan::misfit(pool, &job).unwrap_or_else(|| match self.needs_pilot(&pool.name, jobs) {
                Need::Request => "a pilot is requested next".to_owned(),
                Need::No(reason) => reason,
            });
            format!("pool {}: {text}", pool.name)
        });
        texts.collect()
    }
}
