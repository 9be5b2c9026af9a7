//! Dry runs in pilots: a login node may lack the environment of a job.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use carma_testing::need;

use super::lab::{Lab, is_alive, signal};

/// A stand-in for Python. As a dry run it notes its process and the folder of its supervisor, and does this; as a job it succeeds.
fn python(lab: &Lab, dry_run: &str) -> PathBuf {
    let path = lab.cluster.folder().join("python3");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = -m ] || exit 0\n\
         shim=$(cut -d ' ' -f 4 /proc/$PPID/stat)\n\
         echo \"$$ $(tr '\\0' ' ' < /proc/$shim/cmdline)\" >> {notes}\n\
         times=$(wc -l < {notes})\n{dry_run}\n",
        notes = notes(lab).display()
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

fn notes(lab: &Lab) -> PathBuf {
    lab.cluster.folder().join("dry-runs")
}

/// The process of each dry run, and the command of its supervisor.
fn dry_runs(lab: &Lab) -> Vec<(u32, String)> {
    let notes = fs::read_to_string(notes(lab)).unwrap_or_default();
    let note = |line: &str| line.split_once(' ').map(|(pid, shim)| (pid.parse().unwrap(), shim.to_owned()));
    notes.lines().filter_map(note).collect()
}

fn submit(lab: &Lab, python: &str) -> String {
    // Variables of a login node may name folders that the nodes lack.
    let environment = ["--env", "ALL", "--env", "TMPDIR=/nonexistent"];
    let command = ["--estimate", "dry-run", "--workdir", "/tmp", "--", python, "train.py"];
    let printed = lab.text(&[&["submit"], &environment[..], &command].concat());
    printed.trim().trim_start_matches("job ").to_owned()
}

fn succeeds(lab: &Lab, job: &str) -> String {
    let waited = lab.carma(&["wait", "--timeout", "90s", job]);
    assert!(waited.status.success(), "{}{}", String::from_utf8_lossy(&waited.stderr), lab.report());
    lab.text(&["show", job])
}

#[test]
fn a_dry_run_is_done_in_a_pilot_which_is_requested_for_it() {
    let lab = need!(Lab::new());
    let python = python(&lab, "sleep 1; exit 1");
    lab.pool(&[]);
    let job = submit(&lab, python.to_str().unwrap());
    lab.until("a pilot is requested for the dry run", || !lab.pilots().is_empty());
    let shown = succeeds(&lab, &job);
    assert!(shown.contains("the dry run of the script failed"), "{shown}");
    let [(process, shim)] = &dry_runs(&lab)[..] else { panic!("{:?}", dry_runs(&lab)) };
    let pilot = lab.servers()[0]["pilot"].as_str().unwrap().to_owned();
    assert!(shim.contains(" shim ") && shim.contains(&pilot) && shim.contains("/estimates/"), "{shim}");
    assert!(!is_alive(*process));
    assert_eq!(lab.pilots().len(), 1, "the job ran in the same pilot");
}

#[test]
fn a_dry_run_of_a_killed_agent_ends_and_is_done_in_another_pilot() {
    let lab = need!(Lab::new());
    let python = python(&lab, "[ $times = 1 ] && sleep 600; exit 1");
    lab.pool(&[]);
    let job = submit(&lab, python.to_str().unwrap());
    lab.until("the dry run begins", || dry_runs(&lab).len() == 1);
    signal(lab.agents()[0], "KILL");
    let (first, _) = dry_runs(&lab)[0];
    lab.until("the dry run ends with its agent", || !is_alive(first));
    assert!(succeeds(&lab, &job).contains("the dry run of the script failed"));
    assert_eq!(dry_runs(&lab).len(), 2);
}

#[test]
fn a_dry_run_begins_again_with_another_manager_and_ends_with_its_job() {
    let mut lab = need!(Lab::new());
    let python = python(&lab, "sleep 600");
    lab.pool(&[]);
    let job = submit(&lab, python.to_str().unwrap());
    lab.until("the dry run begins", || dry_runs(&lab).len() == 1);
    lab.kill_manager();
    lab.up();
    lab.until("it begins again", || dry_runs(&lab).len() == 2);
    let (first, second) = (dry_runs(&lab)[0].0, dry_runs(&lab)[1].0);
    lab.until("the one of the first manager is stopped", || !is_alive(first));
    assert!(is_alive(second));
    lab.text(&["cancel", &job]);
    lab.until("a cancelled job needs no dry run", || !is_alive(second));
}

#[test]
fn a_job_goes_on_when_no_agent_comes_and_the_manager_may_do_dry_runs_itself() {
    let mut lab = need!(Lab::new());
    let python = python(&lab, "exit 1");
    lab.pool(&[]);
    lab.text(&["pool", "pause", "gpu"]);
    let restart = |lab: &mut Lab, settings: &str| {
        lab.kill_manager();
        fs::write(lab.state().join("carma.toml"), format!("[manager.estimates]\n{settings}\n[manager.agents]\nlease = 4\ngrace = 1\n"))
            .unwrap();
        lab.up();
    };
    restart(&mut lab, "agent_seconds = 1");
    let job = submit(&lab, python.to_str().unwrap());
    lab.until("it waits for an agent no longer", || {
        lab.text(&["show", &job]).contains("no estimate: no agent was ready for a dry run within 1 s")
    });
    assert!(dry_runs(&lab).is_empty());
    restart(&mut lab, "dry_run_on = \"manager\"");
    let other = submit(&lab, python.to_str().unwrap());
    lab.until("the manager does it", || dry_runs(&lab).len() == 1);
    assert!(dry_runs(&lab)[0].1.contains(lab.state().to_str().unwrap()), "{:?}", dry_runs(&lab));
    lab.text(&["pool", "resume", "gpu"]);
    for job in [job, other] {
        succeeds(&lab, &job);
    }
}
