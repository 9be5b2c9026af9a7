//! The record of skipped tests: one line for each in the file that `CARMA_SKIPPED` names.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;

use crate::Missing;

/// Records a skipped test, by the path of a function inside it.
///
/// # Panics
///
/// Panics under CI (`CI` is set) for anything that CI should have, and where the record cannot be written.
pub fn record(inside: &str, missing: &Missing) {
    // A function in a test is `crate::module::test::here`, in a closure of it `crate::module::test::{{closure}}::here`.
    let test = inside.trim_end_matches("::here").trim_end_matches("::{{closure}}");
    eprintln!("skipped: {test}: {missing}");
    let under_ci = env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false" && ci != "0");
    assert!(!under_ci || missing.may_lack_in_ci(), "{test} must run under CI: {missing}");
    if let Some(file) = env::var_os("CARMA_SKIPPED") {
        // One short write to the end of a file, so that tests that run at the same time do not mix their lines.
        let line = format!("{test}: {missing}\n");
        let written = OpenOptions::new().create(true).append(true).open(&file).and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap_or_else(|error| panic!("cannot write to {}: {error}", file.display()));
    }
}
