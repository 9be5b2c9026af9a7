//! Managers and shims are killed at random moments: every acknowledged job ends once, with a true outcome.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use carma_core::{JobId, Outcome, Verdict};
use carma_gpu::process_started;
use carma_manager::api::{HistoryQuery, JobAction, JobDetail};
use carma_manager::client::Client;
use carma_manager::supervise::{AttemptFolder, AttemptState, find};
use fastrand::Rng;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::crash_load::{Asked, Kind, Load, Record};
use super::lab::until;
use super::up::{ManagerProcess, one};

/// Concurrent submitters.
const PEOPLE: u64 = 3;

/// Number of kills: a few in every test run; an environment variable sets more.
fn crashes() -> u64 {
    std::env::var("CARMA_CRASHES").ok().and_then(|number| number.parse().ok()).unwrap_or(25)
}

pub(super) fn seed() -> u64 {
    std::env::var("CARMA_SEED").ok().and_then(|number| number.parse().ok()).unwrap_or(7)
}

/// Four emulated GPUs whose minutes pass in seconds.
pub(super) fn manager() -> ManagerProcess {
    ManagerProcess::new(Some(("4xA100-40GB", 60.0)), "")
}

/// Puts load on a manager until `strike` has killed this many processes, and then checks all records.
pub(super) fn under_load(
    up: &mut ManagerProcess,
    times: u64,
    mut strike: impl FnMut(&mut ManagerProcess, &mut Rng) -> u64,
) -> Vec<JobDetail> {
    let load = Load::new(up);
    let gate = up.folder().join("gate");
    let body = format!("while ! test -e {}; do sleep 0.05; done", gate.display());
    let witness = up.client().submit(&one(load.recorded("witness", &body))).unwrap().jobs[0];
    let [(1, pid)] = until(|| Some(load.record("witness").starts).filter(|starts| !starts.is_empty()))[..] else { panic!() };
    let mut random = Rng::with_seed(seed());
    let (turn, turns) = channel();
    let turns = Mutex::new(turns);
    thread::scope(|scope| {
        for person in 0..PEOPLE {
            let (load, turns) = (&load, &turns);
            scope.spawn(move || load.submit(seed() * PEOPLE + person, turns));
        }
        let mut killed = 0;
        while killed < times {
            (0..2).for_each(|_| turn.send(()).unwrap());
            killed += strike(up, &mut random);
        }
        drop(turn);
        up.ready();
    });
    assert!(process_started(pid).is_some(), "the witness goes on, whoever is killed");
    fs::write(gate, "").unwrap();
    let witnessed = up.wait_until_done(witness);
    assert_eq!((witnessed.outcome(), witnessed.attempts.len()), (Some(&Outcome::Succeeded), 1));
    assert_eq!(load.record("witness").starts, [(1, pid)], "the same process all the time");
    let mut client = up.client();
    until(|| client.status().ok().filter(|status| status.jobs.running + status.jobs.waiting + status.jobs.held == 0));
    nothing_is_left(up);
    // Counts change a moment before they are stored.
    let details = until(|| Some(all_jobs(&mut client)).filter(|jobs| jobs.iter().all(|job| job.outcome().is_some())));
    check(&load, &details);
    assert_all_known(&load.into_asked(), &details);
    details
}

pub(crate) fn all_jobs(client: &mut Client) -> Vec<JobDetail> {
    let mut jobs: Vec<JobId> = Vec::new();
    loop {
        let query = HistoryQuery { limit: Some(1_000), before: jobs.last().copied(), ..HistoryQuery::default() };
        let page = client.history(&query).unwrap();
        if page.is_empty() {
            break;
        }
        jobs.extend(page.into_iter().map(|job| job.id));
    }
    jobs.into_iter().map(|job| client.job(&job.0.to_string()).unwrap()).collect()
}

/// Each job ended once, and its state agrees with its own record.
pub(super) fn check(load: &Load, details: &[JobDetail]) {
    let outcomes: BTreeMap<JobId, &Outcome> = details.iter().map(|detail| (detail.id, detail.outcome().unwrap())).collect();
    for detail in details {
        let request = &detail.request;
        let name = request.name.clone().unwrap();
        let record = load.record(&request.array.as_ref().map_or_else(|| name.clone(), |element| format!("{name}.{}", element.index)));
        let outcome = outcomes[&detail.id];
        let about = || format!("{name} ({}): {outcome}\n{record:?}\n{:?}\n{:?}", detail.id, detail.attempts, detail.events);
        assert!(!record.twice, "ran twice at once: {}", about());
        assert!(record.bears_out(outcome), "{}", about());
        let finished = detail.events.iter().filter(|stored| stored.event.event.kind() == "finished").count();
        assert_eq!(finished, 1, "ended once: {}", about());
        check_attempts(detail, &record, &about);
        if let Outcome::DependencyFailed { on, .. } = outcome {
            assert!(!outcomes[on].succeeded(), "{}", about());
        }
    }
}

fn check_attempts(detail: &JobDetail, record: &Record, about: &dyn Fn() -> String) {
    let began: BTreeSet<u32> = record.starts.iter().map(|(attempt, _)| *attempt).collect();
    assert_eq!(began.len(), record.starts.len(), "an attempt ran twice: {}", about());
    let numbers: BTreeSet<u32> = detail.attempts.iter().map(|attempt| attempt.attempt.number).collect();
    assert_eq!(numbers, (1..=numbers.len() as u32).collect(), "{}", about());
    assert!(began.is_subset(&numbers), "{}", about());
    for attempt in &detail.attempts {
        let number = attempt.attempt.number;
        let end = record.ends.iter().find(|(ended, _)| *ended == number).map(|(_, code)| *code);
        let is_true = match attempt.verdict.as_ref().unwrap() {
            Verdict::Succeeded => end == Some(0),
            // Ended by a signal, it did not record an end.
            Verdict::Failed { code } => end == Some(*code) || (end.is_none() && *code > 128),
            Verdict::OutOfMemory => end == Some(1),
            Verdict::SupervisorLost => true,
            _ => false,
        };
        assert!(is_true, "{number}: {}", about());
    }
}

/// Acknowledged jobs exist. Others may exist; if not, they have not run.
fn assert_all_known(asked: &[Asked], details: &[JobDetail]) {
    let known: BTreeMap<JobId, &JobDetail> = details.iter().map(|detail| (detail.id, detail)).collect();
    let mut acknowledged = BTreeSet::new();
    for Asked { name, kind, acknowledged: jobs, cancelled } in asked {
        for job in jobs.iter().flatten() {
            assert!(acknowledged.insert(*job), "{job} was given away twice");
            assert_eq!(known.get(job).unwrap_or_else(|| panic!("{job} is lost")).request.name.as_ref(), Some(name));
        }
        let of_name = || details.iter().filter(|detail| detail.request.name.as_ref() == Some(name));
        assert!([0, if *kind == Kind::Array { 3 } else { 1 }].contains(&of_name().count()), "all or none of {name}");
        if cancelled.is_none() {
            assert!(of_name().all(|detail| detail.outcome() != Some(&Outcome::Cancelled)), "{name} was never cancelled");
        }
        if let (Some(true), Some([job, ..])) = (cancelled, jobs.as_deref()) {
            // It may have ended before.
            assert!(matches!(known[job].outcome(), Some(Outcome::Cancelled | Outcome::Succeeded)), "{name}: {:?}", known[job].outcome());
        }
    }
}

/// No process runs or holds a folder.
pub(super) fn nothing_is_left(up: &ManagerProcess) {
    for folder in up.attempts() {
        let standing = until(|| Some(find(&folder).unwrap()).filter(|standing| !matches!(standing, AttemptState::Running(_))));
        assert!(matches!(standing, AttemptState::Ended(_) | AttemptState::Lost), "{standing:?}");
        let lock = fs::File::open(folder.path().join("lock")).unwrap();
        until(|| lock.try_lock().ok());
    }
    // The manager runs programs that read GPUs; those of killed managers end by themselves.
    let place = up.folder().to_str().unwrap();
    let parent = |pid: u32| fs::read_to_string(format!("/proc/{pid}/stat")).ok()?.rsplit(')').next()?.split(' ').nth(2)?.parse().ok();
    let stays = |pid: u32| pid == up.pid() || parent(pid) == Some(up.pid());
    let words = |pid: u32| fs::read(format!("/proc/{pid}/cmdline")).map(|words| String::from_utf8_lossy(&words).into_owned());
    let left = || {
        let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let theirs = pids.filter_map(|pid| words(pid).ok().filter(|words| words.contains(place) && !stays(pid)));
        theirs.collect::<Vec<_>>()
    };
    let gone = std::panic::catch_unwind(|| until(|| left().is_empty().then_some(())));
    assert!(gone.is_ok(), "{:?}", left());
}

#[test]
fn a_manager_killed_at_any_moment_loses_nothing_and_runs_nothing_twice() {
    let mut up = manager();
    let details = under_load(&mut up, crashes(), |up, random| {
        // Sometimes long after it is ready, sometimes while it is just beginning.
        let early = random.bool();
        thread::sleep(Duration::from_millis(random.u64(0..250)));
        up.kill();
        up.spawn();
        if !early {
            up.ready();
        }
        1
    });
    let outcomes: BTreeSet<String> = details.iter().map(|detail| detail.outcome().unwrap().to_string()).collect();
    eprintln!("{} kills, {} jobs: {outcomes:?}", crashes(), details.len());
    let lost = details.iter().flat_map(|detail| &detail.attempts).any(|attempt| attempt.verdict == Some(Verdict::SupervisorLost));
    assert!(!lost, "jobs outlive their manager");
    assert!(details.len() as u64 > crashes());
}

#[test]
fn shims_killed_at_any_moment_are_noticed_and_leave_nothing() {
    let mut up = manager();
    let mut killed = 0;
    let details = under_load(&mut up, crashes(), |up, random| {
        thread::sleep(Duration::from_millis(random.u64(0..100)));
        if random.u32(0..5) == 0 {
            up.kill();
            up.start();
        }
        let strike = kill_a_supervisor(up, random);
        killed += strike;
        strike
    });
    let attempts = details.iter().flat_map(|detail| &detail.attempts);
    let lost = attempts.filter(|attempt| attempt.verdict == Some(Verdict::SupervisorLost)).count();
    eprintln!("{killed} supervisors killed, {} jobs, {lost} attempts lost", details.len());
    assert!(lost > 0 && killed >= crashes());
}

/// Kills the shim, the guard or both of a random attempt, but never of the witness. Returns the number of killed processes.
pub(super) fn kill_a_supervisor(up: &ManagerProcess, random: &mut Rng) -> u64 {
    let witness = up.state().join("attempts/1");
    let mut others = up.attempts();
    others.retain(|folder| !folder.path().starts_with(&witness));
    let alive = |[guard, shim]: &[Identity; 2]| is_there(*guard) && is_there(*shim);
    let victims: Vec<[Identity; 2]> = others.iter().filter_map(supervisors).filter(alive).collect();
    // Processes that have ended meanwhile do not count.
    match (random.u32(0..4), random.choice(victims)) {
        (_, None) => 0,
        (0, Some([guard, _])) => kill(guard),
        (1, Some([guard, shim])) => kill(guard) + kill(shim),
        (_, Some([_, shim])) => kill(shim),
    }
}

/// A process, identified by its pid and start time.
type Identity = (u32, u64);

/// Guard and shim of an attempt.
pub(super) fn supervisors(folder: &AttemptFolder) -> Option<[Identity; 2]> {
    let text = fs::read(folder.path().join("shim.pid")).ok()?;
    let both: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let identity = |who: &str| Some((both[who]["pid"].as_u64()?.try_into().ok()?, both[who]["started"].as_u64()?));
    Some([identity("guard")?, identity("shim")?])
}

fn is_there((pid, started): Identity) -> bool {
    process_started(pid) == Some(started)
}

/// Kills this process, and never another one with a reused pid.
fn kill(process: Identity) -> u64 {
    let handle = pidfd_open(Pid::from_raw(process.0.cast_signed()).unwrap(), PidfdFlags::empty());
    let Some(handle) = handle.ok().filter(|_| is_there(process)) else { return 0 };
    u64::from(pidfd_send_signal(handle, Signal::KILL).is_ok())
}

#[test]
fn a_manager_that_is_told_to_stop_leaves_its_jobs_running() {
    let mut up = ManagerProcess::new(None, "");
    let gate = up.folder().join("gate");
    let job = up.submit(up.shell_job(&format!("while ! test -e {}; do sleep 0.02; done", gate.display())));
    until(|| up.attempts().first().and_then(supervisors));
    for signal in [Signal::TERM, Signal::INT] {
        up.signal(signal);
        assert!(up.ended(), "{}", up.log_text());
        assert!(!up.places().socket.exists());
        up.start();
    }
    let down = std::process::Command::new(super::lab::program()).arg("down").env("CARMA_SOCKET", up.places().socket).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&down.stdout), "the manager is down\n");
    assert!(up.ended());
    up.start();
    fs::write(gate, "").unwrap();
    let over = up.wait_until_done(job);
    assert_eq!((over.outcome(), over.attempts.len()), (Some(&Outcome::Succeeded), 1));
}

#[test]
fn a_job_is_signalled_once_across_manager_restarts() {
    let mut up = ManagerProcess::new(None, "");
    let (told, gate) = (up.folder().join("told"), up.folder().join("gate"));
    let [told_file, gate_file] = [&told, &gate].map(|file| file.display());
    let script = format!("trap 'echo told >> {told_file}' TERM; echo ready; until test -e {gate_file}; do sleep 0.02; done; exit 3");
    let job = up.submit(up.shell_job(&script));
    until(|| fs::read_to_string(up.attempts().first()?.output()).ok().filter(|printed| printed == "ready\n"));
    assert_eq!(up.client().act(&job.0.to_string(), &JobAction::Cancel).unwrap().done, [job]);
    until(|| fs::exists(&told).unwrap().then_some(()));
    for _ in 0..2 {
        up.kill();
        up.start();
    }
    fs::write(gate, "").unwrap();
    assert_eq!(up.wait_until_done(job).outcome(), Some(&Outcome::Cancelled));
    assert_eq!(fs::read_to_string(told).unwrap(), "told\n");
}
