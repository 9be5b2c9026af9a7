//! `carma backup` and `carma restore` beside a running manager.

use std::path::Path;
use std::process::{Command, Output};
use std::{fs, thread};

use carma_manager::api::{HistoryQuery, JobSummary};
use carma_manager::places::{Places, SOCKET_VARIABLE};
use carma_manager::supervise::{AttemptState, find};

use super::lab::{program, until};
use super::up::{ManagerProcess, one};

fn run(command: &str, file: &Path, state: &Path) -> Output {
    Command::new(program()).arg(command).arg(file).arg("--state").arg(state).output().unwrap()
}

fn done(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn history(up: &ManagerProcess) -> Vec<JobSummary> {
    up.client().history(&HistoryQuery::default()).unwrap()
}

#[test]
fn a_backup_of_a_busy_manager_is_restored_elsewhere_and_gives_the_same_answers() {
    let up = ManagerProcess::new(None, "");
    let ended = up.submit(up.shell_job("exit 3"));
    let outcome = up.wait_until_done(ended).outcome().cloned();
    let mut held = up.shell_job("true");
    held.schedule.hold = true;
    let held = up.submit(held);
    let file = up.folder().join("backup.db");
    // Jobs come in meanwhile.
    let (mut client, load) = (up.client(), one(up.shell_job("true")));
    let load = thread::spawn(move || (0..50).for_each(|_| drop(client.submit(&load).unwrap())));
    assert!(done(&run("backup", &file, &up.state())).contains("jobs, "));
    load.join().unwrap();
    let mut other = ManagerProcess::stopped(None, "");
    done(&run("restore", &file, &other.state()));
    other.start();
    let job = |up: &ManagerProcess, job: carma_core::JobId| up.client().job(&job.0.to_string()).unwrap();
    assert_eq!(job(&other, ended).outcome().cloned(), outcome);
    assert_eq!((job(&other, ended).request, job(&other, ended).attempts.len()), (job(&up, ended).request, 1));
    assert_eq!((job(&other, held).state, job(&other, held).request), (job(&up, held).state, job(&up, held).request));
}

#[test]
fn a_restore_needs_a_stopped_manager_and_finds_the_jobs_of_the_backup_by_their_folders() {
    let mut up = ManagerProcess::new(None, "");
    let go = up.folder().join("go");
    let script = format!("while [ ! -e {} ]; do sleep 0.05; done; exit 5", go.display());
    let job = up.submit(up.shell_job(&script));
    until(|| (up.client().status().unwrap().jobs.running == 1).then_some(()));
    let file = up.folder().join("backup.db");
    done(&run("backup", &file, &up.state()));
    let again = run("backup", &file, &up.state());
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("--force"));
    let later = up.submit(up.shell_job("true"));
    up.wait_until_done(later);
    let refused = run("restore", &file, &up.state());
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && message.contains("carma down"), "{message}");
    assert_eq!(history(&up).len(), 2, "nothing has changed");
    up.kill();
    let restored = done(&run("restore", &file, &up.state()));
    assert!(restored.contains("1 job, 1 of them unfinished") && restored.contains("carma.db.before-restore-"), "{restored}");
    up.start();
    fs::write(go, "").unwrap();
    let detail = up.wait_until_done(job);
    assert_eq!((detail.attempts.len(), detail.outcome()), (1, Some(&carma_core::Outcome::Failed { code: 5 })));
    assert_eq!(history(&up).len(), 1);
    assert!(up.submit(up.shell_job("true")) > later, "numbers are not given twice");
}

#[test]
fn a_job_that_runs_and_is_not_in_the_restored_store_is_killed_with_a_warning_about_it() {
    let mut up = ManagerProcess::new(None, "");
    let file = up.folder().join("backup.db");
    done(&run("backup", &file, &up.state()));
    let job = up.submit(up.shell_job("sleep 1000"));
    until(|| up.attempts().first().filter(|folder| matches!(find(folder), Ok(AttemptState::Running(_)))).map(drop));
    up.kill();
    done(&run("restore", &file, &up.state()));
    up.start();
    until(|| up.log_text().contains(&format!("{job} is not in the store")).then_some(()));
    until(|| matches!(find(&up.attempts()[0]), Ok(AttemptState::Ended(_))).then_some(()));
}

#[test]
fn a_backup_and_a_restore_are_of_the_manager_of_the_socket_that_commands_use() {
    let mut up = ManagerProcess::new(None, "");
    let file = up.folder().join("backup.db");
    let run = |command: &str, socket: &Path| Command::new(program()).arg(command).arg(&file).env(SOCKET_VARIABLE, socket).output().unwrap();
    let socket = up.places().socket;
    done(&run("backup", &socket));
    up.kill();
    let restored = done(&run("restore", &socket));
    assert!(restored.starts_with(&up.places().database().display().to_string()), "{restored}");
    let elsewhere = up.folder().join("elsewhere/carma.sock");
    let refused = run("restore", &elsewhere);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && message.contains("--state"), "{message}");
    // The system's manager, where there is none.
    if !Places::system().state.exists() {
        let refused = run("restore", &Places::system().socket);
        assert!(!refused.status.success() && !Places::system().state.exists(), "{refused:?}");
    }
}
