//! Counting instructions: the program runs itself again under Valgrind, for one case.

use std::env;
use std::process::Command;

const CASE: &str = "CARMA_BENCH_COUNT_CASE";

/// The case to count, in the second run.
pub(crate) fn case_to_count() -> Option<String> {
    env::var(CASE).ok()
}

/// Instructions of all measured calls of a case; `None` without Valgrind.
pub(crate) fn count(case: &str) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no", "--toggle-collect=*carma_measured_section*"])
        .arg(env::current_exe().ok()?)
        .env(CASE, case)
        .output()
        .ok()?;
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    let collected = report.lines().find_map(|line| line.split_once("Collected :"))?.1;
    collected.trim().parse().ok()
}
