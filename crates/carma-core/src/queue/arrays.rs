//! Job arrays with a limit on running jobs.

use std::collections::{BTreeMap, BTreeSet};

use super::Place;
use crate::job::Job;
use crate::{ArrayId, JobId};

/// What runs and what waits of each array.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Arrays {
    arrays: BTreeMap<ArrayId, Array>,
}

#[derive(Debug, Clone, PartialEq, Default)]
struct Array {
    /// Members that run or stand in a queue.
    admitted: BTreeSet<JobId>,
    /// Members that wait for a turn, each with how many of the array it allows at once.
    waiting: BTreeMap<Place, u32>,
}

impl Array {
    /// The next that waits, if it may have a turn.
    fn take_next(&mut self) -> Option<Place> {
        let running = self.admitted.len();
        let next = self.waiting.iter().find(|(_, most)| running < **most as usize).map(|(place, _)| *place)?;
        self.waiting.remove(&next);
        Some(next)
    }
}

impl Arrays {
    /// Asks for a turn. Without one, the job waits until [`Arrays::leave`] names it.
    pub(crate) fn enter(&mut self, job: &Job) -> bool {
        let Some(member) = job.spec.array else { return true };
        let array = self.arrays.entry(member.array).or_default();
        let most = member.at_most.unwrap_or(u32::MAX);
        let turn = array.admitted.contains(&job.id()) || array.admitted.len() < most as usize;
        if turn {
            array.admitted.insert(job.id());
        } else {
            array.waiting.insert(Place::of(job), most);
        }
        turn
    }

    /// Gives a job its turn, whatever the limit.
    pub(crate) fn admit(&mut self, job: &Job) {
        if let Some(member) = job.spec.array {
            self.arrays.entry(member.array).or_default().admitted.insert(job.id());
        }
    }

    /// Gives a turn back, or stops waiting for one. Returns the job whose turn it is now, which must enter again.
    pub(crate) fn leave(&mut self, job: &Job) -> Option<Place> {
        let array = self.arrays.get_mut(&job.spec.array?.array)?;
        array.waiting.remove(&Place::of(job));
        let next = if array.admitted.remove(&job.id()) { array.take_next() } else { None };
        if array.admitted.is_empty() && array.waiting.is_empty() {
            self.arrays.remove(&job.spec.array?.array);
        }
        next
    }

    /// Gives back a turn that a job has, or that has just come to it, as [`Arrays::leave`].
    pub(crate) fn pass_on(&mut self, job: &Job) -> Option<Place> {
        self.admit(job);
        self.leave(job)
    }

    /// Stops waiting for a turn, but keeps one that was given.
    pub(crate) fn step_aside(&mut self, job: &Job) {
        if let Some(array) = job.spec.array.and_then(|member| self.arrays.get_mut(&member.array)) {
            array.waiting.remove(&Place::of(job));
        }
    }

    /// Gives every job that waits another place, by new rules.
    pub(crate) fn sort_again(&mut self, place: &impl Fn(JobId) -> Option<Place>) {
        for array in self.arrays.values_mut() {
            let again = |(old, most): (Place, u32)| Some((place(old.job)?, most));
            array.waiting = std::mem::take(&mut array.waiting).into_iter().filter_map(again).collect();
        }
    }

    /// Whether the job waits for a turn.
    pub(crate) fn is_waiting(&self, job: &Job) -> bool {
        let array = job.spec.array.and_then(|member| self.arrays.get(&member.array));
        array.is_some_and(|array| array.waiting.contains_key(&Place::of(job)))
    }
}
