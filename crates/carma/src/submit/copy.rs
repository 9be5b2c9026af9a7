//! Copies of work trees for jobs that want the code as it is now, and their removal after the jobs.
//!
//! Each is a folder of the user: `tree` is the copy, `jobs` names its owner: the manager's address, and the numbers of its jobs.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use carma_core::JobId;
use carma_manager::api::{ProblemKind, Submission, Submitted};
use carma_manager::client::{Client, ClientError};
use carma_manager::launch::snapshot;
use carma_manager::places::Places;
use tempfile::TempDir;

/// The most that is copied: code, not data.
const LARGEST: u64 = 1 << 30;
/// A copy without an owner is in progress, or was left behind: after this long it is the latter.
const MAX_AGE_WITHOUT_OWNER: Duration = Duration::from_secs(24 * 3600);

/// The copies of one submission.
#[derive(Debug, Default)]
pub(super) struct Copies {
    cleaned: bool,
    /// Removed unless it is handed over.
    pending: Option<TempDir>,
}

impl Copies {
    /// The submission with a copy of its work tree, if it requests one.
    pub(super) fn copied(&mut self, client: &mut Client, mut submission: Submission) -> Result<Submission> {
        if !submission.job.snapshot {
            return Ok(submission);
        }
        let folder = Places::own_user().state.join("snapshots");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        if !std::mem::replace(&mut self.cleaned, true) {
            clean(&folder, &client.address().to_string(), |job| is_over(client, job));
        }
        let copy =
            tempfile::Builder::new().prefix("").tempdir_in(&folder).with_context(|| format!("cannot write to {}", folder.display()))?;
        submission.job.directory = snapshot(&submission.job.directory, &copy.path().join("tree"), LARGEST)?.directory;
        self.pending = Some(copy);
        Ok(submission)
    }

    /// Submits, and keeps the copy for the accepted jobs; also if the result is unknown, as after a broken connection. The owner is written
    /// before, so that the copy always has one.
    pub(super) fn submit(&mut self, client: &mut Client, submission: &Submission) -> Result<Submitted> {
        let Some(copy) = self.pending.take() else { return Ok(client.submit(submission)?) };
        let note = CopyOwner { file: copy.path().join("jobs"), address: client.address().to_string() };
        note.write(&[])?;
        let folder = copy.keep();
        let answer = client.submit(submission);
        match &answer {
            Ok(accepted) => note.write(&accepted.jobs)?,
            // If removal fails, only the copy is left behind.
            Err(error) if error.nothing_was_done() => drop(fs::remove_dir_all(&folder)),
            Err(_) => {}
        }
        Ok(answer?)
    }
}

/// The owner of a copy.
struct CopyOwner {
    file: PathBuf,
    address: String,
}

impl CopyOwner {
    fn write(&self, jobs: &[JobId]) -> Result<()> {
        let lines: Vec<String> = std::iter::once(self.address.clone()).chain(jobs.iter().map(|job| job.0.to_string())).collect();
        fs::write(&self.file, lines.join("\n")).with_context(|| format!("cannot write {}", self.file.display()))
    }
}

/// Whether a job no longer needs its copy; an unknown state counts as in use.
fn is_over(client: &mut Client, job: JobId) -> bool {
    match client.job(&job.0.to_string()) {
        Ok(detail) => detail.outcome().is_some(),
        Err(ClientError::Refused(problem)) => problem.kind == ProblemKind::NotFound,
        Err(_) => false,
    }
}

/// Removes copies whose jobs are over. A failed removal is repeated next time.
fn clean(folder: &Path, address: &str, mut over: impl FnMut(JobId) -> bool) {
    let copies = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for copy in copies {
        let unneeded = match fs::read_to_string(copy.join("jobs")) {
            Ok(note) => jobs_of(&note, address).is_some_and(|jobs| jobs.into_iter().all(&mut over)),
            Err(error) => error.kind() == ErrorKind::NotFound && age(&copy).is_some_and(|age| age > MAX_AGE_WITHOUT_OWNER),
        };
        if unneeded {
            let _ = fs::remove_dir_all(&copy);
        }
    }
}

/// The jobs of a note, if it is for this manager: other managers use the same numbers.
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
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;
    use std::thread;

    use carma_manager::client::Address;
    use carma_manager::request::{JobCommand, JobRequest};

    use super::*;

    /// The note of a copy after this answer; none if the copy was removed.
    fn noted(answer: &'static str) -> Option<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("carma.sock")).unwrap();
        let serving = thread::spawn(move || {
            let (mut stream, mut received) = (listener.accept().unwrap().0, Vec::new());
            while !received.ends_with(b"}") {
                let mut piece = [0; 4096];
                let length = stream.read(&mut piece).unwrap();
                received.extend_from_slice(&piece[..length]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let mut client = Client::at(Address::Socket(folder.path().join("carma.sock"))).unwrap();
        let copy = tempfile::tempdir_in(folder.path()).unwrap();
        let note = copy.path().join("jobs");
        let job = JobRequest::new(JobCommand::Program(vec!["true".to_owned()]), copy.path());
        let mut copies = Copies { cleaned: true, pending: Some(copy) };
        let submitted = copies.submit(&mut client, &Submission::from(job));
        assert_eq!(submitted.is_ok(), answer.contains("200 OK"));
        serving.join().unwrap();
        let text = fs::read_to_string(note).ok()?;
        Some(text.lines().skip(1).map(str::to_owned).collect())
    }

    #[test]
    fn a_copy_goes_only_when_it_is_certain_that_no_job_needs_it() {
        let refused = "HTTP/1.1 403 Forbidden\r\ncontent-length: 35\r\n\r\n{\"kind\":\"forbidden\",\"message\":\"no\"}";
        assert_eq!(noted("HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{\"jobs\":[7]}"), Some(vec!["7".to_owned()]));
        assert_eq!(noted(refused), None);
        assert_eq!(noted(""), Some(Vec::new()), "the connection broke");
        assert_eq!(noted("HTTP/1.1 504 Gateway Timeout\r\ncontent-length: 0\r\n\r\n"), Some(Vec::new()), "a proxy gave up");
    }

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
        copy("unknown", Some("/a.sock"));
        clean(folder.path(), "/a.sock", |job| job.0 < 3);
        let mut left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, ["anothers", "being made", "odd", "partly", "unknown"]);
    }
}
