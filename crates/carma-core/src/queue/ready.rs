//! The queues of jobs that could start now if there were room.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::JobId;
use crate::job::{Job, Priority, Waiting};

/// A job's place in its queue: by priority, then by when it was accepted or put back behind others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    priority: Reverse<Priority>,
    sequence: u64,
    /// The job.
    pub(crate) job: JobId,
}

impl Place {
    pub(crate) fn of(job: &Job) -> Self {
        Self { priority: Reverse(job.spec.priority), sequence: job.place(), job: job.id() }
    }

    /// Where the job would stand if it were put back behind all who wait.
    pub(crate) fn behind_all(job: &Job) -> Self {
        Self { sequence: u64::MAX, ..Self::of(job) }
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
    main: BTreeSet<Place>,
    cpu: BTreeSet<Place>,
    host: BTreeSet<Place>,
    /// Jobs that no server could hold as things stand; put aside, so that they block nobody.
    too_large: BTreeSet<Place>,
}

impl Queues {
    const fn all(&self) -> [&BTreeSet<Place>; 5] {
        [&self.recovery, &self.main, &self.cpu, &self.host, &self.too_large]
    }

    fn lane(&mut self, lane: Lane) -> &mut BTreeSet<Place> {
        match lane {
            Lane::Recovery => &mut self.recovery,
            Lane::Main => &mut self.main,
            Lane::Cpu => &mut self.cpu,
            Lane::Host => &mut self.host,
        }
    }

    pub(crate) fn insert(&mut self, lane: Lane, place: Place) {
        self.lane(lane).insert(place);
    }

    /// Takes a job out, wherever it stands.
    pub(crate) fn remove(&mut self, place: &Place) {
        for queue in [&mut self.recovery, &mut self.main, &mut self.cpu, &mut self.host, &mut self.too_large] {
            queue.remove(place);
        }
    }

    /// Puts a job that stands in no queue aside as too large.
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

    /// Whether the job stands in a queue.
    pub(crate) fn contains(&self, place: &Place) -> bool {
        self.all().iter().any(|queue| queue.contains(place))
    }

    /// The jobs that want GPUs, in order: recovery first.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = JobId> + '_ {
        self.recovery.iter().chain(&self.main).map(|place| place.job)
    }

    /// The job that is next.
    pub(crate) fn head(&self) -> Option<JobId> {
        self.in_order().next()
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
        self.all().iter().map(|queue| queue.len()).sum()
    }
}
