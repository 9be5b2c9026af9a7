//! The log of guard and shim: a file in the attempt's folder, made with its first line.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::panic;
use std::path::PathBuf;
use std::sync::OnceLock;

use super::folder::AttemptFolder;

/// The file of this process.
static LOG: OnceLock<PathBuf> = OnceLock::new();

/// From now on, this process logs to a file in this folder, panics included.
pub(super) fn keep_log_in(folder: &AttemptFolder) {
    let _ = LOG.set(folder.supervisor_log());
    panic::set_hook(Box::new(|panic| log_line(format_args!("{panic}"))));
}

/// Adds a line. A full disk must not end a supervisor, as `eprintln!` would.
pub(super) fn log_line(text: fmt::Arguments<'_>) {
    let Some(path) = LOG.get() else { return drop(writeln!(io::stderr(), "{text}")) };
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    let _ = file.and_then(|mut file| writeln!(file, "{text}"));
}
