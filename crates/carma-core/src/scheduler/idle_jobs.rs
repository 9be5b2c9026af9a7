//! Jobs that hold GPUs without using them: detected in samples, flagged, and their compute lent to other jobs.
//!
//! ```text
//!              all its GPUs idle for flag_after        ... for lend_after
//!   working ───────────────────────────────► flagged ─────────────────► lent
//!      ▲                                        │                         │
//!      └──────────────── any of them busy ──────┴─────────────────────────┘
//! ```
//!
//! A job whose processes were never seen on its GPUs is idle since its launch: the program forgot to use the GPU.
//!
//! A GPU is idle when its SM activity, or its utilisation, is low over the window. Where the driver reports the activity of each process, that
//! counts. Where it does not and other jobs work on the GPU, the measured activity is taken to be theirs.

use super::Scheduler;
use super::action::Action;
use super::error::EventError;
use super::timers::Timer;
use crate::config::Config;
use crate::device::Device;
use crate::job::{Active, Idle, Job, State};
use crate::telemetry::Metric;
use crate::tenant::Tenant;
use crate::units::{Fraction, MiB, Time};
use crate::{AttemptId, DeviceId, JobId};

impl Scheduler {
    pub(super) fn activity_seen(
        &mut self,
        device: DeviceId,
        attempts: &[(AttemptId, Fraction)],
        now: Time,
        actions: &mut Vec<Action>,
    ) -> Result<(), EventError> {
        self.update(device, now, |device| {
            for tenant in &mut device.tenants {
                tenant.activity = attempts.iter().find(|(attempt, _)| *attempt == tenant.attempt).map(|(_, activity)| *activity);
            }
        })?;
        self.watch_idle(device, now, actions);
        Ok(())
    }

    /// Notes which attempts on a device have become idle, or work again.
    pub(super) fn watch_idle(&mut self, device: DeviceId, now: Time, actions: &mut Vec<Action>) {
        if !self.config.idle_jobs.watches() {
            return;
        }
        let Some(changed) = self.fleet.device(device).map(|device| changed(device, &self.config, now)) else { return };
        for (attempt, idle) in changed {
            let since = idle.then_some(now);
            self.fleet.update(device, &self.config, now, |device| {
                device.tenant_mut(attempt).into_iter().for_each(|tenant| tenant.idle_since = since);
            });
            self.judge_idle(attempt, now, actions);
        }
    }

    /// Flags an attempt that is idle for long enough, lends its compute, or takes both back.
    pub(super) fn judge_idle(&mut self, attempt: AttemptId, now: Time, actions: &mut Vec<Action>) {
        let Some(active) = self.active(attempt) else { return };
        let since = self.idle_since(attempt, active);
        let rules = self.config.idle_jobs;
        let (before, idle) = (active.idle, since.and_then(|since| rules.judge(since, now)));
        if let Some(due) = since.and_then(|since| rules.next_judgement(since, now)) {
            self.timers.set(due, Timer::Idle(attempt));
        }
        if before == idle {
            return;
        }
        if let Some(active) = self.jobs.get_mut(&attempt.job).and_then(|job| job.state.active_mut()) {
            active.idle = idle;
        }
        let is_lent = |idle: Option<Idle>| idle.is_some_and(|idle| idle.lent);
        match (is_lent(before), is_lent(idle)) {
            (false, true) => self.lend(attempt, now),
            (true, false) => self.reclaim(attempt, now),
            _ => {}
        }
        actions.push(Action::Idle { job: attempt.job, idle });
    }

    /// Since when none of its GPUs is used; `None` for a job without GPUs.
    fn idle_since(&self, attempt: AttemptId, active: &Active) -> Option<Time> {
        let state = self.jobs.get(&attempt.job).map(|job| &job.state);
        if matches!(state, Some(State::Starting(_))) && !active.placement.devices.is_empty() {
            return Some(active.launched_at);
        }
        let since = active.placement.devices.iter().map(|granted| self.tenant(attempt, granted.device)?.idle_since);
        // It is idle since the last of its GPUs is.
        since.collect::<Option<Vec<Time>>>()?.into_iter().max()
    }

    /// Looks at a new attempt again when it should have been seen on its GPUs.
    pub(super) fn watch_unseen(&mut self, attempt: AttemptId, now: Time) {
        if let Some(due) = self.config.idle_jobs.next_judgement(now, now) {
            self.timers.set(due, Timer::Idle(attempt));
        }
    }

    /// The rules have changed, and with them which attempts count as idle.
    pub(super) fn judge_all_idle(&mut self, now: Time) {
        let watches = self.config.idle_jobs.watches();
        let tenants = self.fleet.devices().flat_map(|device| device.tenants.iter().map(|tenant| (device.id(), tenant)));
        let idle: Vec<(DeviceId, AttemptId)> = tenants
            .filter(|(_, tenant)| tenant.idle_since.is_some() || tenant.seen_at.is_none())
            .map(|(device, tenant)| (device, tenant.attempt))
            .collect();
        for (device, attempt) in idle {
            if !watches {
                self.fleet.update(device, &self.config, now, |device| {
                    device.tenant_mut(attempt).into_iter().for_each(|tenant| tenant.idle_since = None);
                });
            }
            self.timers.set(now, Timer::Idle(attempt));
        }
    }

    /// Lends the compute that an attempt does not use to other jobs.
    fn lend(&mut self, attempt: AttemptId, now: Time) {
        let Some(job) = self.jobs.get(&attempt.job) else { return };
        let Some(mut placement) = job.state.active().map(|active| active.placement.clone()) else { return };
        for (rank, granted) in placement.devices.iter_mut().enumerate() {
            let Some(reading) = self.tenant(attempt, granted.device).map(Tenant::attributed) else { continue };
            granted.reserved = self.reserved_when_lent(job, rank, reading, granted.reserved);
            let reserved = granted.reserved;
            self.fleet.update(granted.device, &self.config, now, |device| {
                device.tenant_mut(attempt).into_iter().for_each(|tenant| {
                    tenant.reserved = reserved;
                    tenant.lend();
                });
            });
        }
        if let Some(active) = self.jobs.get_mut(&attempt.job).and_then(|job| job.state.active_mut()) {
            active.placement = placement;
        }
        // Memory that is no longer reserved no longer counts against its user's quota.
        self.count_in(attempt.job);
        // Jobs that the policy kept off its devices may come now.
        self.mark_all_dirty();
    }

    /// An exclusive job has all memory of its GPUs reserved. When lent, it keeps what it needs or uses. That stays so when it works again,
    /// because other jobs may have come.
    fn reserved_when_lent(&self, job: &Job, rank: usize, reading: MiB, reserved: MiB) -> MiB {
        if !job.spec.exclusive || job.climb.whole_gpu {
            return reserved;
        }
        let need = job.spec.memory.of_rank(rank, self.config.mapping.basis).or(self.config.admission.floor);
        need.max(job.climb.floor).max(reading).min(reserved)
    }

    /// It works again: jobs that came stay, and an exclusive job admits no more.
    fn reclaim(&mut self, attempt: AttemptId, now: Time) {
        let Some(job) = self.jobs.get(&attempt.job) else { return };
        for granted in job.state.active().into_iter().flat_map(|active| &active.placement.devices) {
            self.fleet.update(granted.device, &self.config, now, |device| {
                device.tenant_mut(attempt).into_iter().for_each(|tenant| tenant.reclaim(&job.spec));
            });
        }
    }

    fn active(&self, attempt: AttemptId) -> Option<&Active> {
        self.jobs.get(&attempt.job)?.state.active().filter(|active| active.attempt == attempt)
    }

    fn tenant(&self, attempt: AttemptId, device: DeviceId) -> Option<&Tenant> {
        self.fleet.device(device)?.tenants.iter().find(|tenant| tenant.attempt == attempt)
    }

    /// Jobs that hold a device and do not use it.
    pub(super) fn idle_on<'a>(&'a self, device: &'a Device) -> impl Iterator<Item = JobId> + 'a {
        let flagged = |attempt: &AttemptId| self.active(*attempt).is_some_and(|active| active.idle.is_some());
        device.tenants.iter().map(|tenant| tenant.attempt).filter(flagged).map(|attempt| attempt.job)
    }
}

/// Attempts on a device that became idle or work again, and whether they are idle now.
fn changed(device: &Device, config: &Config, now: Time) -> Vec<(AttemptId, bool)> {
    let below = config.idle_jobs.below;
    let remembers_another = device.left_at.is_some_and(|left| now - left <= config.window.length);
    let seen = || device.tenants.iter().filter(|tenant| tenant.seen_at.is_some());
    if seen().next().is_none() || !device.telemetry.is_full() {
        return Vec::new();
    }
    let shown = device.telemetry.statistics(Metric::Smact).or_else(|| device.telemetry.statistics(Metric::Utilisation));
    let works = |tenant: &Tenant| tenant.activity.map_or(tenant.idle_since.is_none(), |activity| activity >= below);
    let idle = |tenant: &Tenant| match (tenant.activity, shown) {
        (Some(activity), _) => activity < below,
        (None, None) => tenant.idle_since.is_some(),
        (None, Some(shown)) => {
            let others_work = || device.tenants.iter().any(|other| other.attempt != tenant.attempt && works(other));
            shown.mean < below.get() || tenant.idle_since.is_some() && (remembers_another || others_work())
        }
    };
    seen()
        .filter(|tenant| idle(tenant) != tenant.idle_since.is_some())
        .map(|tenant| (tenant.attempt, tenant.idle_since.is_none()))
        .collect()
}
