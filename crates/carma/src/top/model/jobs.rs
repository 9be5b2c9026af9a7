//! The list of jobs: its filter, its order, and the selection.

use std::cmp::Reverse;

use carma_core::JobId;
use carma_manager::api::{Counts, Queue, QueueRow};

use super::filter::Filter;
use crate::manager::identity;

/// Sort key of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Sort {
    /// Running jobs, then queued jobs in queue order, then held jobs.
    #[default]
    Queue,
    /// Longest in their current state first.
    Time,
    /// The largest first.
    Memory,
    User,
    Name,
}

impl Sort {
    const fn next(self) -> Self {
        match self {
            Self::Queue => Self::Time,
            Self::Time => Self::Memory,
            Self::Memory => Self::User,
            Self::User => Self::Name,
            Self::Name => Self::Queue,
        }
    }

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue order",
            Self::Time => "time",
            Self::Memory => "memory",
            Self::User => "user",
            Self::Name => "name",
        }
    }
}

/// Unfinished jobs.
#[derive(Debug, Default)]
pub(crate) struct JobList {
    queue: Queue,
    uid: u32,
    pub(crate) filter: Filter,
    pub(crate) sort: Sort,
    /// Queue places of the listed jobs, in order.
    listed: Vec<usize>,
    /// The place in the list of the one that is selected.
    place: usize,
    /// Width of the longest job number.
    pub(crate) widest: usize,
}

impl JobList {
    /// Sets the present queue.
    pub(super) fn take(&mut self, queue: Queue, uid: u32) {
        let selected = self.selected().map(|job| job.id);
        (self.queue, self.uid) = (queue, uid);
        self.widest = self.queue.jobs.iter().map(|job| identity(job.id, job.array).len()).max().unwrap_or_default();
        self.arrange(selected, self.place);
    }

    /// Selects the next sort key.
    pub(super) fn sort_by_next(&mut self) {
        self.sort = self.sort.next();
        self.rearrange();
    }

    /// Rebuilds the list after the filter or the order changed.
    pub(super) fn rearrange(&mut self) {
        self.arrange(self.selected().map(|job| job.id), 0);
    }

    /// A selected job stays selected when it moves; if it is gone, the job at the other place is selected.
    fn arrange(&mut self, selected: Option<JobId>, otherwise: usize) {
        let jobs = &self.queue.jobs;
        self.listed = (0..jobs.len()).filter(|place| self.filter.fits(&jobs[*place], self.uid)).collect();
        match self.sort {
            Sort::Queue => {}
            Sort::Time => self.listed.sort_by(|one, other| jobs[*other].for_seconds.get().total_cmp(&jobs[*one].for_seconds.get())),
            Sort::Memory => self.listed.sort_by_key(|place| Reverse(jobs[*place].memory)),
            Sort::User => self.listed.sort_by(|one, other| jobs[*one].user.cmp(&jobs[*other].user)),
            Sort::Name => self.listed.sort_by(|one, other| jobs[*one].name.cmp(&jobs[*other].name)),
        }
        let place = self.listed.iter().position(|place| Some(jobs[*place].id) == selected);
        self.place = place.unwrap_or(otherwise).min(self.listed.len().saturating_sub(1));
    }

    /// Moves the selection down by this many rows.
    pub(super) fn move_by(&mut self, by: isize) {
        self.place = self.place.saturating_add_signed(by).min(self.listed.len().saturating_sub(1));
    }

    /// The job that is selected.
    pub(crate) fn selected(&self) -> Option<&QueueRow> {
        self.listed.get(self.place).map(|place| &self.queue.jobs[*place])
    }

    /// Its place in the list.
    pub(crate) const fn place(&self) -> usize {
        self.place
    }

    /// How many are listed.
    pub(crate) fn len(&self) -> usize {
        self.listed.len()
    }

    /// Whether a filter hides some.
    pub(crate) fn is_filtered(&self) -> bool {
        self.filter.is_set()
    }

    /// Counts of each kind, listed or not.
    pub(crate) const fn counts(&self) -> Counts {
        self.queue.counts
    }

    /// The listed jobs, from a place on.
    pub(crate) fn from(&self, place: usize) -> impl Iterator<Item = &QueueRow> {
        self.listed.iter().skip(place).map(|place| &self.queue.jobs[*place])
    }

    /// The row of a job, if it is in the queue.
    pub(crate) fn named(&self, job: JobId) -> Option<&QueueRow> {
        self.queue.jobs.iter().find(|row| row.id == job)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::fixtures::{running, waiting};
    use super::*;

    fn list(jobs: Vec<QueueRow>) -> Queue {
        Queue { jobs, ..Queue::default() }
    }

    fn ids(list: &JobList) -> Vec<u64> {
        list.from(0).map(|job| job.id.0).collect()
    }

    #[test]
    fn a_selected_job_stays_selected_when_it_moves() {
        let mut jobs = JobList::default();
        let (a, b, c) = (running(1, "a", "ada", &[0], 8), waiting(2, "c", "bob", 20), waiting(3, "b", "bob", 4));
        jobs.take(list(vec![a.clone(), b.clone(), c.clone()]), 0);
        jobs.move_by(1);
        jobs.sort_by_next();
        jobs.sort_by_next();
        assert_eq!((jobs.sort, ids(&jobs), jobs.selected().unwrap().id), (Sort::Memory, vec![2, 1, 3], JobId(2)));
        jobs.take(list(vec![a.clone(), c.clone()]), 0);
        assert_eq!(jobs.selected().unwrap().id, JobId(1), "the first place had job 2, and has job 1 now");
        jobs.move_by(-5);
        jobs.move_by(50);
        assert_eq!(jobs.selected().unwrap().id, JobId(3));
        jobs.take(list(Vec::new()), 0);
        assert!(jobs.selected().is_none());
    }

    #[test]
    fn the_sort_orders_form_a_cycle() {
        let mut sort = Sort::default();
        for _ in 0..5 {
            sort = sort.next();
        }
        assert_eq!(sort, Sort::default());
    }
}
