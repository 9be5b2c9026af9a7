//! Tests that need a process of their own: this binary again, for one test that is otherwise ignored.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use carma_core::JobId;

const STORE: &str = "CARMA_TEST_STORE";

/// A command that runs one ignored test of this binary on a store. `before` are programs that start it.
pub(crate) fn command(before: &[&str], test: &str, store: &Path) -> Command {
    let this = env::current_exe().unwrap();
    let mut words = before.iter().map(AsRef::as_ref).chain([this.as_os_str()]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]).env(STORE, store);
    command
}

/// The store a test was started for; unset if all ignored tests are run.
pub(crate) fn store() -> Option<PathBuf> {
    env::var_os(STORE).map(Into::into)
}

/// Lets a process write until it has printed this many numbers, kills it, and returns the numbers.
pub(crate) fn killed_after(test: &str, store: &Path, numbers: usize) -> Vec<JobId> {
    let mut child = command(&[], test, store).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said = lines.map_while(Result::ok).filter_map(|line| line.parse().ok().map(JobId));
    let mut acknowledged: Vec<JobId> = said.by_ref().take(numbers).collect();
    child.kill().unwrap();
    acknowledged.extend(said);
    child.wait().unwrap();
    acknowledged
}
