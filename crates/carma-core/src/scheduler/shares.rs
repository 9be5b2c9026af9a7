//! Turns in the queue and charges to users: a job gets its turn when it begins to wait, and is charged while it runs.

use serde::{Deserialize, Serialize};

use super::Scheduler;
use super::timers::Timer;
use crate::config::{Config, QueueConfig};
use crate::device::Device;
use crate::fair_share::{Account, Charge, FairShareReserve, Ledger};
use crate::forecast::InterferenceProfile;
use crate::job::{Active, Granted, Job, Turn};
use crate::queue::{Place, turn_of};
use crate::units::{Seconds, Time};
use crate::{DeviceId, GroupId, JobId, UserId};

/// The GPU time that a user, as a member of a group, has used. The driver stores it and restores it after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PastUse {
    /// The user.
    pub user: UserId,
    /// The group it is accounted to.
    pub group: GroupId,
    /// GPU-seconds had, decayed until then.
    pub gpu_seconds: f64,
    /// When that was.
    pub as_of: Time,
}

/// A user's usage and share under fair share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ShareReport {
    /// What it has used.
    #[serde(flatten)]
    pub past: PastUse,
    /// Its share within its group.
    pub share: f64,
    /// The group's share beside others.
    pub group_share: f64,
    /// GPUs it takes now.
    pub gpus: f64,
    /// Expected remaining GPU-seconds of its running jobs.
    pub committed: f64,
    /// Past and predicted use divided by the share, in GPU-seconds. In a group the lowest is next.
    pub usage_per_share: f64,
    /// The same of its group. The lowest is next.
    pub group_usage_per_share: f64,
}

impl Scheduler {
    /// Usage and shares of users that recently ran or wait; empty without fair share.
    pub fn shares(&self, now: Time) -> Vec<ShareReport> {
        let (main, rules) = (&self.queues.main, &self.config.queue);
        if !rules.fair_share {
            return Vec::new();
        }
        let (mut ledger, shares) = (main.ledger.clone(), &rules.shares);
        ledger.read(now, rules);
        let report = |account: Account| {
            let reading = ledger.reading(account);
            ShareReport {
                past: PastUse { user: account.user, group: account.group, gpu_seconds: reading.had, as_of: ledger.as_of() },
                share: shares.of_user(account.user),
                group_share: shares.of_group(account.group),
                gpus: reading.rate,
                committed: reading.due,
                usage_per_share: ledger.of_user(account) as f64 / 1000.0,
                group_usage_per_share: ledger.of_group(account.group) as f64 / 1000.0,
            }
        };
        let mut accounts: Vec<Account> = ledger.accounts().chain(main.accounts()).collect();
        accounts.sort_unstable_by_key(|account| (ledger.of_group(account.group), account.group, ledger.of_user(*account), account.user));
        accounts.dedup();
        accounts.into_iter().map(report).collect()
    }

    /// Sets the turn of a job that begins to wait.
    pub(super) fn set_turn(&mut self, job: JobId, now: Time) {
        let Some(turn) = self.jobs.get(&job).map(|known| self.turn(known, now)) else { return };
        self.jobs.entry(job).and_modify(|known| known.turn = turn);
    }

    fn turn(&self, job: &Job, now: Time) -> Turn {
        let weight = if self.config.queue.fair_share { self.expected_weight(job, now) } else { 0.0 };
        turn_of(job, &self.config.queue, weight)
    }

    /// GPUs that a waiting job should take, with what it takes of each.
    fn expected_weight(&self, job: &Job, now: Time) -> f64 {
        let (part, largest) = (Part::of(job, &self.config), self.fleet.largest());
        self.demand(job, now).ranks.iter().map(|need| part.beside(need.reserved.on(largest).0, largest.0)).sum()
    }

    /// GPUs that an attempt takes, with what it takes of each; of an instance, what that is of its GPU.
    fn weight(&self, job: &Job, active: &Active) -> f64 {
        let part = Part::of(job, &self.config);
        let memory = |id: DeviceId| self.fleet.device(id).map_or(0, |device: &Device| device.spec.memory.0);
        let one = |granted: &Granted| {
            let (own, whole) = (memory(granted.device), memory(DeviceId { instance: None, ..granted.device }));
            let of_whole = if whole > own { own as f64 / whole as f64 } else { 1.0 };
            of_whole * part.beside(granted.reserved.0, own)
        };
        active.placement.devices.iter().map(one).sum()
    }

    /// Charges a user for a job that runs, from a moment on.
    pub(super) fn charge(&mut self, job: JobId, since: Time, now: Time) {
        let Some((known, active)) = self.jobs.get(&job).and_then(|known| Some((known, known.state.active()?))) else { return };
        if !self.config.queue.fair_share || active.placement.devices.is_empty() {
            return;
        }
        let due = now + known.expected_remaining(now).unwrap_or(self.config.queue.unknown_duration - (now - active.launched_at));
        let charge = Charge { account: Account::of(known), weight: self.weight(known, active), due };
        let had = charge.weight * (now - since).get();
        self.queues.main.ledger.begin(active.attempt, charge, had, now, &self.config.queue);
        self.review_reserve(now);
    }

    /// Charges users for all running jobs that are not charged yet.
    pub(super) fn charge_all(&mut self, now: Time) {
        if !self.config.queue.fair_share {
            return;
        }
        let ledger = &self.queues.main.ledger;
        let as_of = ledger.as_of();
        let uncharged =
            |job: &Job| job.state.active().filter(|active| !ledger.charges(active.attempt)).map(|active| (job.id(), active.launched_at));
        let running: Vec<(JobId, Time)> = self.jobs().filter_map(uncharged).collect();
        for (job, launched_at) in running {
            self.charge(job, launched_at.max(as_of), now);
        }
        // Restored usage counts even where nothing runs.
        self.queues.main.ledger.read(now, &self.config.queue);
    }

    /// Adds the GPU time of an ended attempt to its job, and stops the charge to its user.
    pub(super) fn settle_use(&mut self, active: &Active, now: Time) {
        let had = active.ran(now).times(active.placement.devices.len() as f64);
        self.jobs.entry(active.attempt.job).and_modify(|job| job.attained = job.attained + had);
        if self.config.queue.fair_share {
            self.queues.main.ledger.end(active.attempt, active.ended_at.unwrap_or(now), now, &self.config.queue);
        }
    }

    /// Reviews which users are below their share, now and when a user has been away for too long.
    pub(super) fn review_reserve(&mut self, now: Time) {
        let rules = &self.config.queue;
        if !rules.fair_share || rules.fair_share_reserve == Seconds::ZERO {
            return;
        }
        let before = self.queues.main.reserve.ends_at;
        self.queues.main.review_reserve(self.fleet.devices(), rules, now);
        self.timers.reschedule(Timer::FairShareReserve, before, self.queues.main.reserve.ends_at);
    }

    /// A user with a reserve may be away, or have been away for too long.
    pub(super) fn reserve_may_end(&mut self, now: Time) {
        self.review_reserve(now);
        self.mark_all_dirty();
    }

    pub(super) fn shares_restored(&mut self, used: &[PastUse], now: Time) {
        if !self.config.queue.fair_share {
            return;
        }
        for past in used.iter().filter(|past| past.gpu_seconds.is_finite() && past.gpu_seconds >= 0.0) {
            let account = Account { group: past.group, user: past.user };
            self.queues.main.ledger.credit(account, past.gpu_seconds, past.as_of.min(now), &self.config.queue);
        }
    }

    /// Sorts all waiting jobs by new rules.
    pub(super) fn apply_queue_rules(&mut self, before: &QueueConfig, now: Time) {
        let rules = &self.config.queue;
        if rules == before {
            return;
        }
        let waiting = self.jobs().filter(|job| job.state.waiting().is_some());
        let turns: Vec<(JobId, Turn)> = waiting.map(|job| (job.id(), self.turn(job, now))).collect();
        for (job, turn) in turns {
            self.jobs.entry(job).and_modify(|known| known.turn = turn);
        }
        let place = |job: JobId| self.jobs.get(&job).map(|job| Place::of(job));
        self.queues.sort_again(rules, &place);
        self.arrays.sort_again(&place);
        self.quotas.sort_again(&place);
        if rules.fair_share {
            self.queues.main.ledger.read(now, rules);
            self.queues.main.reserve = FairShareReserve::default();
            self.charge_all(now);
        } else {
            self.queues.main.ledger = Ledger::default();
            self.queues.main.reserve = FairShareReserve::default();
        }
    }
}

/// What a rank takes of its device.
struct Part {
    /// It keeps others off.
    whole: bool,
    /// SM activity expected of it.
    smact: f64,
}

impl Part {
    fn of(job: &Job, config: &Config) -> Self {
        let whole = job.spec.exclusive || job.climb.whole_gpu || !config.mapping.policy.shares;
        Self { whole, smact: InterferenceProfile::of(&job.spec).smact }
    }

    /// The larger of its share of memory and of its activity.
    fn beside(&self, reserved: u64, memory: u64) -> f64 {
        if self.whole || memory == 0 { 1.0 } else { (reserved as f64 / memory as f64).max(self.smact).min(1.0) }
    }
}
