//! How long jobs take: the runs of each user, in a file with a line for each run.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use carma_core::{JobId, Seconds, UserId};
pub(crate) use carma_estimate::durations::Groups;
use carma_estimate::durations::{Durations, Expected, Request};

use super::memory::words;
use crate::request::JobRequest;

/// Decisions use an expected length only if it is at most about this far off: two of three within a factor of 2.2.
const MOST_SPREAD: f64 = 0.8;

/// The lengths of earlier runs, and the groups of unfinished jobs.
#[derive(Debug)]
pub(crate) struct Lengths {
    durations: Durations,
    path: PathBuf,
    /// All users learn from each other.
    shared: bool,
    jobs: HashMap<JobId, Groups>,
}

impl Lengths {
    /// Reads the file. A damaged one is put aside.
    pub(super) fn open(path: PathBuf, shared: bool) -> Self {
        let durations = File::open(&path).ok().and_then(|file| Durations::read(file).ok());
        if durations.is_none() && path.exists() {
            let _ = fs::rename(&path, path.with_extension("damaged"));
        }
        let lengths = Self { durations: durations.unwrap_or_default(), path, shared, jobs: HashMap::new() };
        // Old runs are dropped, so the file is rewritten.
        let new = lengths.path.with_extension("new");
        if File::create(&new).is_ok_and(|file| lengths.durations.write(file).is_ok()) {
            let _ = fs::rename(new, &lengths.path);
        }
        lengths
    }

    /// What a job has in common with others.
    pub(crate) fn groups(&self, request: &JobRequest, user: UserId) -> Groups {
        let (words, model) = (words(request), request.hints.model.as_ref().map(|model| model.to_string_lossy()));
        Groups::of(&Request {
            words: &words,
            directory: &request.directory.to_string_lossy(),
            model: model.as_deref(),
            gpus: request.resources.gpus.into(),
            user: user.0,
            shared: self.shared,
        })
    }

    /// Remembers what an unfinished job has in common with others.
    pub(crate) fn add(&mut self, job: JobId, groups: Groups) {
        self.jobs.insert(job, groups);
    }

    pub(crate) fn knows(&self, job: JobId) -> bool {
        self.jobs.contains_key(&job)
    }

    pub(crate) fn forget(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }

    pub(crate) fn clear(&mut self) {
        self.jobs.clear();
    }

    /// How long an unfinished job should take when alone.
    pub(crate) fn expected(&self, job: JobId) -> Option<Expected> {
        self.durations.expected(self.jobs.get(&job)?)
    }

    /// How long a job should take when alone, if that is known well enough for decisions.
    pub(super) fn for_decisions(&self, groups: &Groups) -> Option<Seconds> {
        let expected = self.durations.expected(groups)?;
        (expected.length.spread() <= MOST_SPREAD).then(|| expected.length.median())
    }

    /// Adds a run that took this long when alone. On a full disk it is forgotten at the next start.
    pub(super) fn learn(&mut self, request: &JobRequest, user: UserId, alone: Seconds) {
        let groups = self.groups(request, user);
        self.durations.record(groups, alone);
        let line = Durations::line(&groups, alone);
        let _ = File::options().append(true).open(&self.path).and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::JobCommand;

    #[test]
    fn stored_runs_are_used_only_for_their_user() {
        let folder = tempfile::tempdir().unwrap();
        let request = JobRequest::new(JobCommand::Program(vec!["python".to_owned(), "train.py".to_owned()]), "/project");
        for shared in [false, true] {
            let open = || Lengths::open(folder.path().join(format!("{shared}.csv")), shared);
            open().learn(&request, UserId(1), Seconds::from_secs(600));
            let lengths = open();
            let length = |user| lengths.for_decisions(&lengths.groups(&request, UserId(user)));
            assert_eq!(length(1).map(|length| length.get().round()), Some(600.0));
            assert_eq!(length(2).is_some(), shared);
        }
    }

    #[test]
    fn weak_evidence_is_not_used_for_decisions() {
        let folder = tempfile::tempdir().unwrap();
        let mut lengths = Lengths::open(folder.path().join("durations.csv"), false);
        let of = |name: &str| JobRequest::new(JobCommand::Program(vec![name.to_owned()]), "/project");
        lengths.learn(&of("train"), UserId(1), Seconds::from_secs(600));
        assert_eq!(lengths.for_decisions(&lengths.groups(&of("other"), UserId(1))), None);
        lengths.add(JobId(7), lengths.groups(&of("other"), UserId(1)));
        assert_eq!(lengths.expected(JobId(7)).unwrap().source(), "1 earlier run of this user");
    }
}
