//! Duties: old jobs are forgotten with their logs, the clock is written down.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use carma_core::{Event, EventError, JobId, PastUse, Signal};

use super::run::Running;
use super::saved;
use crate::store::{Change, Keep, Retention};
use crate::supervise::{AttemptFolder, Standing, find};
use crate::untrusted::remove_tree;

/// How often old jobs are forgotten.
const PRUNE: Duration = Duration::from_secs(3600);

/// What attempts have taken so far, as it was when the manager last saved it.
pub(super) const METER: &str = "meter.json";

/// What users have had of the GPUs, as it was when the manager last saved it.
pub(super) const SHARES: &str = "shares.json";

impl Running {
    /// What users have had goes on after a restart; on a disk that refuses, a part of it is forgotten.
    pub(super) fn save_shares(&self) {
        let used: Vec<PastUse> = self.core.scheduler().shares(self.now()).iter().map(|report| report.past).collect();
        // Without fair share there is nothing new, and what was saved is left as it is.
        if !used.is_empty() {
            let _ = saved::write(&self.setup.places.state.join(SHARES), &used);
        }
    }

    /// What attempts have taken so far goes on after a restart.
    pub(super) fn save_meter(&self) {
        // On a disk that refuses, a part of their energy is forgotten.
        let _ = saved::write(&self.setup.places.state.join(METER), &self.meter);
    }

    pub(super) fn see_to_duties(&mut self) {
        self.save_meter();
        self.save_shares();
        self.batch.changes.push(Change::ClockSeen(self.now()));
        for job in std::mem::take(&mut self.lingering) {
            self.forget(job);
        }
        self.look_for_devices();
        if Instant::now() >= self.next_prune {
            self.next_prune = Instant::now() + PRUNE;
            self.prune();
        }
    }

    /// A job that is over leaves the core, unless others wait for it.
    pub(super) fn forget(&mut self, job: JobId) {
        match self.core.handle(Event::JobForgotten { job }, self.clock.now()) {
            Ok(actions) => self.act_on(actions),
            Err(EventError::StillNeeded(_)) => {
                self.lingering.insert(job);
            }
            Err(_) => {}
        }
        self.unknow(job);
    }

    /// Forgets old jobs with their logs, from a thread of its own: it may take a while.
    fn prune(&self) {
        let keep = &self.setup.configuration.manager.keep;
        let days = |days: u64, most| Keep { age: Duration::from_secs(days * 86_400), most };
        let retention = Retention {
            jobs: days(keep.days, keep.jobs_per_user),
            events: days(keep.days, Retention::default().events.most),
            samples: days(keep.sample_days, u64::MAX),
        };
        let (store, folder, now) = (std::sync::Arc::clone(&self.store), self.setup.places.state.join("attempts"), self.clock.wall());
        let run = move || {
            if let Err(error) = store.prune(&retention, now) {
                eprintln!("carma: old jobs could not be forgotten: {error}");
            }
            let Ok(reader) = store.reader() else { return };
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let job = entry.file_name().to_str().and_then(|name| name.parse().ok()).map(JobId);
                // A job that nobody knows has no logs to show. One that is just being accepted has none yet.
                if job.is_some_and(|job| matches!(reader.request(job), Ok(None))) && nothing_runs_in(&entry.path()) {
                    let _ = remove_tree(&entry.path());
                }
            }
        };
        let _ = std::thread::Builder::new().name("prune".to_owned()).spawn(run);
    }
}

/// Whether nothing runs of a job that nobody knows. An attempt that does, as after a store was put back from a backup, is told to end.
fn nothing_runs_in(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    // The folder for checkpoints lies beside the attempts and is the user's: nothing in it is believed.
    let attempts = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok()));
    let running = attempts.filter_map(|entry| match find(&AttemptFolder::at(entry.path())) {
        Ok(Standing::Running(supervised)) => Some(supervised),
        _ => None,
    });
    running.map(|supervised| drop(supervised.signal(Signal::Kill))).count() == 0
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_a_user_has_put_among_checkpoints_is_not_taken_for_an_attempt() {
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
        assert!(bystander.try_wait().unwrap().is_none(), "it is told nothing");
        let _attempt = supervised("1");
        assert!(!nothing_runs_in(job.path()), "an attempt that runs is one");
        assert!(!bystander.wait().unwrap().success(), "and is told to end");
    }
}
