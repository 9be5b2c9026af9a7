//! The queues of jobs that could start now if there were room.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::FairQueue;
use crate::JobId;
use crate::config::QueueConfig;
use crate::fair_share::Account;
use crate::job::{Job, Priority, Waiting};
use crate::units::Seconds;

/// A job's place in its queue: by priority, then by its turn, then by when it was accepted or put back behind others. It stays the same
/// while the job waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(super) priority: Reverse<Priority>,
    pub(super) rank: u64,
    sequence: u64,
    /// The job.
    pub(crate) job: JobId,
    /// The account and the cost; irrelevant for the order, since no job has two places.
    pub(super) account: Account,
    pub(super) cost: Seconds,
    /// How long it should run, on how many GPUs.
    pub(crate) length: Seconds,
    pub(super) ranks: u32,
}

impl Place {
    pub(crate) fn of(job: &Job) -> Self {
        Self {
            priority: Reverse(job.spec.priority),
            rank: job.turn.rank,
            sequence: job.place(),
            job: job.id(),
            account: Account::of(job),
            cost: job.turn.cost,
            length: job.turn.length,
            ranks: job.spec.gpus,
        }
    }

    /// The place behind all waiting jobs of its priority.
    pub(crate) fn behind_all(job: &Job) -> Self {
        Self { rank: u64::MAX, sequence: u64::MAX, ..Self::of(job) }
    }
}

/// The queues a job can stand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Jobs to be recovered; strictly before the main queue.
    Recovery,
    /// All other jobs that want GPUs.
    Main,
    /// Jobs that want none: nothing on a GPU can block them.
    Cpu,
    /// Jobs that want no GPU, but cores or memory of a host: the first of them blocks the others.
    Host,
}

impl Lane {
    /// Where a waiting job belongs.
    pub(crate) fn of(job: &Job, waiting: Waiting) -> Self {
        match waiting {
            _ if job.spec.gpus == 0 && job.spec.host_claim().is_nothing() => Self::Cpu,
            _ if job.spec.gpus == 0 => Self::Host,
            Waiting::Recovering => Self::Recovery,
            Waiting::Queued | Waiting::Preempted => Self::Main,
        }
    }
}

/// Jobs that could start now if there were room.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Queues {
    recovery: BTreeSet<Place>,
    pub(crate) main: FairQueue,
    cpu: BTreeSet<Place>,
    host: BTreeSet<Place>,
    /// Jobs that no server can hold now; set aside, so that they do not block the queue.
    too_large: BTreeSet<Place>,
}

impl Queues {
    pub(crate) fn new(rules: &QueueConfig) -> Self {
        let mut queues = Self::default();
        queues.main.apply_rules(rules.fair_share, &rules.shares);
        queues
    }

    /// The first ones of each queue.
    pub(crate) fn front(&self, most: usize) -> Self {
        let first = |queue: &BTreeSet<Place>| queue.iter().take(most).copied().collect();
        let [recovery, cpu, host, too_large] = self.others().map(first);
        Self { recovery, main: self.main.front(most), cpu, host, too_large }
    }

    /// All but the main queue.
    const fn others(&self) -> [&BTreeSet<Place>; 4] {
        [&self.recovery, &self.cpu, &self.host, &self.too_large]
    }

    const fn others_mut(&mut self) -> [&mut BTreeSet<Place>; 4] {
        [&mut self.recovery, &mut self.cpu, &mut self.host, &mut self.too_large]
    }

    pub(crate) fn insert(&mut self, lane: Lane, place: Place) {
        match lane {
            Lane::Recovery => drop(self.recovery.insert(place)),
            Lane::Main => self.main.insert(place),
            Lane::Cpu => drop(self.cpu.insert(place)),
            Lane::Host => drop(self.host.insert(place)),
        }
    }

    /// Takes a job out, from any queue.
    pub(crate) fn remove(&mut self, place: &Place) {
        self.main.remove(place);
        for queue in self.others_mut() {
            queue.remove(place);
        }
    }

    /// Gives every job another place, by new rules.
    pub(crate) fn sort_again(&mut self, rules: &QueueConfig, place: &impl Fn(JobId) -> Option<Place>) {
        let waiting: Vec<Place> = self.main.take().filter_map(|old| place(old.job)).collect();
        self.main.apply_rules(rules.fair_share, &rules.shares);
        for new in waiting {
            self.main.insert(new);
        }
        for queue in self.others_mut() {
            *queue = std::mem::take(queue).into_iter().filter_map(|old| place(old.job)).collect();
        }
    }

    /// Puts a job that is in no queue aside as too large.
    pub(crate) fn set_aside(&mut self, place: Place) {
        self.too_large.insert(place);
    }

    /// Gives back all that were put aside, to be tried again.
    pub(crate) fn take_set_aside(&mut self) -> BTreeSet<Place> {
        std::mem::take(&mut self.too_large)
    }

    pub(crate) fn is_set_aside(&self, place: &Place) -> bool {
        self.too_large.contains(place)
    }

    /// Whether the job is in a queue.
    pub(crate) fn contains(&self, place: &Place) -> bool {
        self.main.contains(place) || self.others().iter().any(|queue| queue.contains(place))
    }

    /// Whether the job is one of those that [`Self::in_order`] gives.
    pub(crate) fn awaits_gpus(&self, place: &Place) -> bool {
        self.main.contains(place) || self.recovery.contains(place)
    }

    /// The jobs that want GPUs, in order: recovery first.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = JobId> + '_ {
        self.recovery.iter().chain(self.main.iter()).map(|place| place.job)
    }

    /// The job that is next.
    pub(crate) fn head(&self) -> Option<JobId> {
        self.recovery.first().or_else(|| self.main.first()).map(|place| place.job)
    }

    /// The first job to be recovered.
    pub(crate) fn first_to_recover(&self) -> Option<JobId> {
        self.recovery.first().map(|place| place.job)
    }

    /// The next job that wants no GPU, and the next of those that claim cores or memory, whichever comes first.
    pub(crate) fn next_cpu_jobs(&self) -> impl Iterator<Item = JobId> + use<> {
        let (cpu, host) = (self.cpu.first().copied(), self.host.first().copied());
        let host_first = host.is_some_and(|host| cpu.is_none_or(|cpu| host < cpu));
        let order = if host_first { [host, cpu] } else { [cpu, host] };
        order.into_iter().flatten().map(|place| place.job)
    }

    /// Whether jobs that want no GPU wait.
    pub(crate) fn has_cpu_jobs(&self) -> bool {
        !self.cpu.is_empty() || !self.host.is_empty()
    }

    /// The first job without GPUs that claims cores or memory.
    pub(crate) fn host_head(&self) -> Option<JobId> {
        self.host.first().map(|place| place.job)
    }

    /// How many jobs without GPUs that claim cores or memory are before this one.
    pub(crate) fn ahead_for_host(&self, place: &Place) -> usize {
        self.host.range(..place).count()
    }

    /// The first job without GPUs that claims cores or memory, if the given one, which wants GPUs, comes after it.
    pub(crate) fn host_job_before(&self, place: &Place) -> Option<JobId> {
        self.host.first().filter(|host| *host < place && !self.recovery.contains(place)).map(|host| host.job)
    }

    /// Jobs that stand in queues, for checks.
    pub(crate) fn len(&self) -> usize {
        self.main.len() + self.others().iter().map(|queue| queue.len()).sum::<usize>()
    }
}
