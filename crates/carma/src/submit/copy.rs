//! Copies of work trees for jobs that want the code as it is now, and their end once the jobs are over.
//!
//! Each is a folder of the user's own: `tree` is the copy, `jobs` says whose it is: the manager's address, and the numbers of its jobs.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use carma_core::JobId;
use carma_manager::api::{ProblemKind, Submit};
use carma_manager::client::{Client, ClientError};
use carma_manager::launch::snapshot;
use carma_manager::places::Places;
use tempfile::TempDir;

/// The most that is copied: code, not data.
const LARGEST: u64 = 1 << 30;
/// A copy that nobody signed for is being made, or was left behind when its maker ended: after this long it is the latter.
const UNSIGNED: Duration = Duration::from_secs(24 * 3600);

/// The copies of one submission.
#[derive(Debug, Default)]
pub(super) struct Copies {
    cleaned: bool,
    /// Gone again where the job is not accepted.
    pending: Option<TempDir>,
}

impl Copies {
    /// The submission with a copy of its work tree in its place, where it asks for one.
    pub(super) fn copied(&mut self, client: &mut Client, mut submit: Submit) -> Result<Submit> {
        if !submit.job.snapshot {
            return Ok(submit);
        }
        let folder = Places::own_user().state.join("snapshots");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        if !std::mem::replace(&mut self.cleaned, true) {
            clean(&folder, &client.address().to_string(), |job| is_over(client, job));
        }
        let copy =
            tempfile::Builder::new().prefix("").tempdir_in(&folder).with_context(|| format!("cannot write to {}", folder.display()))?;
        submit.job.directory = snapshot(&submit.job.directory, &copy.path().join("tree"), LARGEST)?.directory;
        self.pending = Some(copy);
        Ok(submit)
    }

    /// Keeps the copy for these jobs.
    pub(super) fn note(&mut self, client: &Client, jobs: &[JobId]) -> Result<()> {
        let Some(copy) = self.pending.take() else { return Ok(()) };
        // The jobs need it now, whatever becomes of the note.
        let note = copy.keep().join("jobs");
        let lines: Vec<String> = std::iter::once(client.address().to_string()).chain(jobs.iter().map(|job| job.0.to_string())).collect();
        fs::write(&note, lines.join("\n")).with_context(|| format!("cannot write {}", note.display()))
    }
}

/// Whether a job needs its copy no more; one that cannot be asked for may.
fn is_over(client: &mut Client, job: JobId) -> bool {
    match client.job(&job.0.to_string()) {
        Ok(detail) => detail.outcome().is_some(),
        Err(ClientError::Refused(problem)) => problem.kind == ProblemKind::NotFound,
        Err(_) => false,
    }
}

/// Removes copies whose jobs are over. What cannot be removed now may be another time.
fn clean(folder: &Path, address: &str, mut over: impl FnMut(JobId) -> bool) {
    let copies = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for copy in copies {
        let unneeded = match fs::read_to_string(copy.join("jobs")) {
            Ok(note) => jobs_of(&note, address).is_some_and(|jobs| jobs.into_iter().all(&mut over)),
            Err(error) => error.kind() == ErrorKind::NotFound && age(&copy).is_some_and(|age| age > UNSIGNED),
        };
        if unneeded {
            let _ = fs::remove_dir_all(&copy);
        }
    }
}

/// The jobs of a note, where it is for this manager: another's have the same numbers.
fn jobs_of(note: &str, address: &str) -> Option<Vec<JobId>> {
    let mut lines = note.lines();
    let ours = lines.next() == Some(address);
    let jobs = lines.map(|line| line.parse().map(JobId)).collect::<Result<Vec<_>, _>>().ok()?;
    (ours && !jobs.is_empty()).then_some(jobs)
}

fn age(path: &PathBuf) -> Option<Duration> {
    fs::metadata(path).ok()?.modified().ok()?.elapsed().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_go_when_all_their_jobs_are_over_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let copy = |name: &str, note: Option<&str>| {
            fs::create_dir_all(folder.path().join(name).join("tree")).unwrap();
            if let Some(note) = note {
                fs::write(folder.path().join(name).join("jobs"), note).unwrap();
            }
        };
        copy("over", Some("/a.sock\n1\n2"));
        copy("partly", Some("/a.sock\n2\n3"));
        copy("anothers", Some("/b.sock\n1"));
        copy("being made", None);
        copy("odd", Some("/a.sock\nx"));
        copy("cut off", Some("/a.sock"));
        clean(folder.path(), "/a.sock", |job| job.0 < 3);
        let mut left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, ["anothers", "being made", "cut off", "odd", "partly"]);
    }
}
