//! Letters and colours of jobs: a job keeps its own while it is on a GPU.

use std::collections::{BTreeMap, BTreeSet};

use carma_core::JobId;

/// Letters that mark jobs.
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Distinguishes the jobs on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(usize);

impl Mark {
    /// Its letter. With more jobs than letters, letters repeat.
    pub(crate) fn letter(self) -> char {
        char::from(LETTERS[self.0 % LETTERS.len()])
    }

    /// Its index among this many colours.
    pub(crate) const fn among(self, colours: usize) -> usize {
        self.0 % colours
    }
}

/// The marks of all jobs on GPUs.
#[derive(Debug, Default)]
pub(crate) struct Marks(BTreeMap<JobId, usize>);

impl Marks {
    /// Sets the jobs on GPUs: others lose their marks, new ones get the first free marks.
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
    fn a_job_keeps_its_mark_and_free_marks_are_reused() {
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
