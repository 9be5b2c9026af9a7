//! Restarts of the manager.

use std::thread;
use std::time::Duration;

use carma_testing::need;

use super::lab::{Lab, is_alive};

#[test]
fn attempts_continue_when_the_manager_is_killed_and_comes_back() {
    let mut lab = need!(Lab::new());
    lab.pool(&[]);
    let job = lab.submit(&[], "sleep 6; echo done");
    let process = lab.started(job, 1);
    let waiting = lab.submit(&["--gpus", "2", "--exclusive"], "echo second");
    lab.kill_manager();
    thread::sleep(Duration::from_secs(2));
    lab.up();
    lab.until("the agent is back", || lab.servers().iter().any(|server| server["connected"] == true));
    assert!(is_alive(process));
    assert_eq!((lab.finished(job), lab.finished(waiting)), (1, 1), "nothing started twice");
    assert!(lab.report().contains("without a manager"), "time limits count that time: {}", lab.report());
    assert_eq!(lab.text(&["logs", &job.to_string()]), "done\n");
}

#[test]
fn attempts_continue_when_the_manager_comes_back_on_another_host() {
    let mut lab = need!(Lab::new());
    lab.kill_manager();
    lab.up_on(Some("login1"));
    lab.pool(&[]);
    let job = lab.submit(&[], "sleep 8; echo done");
    let process = lab.started(job, 1);
    lab.kill_manager();
    lab.up_on(Some("login2"));
    lab.until("the agent is back", || lab.servers().iter().any(|server| server["connected"] == true));
    assert!(is_alive(process));
    assert_eq!(lab.finished(job), 1);
    assert_eq!(lab.text(&["logs", &job.to_string()]), "done\n");
}

#[test]
fn a_job_that_ends_while_the_manager_is_away_is_not_lost() {
    let mut lab = need!(Lab::new());
    lab.pool(&[]);
    let job = lab.submit(&[], "sleep 2; echo done; exit 0");
    let process = lab.started(job, 1);
    lab.kill_manager();
    lab.until("it ends", || !is_alive(process));
    lab.up();
    assert_eq!(lab.finished(job), 1);
    assert_eq!(lab.text(&["logs", &job.to_string()]), "done\n");
}

#[test]
fn after_the_lease_without_a_manager_agents_end_and_jobs_start_again() {
    let mut lab = need!(Lab::new());
    lab.pool(&[]);
    let job = lab.submit(&[], "test $CARMA_ATTEMPT = 1 && sleep 600; true");
    let process = lab.started(job, 1);
    lab.kill_manager();
    lab.until("the job ends with its lease", || !is_alive(process));
    lab.until("and so does the agent", || lab.agents().is_empty());
    lab.up();
    assert_eq!(lab.finished(job), 2);
}

#[test]
fn a_job_that_ended_before_its_agent_gave_up_does_not_run_again() {
    let mut lab = need!(Lab::new());
    lab.pool(&[]);
    let done = lab.submit(&[], "sleep 1; echo done");
    let failed = lab.submit(&[], "sleep 1; exit 7");
    let process = lab.started(done, 1);
    lab.started(failed, 1);
    lab.kill_manager();
    lab.until("it ends", || !is_alive(process));
    lab.until("and so does the agent", || lab.agents().is_empty());
    lab.up();
    assert_eq!(lab.finished(done), 1);
    assert_eq!(lab.text(&["logs", &done.to_string()]), "done\n");
    let shown = || lab.text(&["show", &failed.to_string()]);
    lab.until("the other one has failed", || shown().contains("exit code 7"));
    assert_eq!(lab.starts(failed).len(), 1, "{}", shown());
}
