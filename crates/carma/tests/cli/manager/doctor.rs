//! `carma doctor` on the state of a manager.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use carma_core::{AttemptId, JobId, Signal};
use carma_manager::supervise::{AttemptFolder, AttemptState, find};

use super::lab::{program, until};
use super::up::ManagerProcess;

/// The findings about one area, of a manager with this state folder.
fn about(area: &str, state: &Path) -> Vec<String> {
    let output = Command::new(program()).args(["doctor", "--json", "--state"]).arg(state).output().unwrap();
    let all: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let has_errors = all.iter().any(|finding| finding["health"] == "error");
    assert_eq!(output.status.code(), Some(i32::from(has_errors)), "{all:?} {}", String::from_utf8_lossy(&output.stderr));
    let of_area = all.iter().filter(|finding| finding["area"] == area);
    let texts = of_area.map(|finding| format!("{} {} ({})", finding["health"], finding["says"], finding["fix"]).replace('"', ""));
    texts.map(|text| text.replace(&state.display().to_string(), "STATE")).collect()
}

fn findings(state: &Path) -> Vec<String> {
    about("store", state)
}

#[test]
fn the_doctor_checks_the_manager_and_what_it_stands_on() {
    let mut up = ManagerProcess::new(None, "[queue]\nbackfill = 3\n");
    let state = up.state();
    let first = |area: &str| about(area, &state).into_iter().next().unwrap_or_default();
    let manager = about("manager", &state);
    assert!(
        manager[0].starts_with("ok the manager runs at STATE/carma.sock: version ") && manager[1].contains("answers in"),
        "{manager:?}"
    );
    assert!(first("configuration").ends_with("carma.toml is read: 1 key set, no unknown key (null)"), "{}", first("configuration"));
    assert!(about("disk", &state).iter().any(|text| text.contains("is written and synced in")), "{:?}", about("disk", &state));
    assert!(first("permissions").starts_with("ok the state folder, the socket and the secrets"), "{}", first("permissions"));
    assert!(!about("control_groups", &state).is_empty() && !about("service", &state).is_empty());
    // What is wrong is found, and has its remedy.
    let configuration = up.folder().join("carma.toml");
    fs::write(&configuration, "[queue]\nbackfill = 4\n").unwrap();
    assert!(about("configuration", &state)[1].ends_with("was changed after the manager read it (carma config reload)"));
    fs::write(&configuration, "[queue]\nbackfill = 4\n[manager.energy]\nprice = 0.3\n").unwrap();
    assert_eq!(up.client().reload().unwrap().needs_restart, ["manager.energy.price"]);
    let waits = |text: &String| text.contains("wait for a restart of the manager: manager.energy.price");
    assert!(about("configuration", &state).iter().any(waits), "{:?}", about("configuration", &state));
    let problems = up.client().status().unwrap().problems;
    assert!(problems.iter().any(|problem| problem.contains("need a restart of the manager: manager.energy.price")), "{problems:?}");
    fs::write(&configuration, "[manager.network]\nlisten = \"127.0.0.1:0\"\ntokens = \"/nonexistent/tokens\"\n").unwrap();
    let refused = up.client().reload().unwrap_err().to_string();
    assert!(refused.contains("carma.toml:3: manager.network.tokens: /nonexistent/tokens cannot be used"), "{refused}");
    assert!(about("configuration", &state).iter().any(|text| text.starts_with("error manager.network.tokens")));
    fs::write(&configuration, "[queue]\nbackfil = 4\n").unwrap();
    assert!(first("configuration").contains("carma.toml:2: unknown key queue.backfil: did you mean queue.backfill?"));
    fs::set_permissions(state.join("carma.db"), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(first("permissions").starts_with("error STATE/carma.db holds secrets that others can read (mode 0644) (chmod 600"));
    up.kill();
    assert!(first("manager").starts_with("warning no manager runs; one that was killed left STATE/carma.sock"), "{}", first("manager"));
    assert!(first("manager").ends_with("(carma up --detach --state STATE)"), "{}", first("manager"));
}

/// The files of a folder, with their contents.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = entries
        .flat_map(
            |path| if path.is_dir() { contents(&path) } else { vec![(path.display().to_string(), fs::read(&path).unwrap_or_default())] },
        )
        .collect();
    all.sort();
    all
}

#[test]
fn the_doctor_finds_what_does_not_fit_together_and_changes_nothing() {
    let mut up = ManagerProcess::new(None, "");
    let go = up.folder().join("go");
    let script = format!("while [ ! -e {} ]; do sleep 0.05; done", go.display());
    let jobs: Vec<JobId> = (0..4).map(|_| up.submit(up.shell_job(&script))).collect();
    until(|| (up.client().status().unwrap().jobs.running == 4).then_some(()));
    let agrees = findings(&up.state());
    assert_eq!(agrees, ["ok the store STATE/carma.db and the folders of attempts agree: 4 unfinished jobs, 4 running (null)"]);
    up.kill();
    let folder = |job: JobId| AttemptFolder::of(&up.state(), AttemptId { job, number: 1 });
    // The first ends, the second loses its folder, a file of the third is damaged, the fourth continues.
    for job in &jobs[..3] {
        let Ok(AttemptState::Running(supervised)) = find(&folder(*job)) else { panic!("{job} runs") };
        supervised.signal(Signal::Kill).unwrap();
        until(|| matches!(find(&folder(*job)), Ok(AttemptState::Ended(_))).then_some(()));
    }
    fs::remove_dir_all(folder(jobs[1]).path()).unwrap();
    fs::write(folder(jobs[2]).path().join("exit.json"), "{").unwrap();
    fs::create_dir_all(up.state().join("attempts/77/1")).unwrap();
    let before = contents(&up.state().join("attempts"));
    let found = findings(&up.state());
    assert_eq!(found.len(), 4, "{found:#?}");
    assert!(found[0].starts_with("note job 1 attempt 1 runs according to the store, but it has ended"), "{found:#?}");
    assert!(found[1].contains("job 2 attempt 1 runs according to the store, but it has no folder"), "{found:#?}");
    assert!(found[2].starts_with("error job 3") && found[2].contains("exit.json is damaged"), "{found:#?}");
    assert!(found[3].contains("STATE/attempts/77 belongs to no job in the store"), "{found:#?}");
    assert!(contents(&up.state().join("attempts")) == before);
    fs::write(go, "").unwrap();
}

#[test]
fn the_doctor_names_the_remedy_for_a_damaged_store_and_says_nothing_without_one() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(findings(folder.path()), <[String; 0]>::default());
    fs::write(folder.path().join("carma.db"), "no database\n".repeat(500)).unwrap();
    let found = findings(folder.path());
    assert!(matches!(found.as_slice(), [one] if one.starts_with("error") && one.contains("carma restore FILE --state STATE")), "{found:?}");
}
