//! Tests that need a process of their own: this binary again, for one test that is otherwise ignored.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const STORE: &str = "CARMA_TEST_STORE";

/// A command that runs one ignored test of this binary on a store. `before` are programs that start it.
pub(crate) fn command(before: &[&str], test: &str, store: &Path) -> Command {
    let this = env::current_exe().unwrap();
    let mut words = before.iter().map(AsRef::as_ref).chain([this.as_os_str()]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]).env(STORE, store);
    command
}

/// The store a test was started for; unset where somebody runs all ignored tests.
pub(crate) fn store() -> Option<PathBuf> {
    env::var_os(STORE).map(Into::into)
}
