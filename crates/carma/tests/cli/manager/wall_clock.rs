//! The wall clock is set by a day, forward and back, while a manager works: only what users tied to the wall clock follows it.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use carma_core::{Outcome, Seconds};
use carma_manager::phase::Phase;
use carma_testing::{Missing, need};

use super::lab::until;
use super::up::ManagerProcess;

/// The library that gives a process another wall clock.
fn library() -> Result<PathBuf, Missing> {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let found = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1")).find(|library| library.exists());
    found.ok_or_else(|| Missing::Program("faketime".to_owned()))
}

/// A manager whose wall clock the test sets.
struct Clocked {
    up: ManagerProcess,
    offset: PathBuf,
}

impl Clocked {
    fn new(library: PathBuf) -> Self {
        let mut up = ManagerProcess::stopped(None, "[manager]\nwatchdog_seconds = 10\n");
        let offset = up.folder().join("offset");
        up.set("LD_PRELOAD", library);
        up.set("FAKETIME_TIMESTAMP_FILE", &offset);
        up.set("FAKETIME_NO_CACHE", "1");
        up.set("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        let mut clocked = Self { up, offset };
        clocked.set("+0");
        clocked.up.start();
        clocked
    }

    /// Sets the wall clock: so far from the true time.
    fn set(&self, offset: &str) {
        // In one step: it may be read at any moment.
        let new = self.offset.with_extension("new");
        fs::write(&new, format!("{offset}\n")).unwrap();
        fs::rename(new, &self.offset).unwrap();
    }

    fn phase(&self, job: carma_core::JobId) -> Phase {
        self.up.client().job(&job.0.to_string()).unwrap().phase
    }
}

#[test]
fn a_wall_clock_that_jumps_ends_nothing_early_and_moves_only_begin_times() {
    const LIMIT: Duration = Duration::from_secs(8);
    let mut clocked = Clocked::new(need!(library()));
    let up = &clocked.up;
    let gate = up.folder().join("gate");
    let mut lasting = up.shell_job(&format!("until test -e {}; do sleep 0.05; done", gate.display()));
    lasting.resources.time_limit = Some(Seconds::from_secs(3600));
    let lasting = up.submit(lasting);
    let mut limited = up.shell_job("sleep 600");
    limited.resources.time_limit = Some(Seconds::from_secs(LIMIT.as_secs()));
    let launched = Instant::now();
    let limited = up.submit(limited);
    let mut later = up.shell_job("true");
    later.schedule.begin = Some(jiff::Timestamp::now().as_second().cast_unsigned() + 3600);
    let later = up.submit(later);
    until(|| (clocked.phase(lasting) == Phase::Running && clocked.phase(limited) == Phase::Running).then_some(()));

    clocked.set("-1d");
    thread::sleep(Duration::from_secs(2));
    assert_eq!((clocked.phase(limited), clocked.phase(later)), (Phase::Running, Phase::Queued));
    clocked.set("+1d");
    let begun = clocked.up.wait_until_done(later);
    assert_eq!(begun.outcome(), Some(&Outcome::Succeeded), "by the wall clock its time has come");
    if launched.elapsed() < LIMIT {
        assert_eq!(clocked.phase(limited), Phase::Running, "a day on the wall clock is no time that it ran");
    }
    let over = clocked.up.wait_until_done(limited);
    assert_eq!(over.outcome(), Some(&Outcome::TimeLimit));
    assert!(launched.elapsed() >= LIMIT);

    // A restart under each clock.
    for offset in ["-1d", "+1d", "+0"] {
        clocked.up.kill();
        clocked.set(offset);
        clocked.up.start();
        assert_eq!(clocked.phase(lasting), Phase::Running, "{offset}: {}", clocked.up.log_text());
    }
    fs::write(gate, "").unwrap();
    let over = clocked.up.wait_until_done(lasting);
    assert_eq!((over.outcome(), over.attempts.len()), (Some(&Outcome::Succeeded), 1));
    assert!(clocked.up.log_text().contains("the wall clock was set by"), "{}", clocked.up.log_text());
}

#[test]
fn a_job_begins_at_its_time_though_no_manager_ran_meanwhile() {
    let mut clocked = Clocked::new(need!(library()));
    let mut later = clocked.up.shell_job("true");
    later.schedule.begin = Some(jiff::Timestamp::now().as_second().cast_unsigned() + 3600);
    let later = clocked.up.submit(later);
    clocked.up.kill();
    // Two hours pass without a manager.
    clocked.set("+2h");
    clocked.up.start();
    assert_eq!(clocked.up.wait_until_done(later).outcome(), Some(&Outcome::Succeeded));
}
