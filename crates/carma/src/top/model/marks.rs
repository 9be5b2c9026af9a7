//! Which job has which letter and colour: a job keeps its own for as long as it is on a GPU.

use std::collections::{BTreeMap, BTreeSet};

use carma_core::JobId;

/// Letters of jobs.
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// What tells a job on a GPU from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(usize);

impl Mark {
    /// Its letter; where there are more jobs than letters they begin anew.
    pub(crate) fn letter(self) -> char {
        char::from(LETTERS[self.0 % LETTERS.len()])
    }

    /// Its place among so many colours.
    pub(crate) const fn among(self, colours: usize) -> usize {
        self.0 % colours
    }
}

/// The marks of all jobs on GPUs.
#[derive(Debug, Default)]
pub(crate) struct Marks(BTreeMap<JobId, usize>);

impl Marks {
    /// These jobs are on GPUs now: others lose their marks, new ones get the first that are free.
    pub(super) fn follow(&mut self, jobs: impl Iterator<Item = JobId>) {
        let jobs: BTreeSet<JobId> = jobs.collect();
        self.0.retain(|job, _| jobs.contains(job));
        let mut taken: BTreeSet<usize> = self.0.values().copied().collect();
        for job in jobs {
            self.0.entry(job).or_insert_with(|| {
                let free = (0..=taken.len()).find(|place| !taken.contains(place)).unwrap_or_default();
                taken.insert(free);
                free
            });
        }
    }

    /// The mark of a job that is on a GPU.
    pub(crate) fn of(&self, job: JobId) -> Option<Mark> {
        self.0.get(&job).copied().map(Mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_keeps_its_mark_and_what_is_free_is_given_again() {
        let mut marks = Marks::default();
        let mut letters = |jobs: &[u64]| -> String {
            marks.follow(jobs.iter().copied().map(JobId));
            jobs.iter().filter_map(|job| marks.of(JobId(*job))).map(Mark::letter).collect()
        };
        assert_eq!(letters(&[7, 8, 9]), "abc");
        assert_eq!(letters(&[8, 9, 10]), "bca");
        assert_eq!(letters(&[9]), "c");
    }
}
