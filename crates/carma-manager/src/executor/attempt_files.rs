//! The files of attempts: the progress that an attempt reports, and the leftovers of unknown jobs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use carma_core::{JobId, Signal};

use super::CheckpointTimes;
use crate::credentials::Credentials;
use crate::launch::{UserTask, checkpoint_folder, removal_folder};
use crate::supervise::{AttemptFolder, AttemptState, FolderError, find, last_change};
use crate::untrusted::remove_tree;
use crate::watch::OutputMark;

/// What is left of a log.
const LOG_REMOVED: &str = "[carma: this log was removed: the logs of its user take more space than manager.logs.size_per_user]\n";

/// The share of work that an attempt reports as done: a number from 0 to 1, or with a percent sign.
pub(super) fn progress(folder: &AttemptFolder) -> Option<f64> {
    parse_progress(&folder.progress_note()?)
}

fn parse_progress(text: &str) -> Option<f64> {
    let text = text.trim();
    let value = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => text.parse().ok()?,
    };
    (0.0..=1.0).contains(&value).then_some(value)
}

/// The size and the last change of its logs.
pub(super) fn output(folder: &AttemptFolder) -> OutputMark {
    let mark = |data: fs::Metadata| Some((data.len(), data.modified().ok()?));
    [folder.output(), folder.errors()].map(|log| fs::symlink_metadata(log).ok().and_then(mark))
}

pub(super) fn checkpoint_times(folder: &AttemptFolder) -> Option<CheckpointTimes> {
    let launched = fs::symlink_metadata(folder.order_file()).and_then(|data| data.modified()).ok();
    let changed = match folder.checkpointed() {
        Ok(Some(found)) => found.changed,
        // The shim is about to scan it. One of 0.1 does not scan.
        _ if folder.order().is_ok_and(|order| order.is_some_and(|order| order.checkpoint_folder.is_some())) => return None,
        _ => last_change(&checkpoint_folder(folder)),
    };
    Some(CheckpointTimes { launched, changed })
}

/// The highest number of a job that has a folder.
pub(super) fn highest_job(attempts: &Path) -> Option<JobId> {
    let folders = fs::read_dir(attempts).into_iter().flatten().flatten();
    folders.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).max().map(JobId)
}

/// Hides the values of secrets in the orders of a finished job.
pub(super) fn hide_secrets(job: &Path) -> Result<(), FolderError> {
    for folder in attempt_folders(job) {
        hide_in_order(&folder)?;
        hide_in_order(&removal_folder(&folder))?;
    }
    Ok(())
}

fn hide_in_order(folder: &AttemptFolder) -> Result<(), FolderError> {
    match folder.order() {
        Ok(Some(mut order)) => {
            if order.hide_secrets() {
                folder.write_order(&order)?;
            }
            Ok(())
        }
        // Nothing can use it, and it may hold secrets.
        Err(FolderError::Damaged { path, .. }) => fs::remove_file(&path).map_err(|source| FolderError::Refused { path, source }),
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Replaces the logs of an attempt by a line about that.
pub(super) fn remove_logs(folder: &AttemptFolder) {
    for log in [folder.output(), folder.errors()].into_iter().filter(|log| fs::symlink_metadata(log).is_ok_and(|data| data.len() > 0)) {
        // Removed first: a shim of 0.1 made a file that its user owns.
        let removed = fs::remove_file(&log).and_then(|()| fs::write(&log, LOG_REMOVED));
        if let Err(error) = removed {
            tracing::warn!("cannot remove {}: {error}", log.display());
        }
    }
}

/// Removes the folders of unknown jobs. `program` is the one that removes files of users, with their rights.
pub(super) fn remove_unknown(attempts: &Path, program: &Path, is_known: &dyn Fn(JobId) -> bool) {
    let mut removed = Vec::new();
    for entry in fs::read_dir(attempts).into_iter().flatten().flatten() {
        let job = entry.file_name().to_str().and_then(|name| name.parse().ok()).map(JobId);
        let Some(job) = job.filter(|job| !is_known(*job)) else { continue };
        if nothing_runs_in(&entry.path()) {
            remove_job(&entry.path(), program);
            removed.push(job.0);
        } else {
            tracing::warn!(
                job = job.0,
                "{job} is not in the store, as after `carma restore`: its processes are killed, and its folder is removed"
            );
        }
    }
    if let Some(first) = removed.iter().min() {
        tracing::info!("removed the folders of {} jobs that are not in the store (from job {first} on)", removed.len());
    }
}

/// Removes the folder of a job. Users own some of the folders in it: processes with their rights remove what they have there. A container may have
/// left files there that are not the user's, so the rest is removed with the rights of this process, but on this file system only.
fn remove_job(job: &Path, program: &Path) {
    let containers = attempt_folders(job).map(|folder| folder.container_folder());
    for folder in containers.chain([job.join("checkpoint")]) {
        // Most are empty or not there.
        let (Err(_), Ok(data)) = (fs::remove_dir(&folder), fs::symlink_metadata(&folder)) else { continue };
        if data.is_dir() && data.uid() != rustix::process::geteuid().as_raw() {
            let user = Credentials::of_ids(data.uid(), data.gid());
            if let Err(error) = UserTask::Empty(folder.clone()).run::<()>(Ok(user), program) {
                tracing::debug!("cannot remove everything in {} as its user: {error}", folder.display());
            }
        }
    }
    if let Err(error) = remove_tree(job) {
        tracing::warn!("cannot remove {}: {error}", job.display());
    }
}

/// Whether no attempt of an unknown job runs. A running one, as after the store was restored from a backup, is killed.
fn nothing_runs_in(job: &Path) -> bool {
    let running = attempt_folders(job).filter_map(|folder| match find(&folder) {
        Ok(AttemptState::Running(supervised)) => Some(supervised),
        _ => None,
    });
    running.map(|supervised| drop(supervised.signal(Signal::Kill))).count() == 0
}

/// The folders of a job's attempts.
fn attempt_folders(job: &Path) -> impl Iterator<Item = AttemptFolder> {
    let entries = fs::read_dir(job).into_iter().flatten().flatten();
    // The folder for checkpoints is beside the attempts and belongs to the user: its content is not trusted.
    let attempts = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok()));
    attempts.map(|entry| AttemptFolder::at(entry.path()))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn progress_is_a_share_or_a_percentage() {
        assert_eq!(
            ["0.25\n", " 40 %", "1", "7", "-1", "half", "nan"].map(parse_progress),
            [Some(0.25), Some(0.4), Some(1.0), None, None, None, None]
        );
    }

    #[test]
    fn user_files_among_checkpoints_are_not_attempts() {
        let job = tempfile::tempdir().unwrap();
        let mut bystander = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = bystander.id();
        let supervised = |name: &str| {
            let folder = AttemptFolder::at(job.path().join(name));
            fs::create_dir(folder.path()).unwrap();
            let shim = serde_json::json!({ "pid": pid, "started": carma_gpu::process_started(pid) });
            fs::write(folder.path().join("shim.pid"), serde_json::json!({ "guard": null, "shim": shim, "cgroup": null }).to_string())
                .unwrap();
            let lock = fs::File::create(folder.lock_file()).unwrap();
            lock.lock().unwrap();
            lock
        };
        let _checkpoint = supervised("checkpoint");
        assert!(nothing_runs_in(job.path()));
        assert!(bystander.try_wait().unwrap().is_none(), "it gets no signal");
        let _attempt = supervised("1");
        assert!(!nothing_runs_in(job.path()), "an attempt runs");
        assert!(!bystander.wait().unwrap().success(), "and is killed");
    }

    #[test]
    fn only_folders_of_unknown_jobs_are_removed() {
        let attempts = tempfile::tempdir().unwrap();
        for name in ["3", "12", "notes"] {
            fs::create_dir(attempts.path().join(name)).unwrap();
        }
        assert_eq!(highest_job(attempts.path()), Some(JobId(12)));
        remove_unknown(attempts.path(), Path::new("none"), &|job| job == JobId(3));
        let left = ["3", "12", "notes"].map(|name| attempts.path().join(name).exists());
        assert_eq!(left, [true, false, true]);
        assert_eq!(highest_job(&attempts.path().join("none")), None);
    }
}
