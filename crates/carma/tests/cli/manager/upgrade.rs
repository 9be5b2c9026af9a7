//! The last release is replaced by this version while its jobs run, wait, are held and are over. `make upgrade` builds that release.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use carma_core::{Condition, JobId, MiB, Outcome};
use carma_manager::api::{HistoryQuery, JobAction, Submission};
use carma_manager::client::Client;
use carma_manager::phase::Phase;
use carma_manager::request::{After, JobRequest};
use rustix::process::Signal;

use super::crash::{all_jobs, check, nothing_is_left};
use super::crash_load::Load;
use super::lab::{program, until};
use super::up::{ManagerProcess, one};

/// The program of the last release.
fn old() -> PathBuf {
    let named = std::env::var_os("CARMA_OLD").map(PathBuf::from);
    named.unwrap_or_else(|| panic!("CARMA_OLD does not name the program of the last release (make upgrade)"))
}

/// Puts a program where the manager's was, as a package does: the running one keeps its file.
fn install(program: &Path, place: &Path) {
    let new = place.with_extension("new");
    fs::copy(program, &new).unwrap();
    fs::rename(new, place).unwrap();
}

/// A manager of the last release with jobs in every state.
struct Upgrade {
    up: ManagerProcess,
    load: Load,
    installed: PathBuf,
    gate: PathBuf,
    jobs: BTreeMap<&'static str, JobId>,
}

impl Upgrade {
    fn from_old() -> Self {
        let mut up = ManagerProcess::stopped(Some(("2xA100-40GB", 1.0)), "");
        let installed = up.folder().join("bin/carma");
        fs::create_dir(installed.parent().unwrap()).unwrap();
        install(&old(), &installed);
        up.run_as(&installed);
        up.start();
        let mut upgrade = Self { load: Load::new(&up), gate: up.folder().join("gate"), up, installed, jobs: BTreeMap::new() };
        upgrade.submit_all();
        upgrade
    }

    /// A job that ends when the test says so.
    fn waiting(&self, name: &str, code: i32) -> JobRequest {
        self.load.recorded(name, &format!("sh -c 'until test -e {}; do sleep 0.05; done; exit {code}'", self.gate.display()))
    }

    fn submit(&mut self, name: &'static str, job: JobRequest) -> JobId {
        let job = self.up.submit(job);
        self.jobs.insert(name, job);
        job
    }

    fn submit_all(&mut self) {
        self.submit("succeeded", self.load.recorded("succeeded", "true"));
        self.submit("failed", self.load.recorded("failed", "sh -c 'exit 7'"));
        let running = self.submit("running", self.waiting("running", 0));
        let mut on_gpu = self.waiting("on-gpu", 5);
        (on_gpu.resources.gpus, on_gpu.resources.memory) = (1, Some(MiB(4096)));
        self.submit("on-gpu", on_gpu);
        self.has_started("on-gpu");
        let mut exclusive = self.load.recorded("exclusive", "true");
        (exclusive.resources.gpus, exclusive.resources.exclusive) = (2, true);
        self.submit("exclusive", exclusive);
        let mut held = self.load.recorded("held", "true");
        held.schedule.hold = true;
        self.submit("held", held);
        let mut after = self.load.recorded("after", "true");
        after.schedule.after.push(After { job: running.0.to_string(), condition: Condition::Ok });
        self.submit("after", after);
        let mut later = self.load.recorded("later", "true");
        later.schedule.begin = Some(jiff::Timestamp::now().as_second().cast_unsigned() + 86_400);
        self.submit("later", later);
        let mut array = self.waiting("array", 0);
        array.schedule.at_most = Some(1);
        self.up.client().submit(&Submission { array: Some(vec![1, 2, 3]), ..one(array) }).unwrap();
        for name in ["running", "array.1"] {
            self.has_started(name);
        }
        until(|| (self.load.record("succeeded").ends.len() + self.load.record("failed").ends.len() == 2).then_some(()));
    }

    fn has_started(&self, name: &str) {
        until(|| (!self.load.record(name).starts.is_empty()).then_some(()));
    }

    /// Every job is what it was under the last release.
    fn assert_unchanged(&self) {
        let mut client = self.up.client();
        let mut phase = |name: &str| client.job(&self.jobs[name].0.to_string()).unwrap().phase;
        for name in ["succeeded", "failed"] {
            until(|| (phase(name) == Phase::Done).then_some(()));
        }
        let phases = ["running", "new-shim", "exclusive", "held", "after", "later"].map(|name| (name, phase(name)));
        let expected = [Phase::Running, Phase::Running, Phase::Queued, Phase::Held, Phase::Queued, Phase::Queued];
        assert_eq!(phases.map(|(_, phase)| phase), expected, "{phases:?}");
        let of_array = ["array.1", "array.2", "array.3"].map(|name| self.load.record(name).starts.len());
        assert_eq!(of_array, [1, 0, 0]);
    }

    /// Lets all jobs end, and compares their outcomes with their own records.
    fn finish(self) {
        fs::write(&self.gate, "").unwrap();
        let mut client = self.up.client();
        client.act(&self.jobs["held"].0.to_string(), &JobAction::Release).unwrap();
        client.act(&self.jobs["later"].0.to_string(), &JobAction::Cancel).unwrap();
        let over = until(|| Some(all_jobs(&mut client)).filter(|jobs| jobs.iter().all(|job| job.outcome().is_some())));
        nothing_is_left(&self.up);
        check(&self.load, &over);
        let expected = |name: &str| match name {
            "failed" => Outcome::Failed { code: 7 },
            "on-gpu" => Outcome::Failed { code: 5 },
            "later" => Outcome::Cancelled,
            _ => Outcome::Succeeded,
        };
        for job in &over {
            let name = job.request.name.as_deref().unwrap();
            assert_eq!(job.outcome(), Some(&expected(name)), "{name}: {:?}", job.events);
            assert_eq!(job.attempts.len(), usize::from(name != "later"), "{name} ran once: {:?}", job.attempts);
        }
        assert_eq!(over.len(), self.jobs.len() + 3, "with the array");
        assert_eq!(over.iter().map(|job| job.id).collect::<BTreeSet<_>>().len(), over.len());
    }
}

/// Replaces the last release, which ends in this way.
fn upgrade(end: impl FnOnce(&mut ManagerProcess)) -> Upgrade {
    let mut upgrade = Upgrade::from_old();
    install(program(), &upgrade.installed);
    // The old manager starts the new shim from now on.
    upgrade.submit("new-shim", upgrade.waiting("new-shim", 0));
    upgrade.has_started("new-shim");
    end(&mut upgrade.up);
    upgrade.up.start();
    upgrade.assert_unchanged();
    upgrade
}

#[test]
#[ignore = "needs the last release: make upgrade"]
fn jobs_of_the_last_release_continue_after_an_upgrade() {
    let terminated = upgrade(|up| {
        up.signal(Signal::TERM);
        assert!(up.ended(), "{}", up.log_text());
    });
    terminated.finish();
}

#[test]
#[ignore = "needs the last release: make upgrade"]
fn jobs_of_the_last_release_continue_after_a_crash_and_an_upgrade() {
    upgrade(ManagerProcess::kill).finish();
}

/// The files of a folder with their contents, without sockets, locks and what SQLite makes to read: its index, and a log that is empty.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(contents(&path));
        } else if kind.is_file() && !["carma.db.lock", "carma.db-shm"].iter().any(|name| path.ends_with(name)) {
            let content = fs::read(&path).unwrap();
            if !(content.is_empty() && path.ends_with("carma.db-wal")) {
                found.insert(path, content);
            }
        }
    }
    found
}

#[test]
#[ignore = "needs the last release: make upgrade"]
fn the_last_release_refuses_the_new_store_and_changes_nothing() {
    let mut upgrade = upgrade(ManagerProcess::kill);
    let up = &mut upgrade.up;
    up.signal(Signal::TERM);
    assert!(up.ended(), "{}", up.log_text());
    let before = contents(&up.state());
    let backup = before.keys().find(|path| path.to_str().unwrap().contains("carma.db.v")).unwrap().clone();
    up.run_as(&old());
    let refused = up.command().output().unwrap();
    assert!(!refused.status.success());
    assert!(up.log_text().contains("this version of carma knows only up to"), "{}", up.log_text());
    let after = contents(&up.state());
    let changed: Vec<_> = before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path)).collect();
    assert!(changed.is_empty(), "{changed:?}");

    // The way back is the backup.
    let mut restored = ManagerProcess::stopped(None, "");
    fs::create_dir(restored.state()).unwrap();
    fs::copy(backup, restored.state().join("carma.db")).unwrap();
    restored.run_as(&old());
    let mut observing = restored.command().arg("--observe").spawn().unwrap();
    let names = until(|| Client::at(restored.address()).ok()?.history(&HistoryQuery::default()).ok()).len();
    observing.kill().unwrap();
    observing.wait().unwrap();
    assert_eq!(names, upgrade.jobs.len() + 3, "the old store has all jobs");

    upgrade.up.run_as(&upgrade.installed);
    upgrade.up.start();
    upgrade.assert_unchanged();
    upgrade.finish();
}
