//! The manager's log of a short run.

use carma_core::Outcome;
use carma_manager::api::Shutdown;
use serde_json::Value;

use super::up::ManagerProcess;

/// The log of a manager that ran a job that succeeds and one that fails.
fn log_of_two_jobs(environment: &[(&'static str, &str)]) -> String {
    let mut up = ManagerProcess::stopped(None, "");
    for (name, value) in environment {
        up.set(name, value);
    }
    up.start();
    for (script, outcome) in [("true", Outcome::Succeeded), ("exit 3", Outcome::Failed { code: 3 })] {
        assert_eq!(up.wait_until_done(up.submit(up.shell_job(script))).outcome(), Some(&outcome));
    }
    up.client().shutdown(Shutdown::default()).unwrap();
    assert!(up.ended());
    up.log_text().replace(up.folder().to_str().unwrap(), "FOLDER")
}

#[test]
fn every_event_is_a_line_with_its_job_and_attempt() {
    let log = log_of_two_jobs(&[]);
    let without_time = |line: &str| {
        let (time, rest) = line.split_once(' ').unwrap();
        time.parse::<jiff::Timestamp>().unwrap();
        format!("TIME {rest}\n")
    };
    insta::assert_snapshot!("log", log.lines().map(without_time).collect::<Vec<_>>().concat());
}

#[test]
fn a_log_in_json_has_levels_and_fields() {
    let log = log_of_two_jobs(&[("CARMA_LOG_FORMAT", "json")]);
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["level"] == "info" && line["time"].is_string() && line["message"].is_string()));
    let ended = lines.iter().filter(|line| line["event"] == "ended").map(|line| (line["job"].as_u64(), line["attempt"].as_u64()));
    assert_eq!(ended.collect::<Vec<_>>(), [(Some(1), Some(1)), (Some(2), Some(1))]);
}

#[test]
fn only_lines_of_the_level_are_logged() {
    assert_eq!(log_of_two_jobs(&[("CARMA_LOG", "warn")]), "");
    let mut up = ManagerProcess::stopped(None, "");
    up.set("CARMA_LOG", "loud");
    let output = up.command().stderr(std::process::Stdio::piped()).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("carma: CARMA_LOG: "), "{output:?}");
}
