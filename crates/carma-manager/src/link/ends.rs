//! Ends of attempts that an agent could not report, as files in the folder of all jobs that manager and agents share.
//!
//! Without them, an attempt that ended while the manager was away would run again if its agent is gone before the manager is back.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use carma_core::AttemptId;

use crate::executor::Leftovers;

/// Writes an end. The folder of the job must be there: where the manager's disk is not mounted, the manager could not read it.
pub(crate) fn write_end(jobs: &Path, end: &Leftovers) -> io::Result<()> {
    let path = path(jobs, end.attempt);
    let new = path.with_extension("end.new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(&serde_json::to_vec(end)?)?;
    file.sync_all()?;
    fs::rename(new, path)
}

/// The end of an attempt, if its agent wrote one.
pub(crate) fn read_end(jobs: &Path, attempt: AttemptId) -> Option<Leftovers> {
    let end: Leftovers = serde_json::from_slice(&fs::read(path(jobs, attempt)).ok()?).ok()?;
    (end.attempt == attempt && end.ended.is_some()).then_some(end)
}

/// Removes an end that is stored.
pub(crate) fn remove_end(jobs: &Path, attempt: AttemptId) {
    let _ = fs::remove_file(path(jobs, attempt));
}

fn path(jobs: &Path, attempt: AttemptId) -> PathBuf {
    jobs.join(attempt.job.0.to_string()).join(format!("{}.end", attempt.number))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use carma_core::JobId;

    use super::*;
    use crate::attempt::{Ended, Exit};

    #[test]
    fn an_end_reads_back_only_from_its_folder() {
        let jobs = tempfile::tempdir().unwrap();
        let attempt = AttemptId { job: JobId(3), number: 2 };
        let now = SystemTime::now();
        let ended = Ended { exit: Exit::Code(7), started: now, ended: now, oom_kills: None, at_memory_limit: false };
        let end =
            Leftovers { attempt, ended: Some(ended), stdout: b"\xffout".to_vec(), stderr: Vec::new(), log_bytes: 4, kernel_log: None };
        assert!(write_end(jobs.path(), &end).is_err(), "there is not a folder of the job");
        fs::create_dir(jobs.path().join("3")).unwrap();
        write_end(jobs.path(), &end).unwrap();
        let read = read_end(jobs.path(), attempt).unwrap();
        assert_eq!((read.ended, read.stdout), (end.ended, end.stdout));
        assert!(read_end(jobs.path(), AttemptId { number: 1, ..attempt }).is_none());
        remove_end(jobs.path(), attempt);
        assert!(read_end(jobs.path(), attempt).is_none());
        assert_eq!(fs::read_dir(jobs.path().join("3")).unwrap().count(), 0);
    }
}
