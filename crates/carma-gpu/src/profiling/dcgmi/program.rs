//! Runs of the `dcgmi` program, one at a time, that can be ended from outside.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use super::super::latest::held;
use super::super::problem::Problem;

/// The program and its run, if it runs.
///
/// A run dies with us in any case: its output goes to a pipe that nobody reads then.
#[derive(Debug)]
pub(super) struct Program {
    path: PathBuf,
    run: Mutex<Run>,
}

#[derive(Debug)]
enum Run {
    Idle,
    Running(Child),
    /// Nothing may be run any more.
    Over,
}

impl Program {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path, run: Mutex::new(Run::Idle) }
    }

    /// Ends what runs, and lets nothing run again.
    pub(super) fn end(&self) {
        if let Run::Running(mut child) = std::mem::replace(&mut *held(&self.run), Run::Over) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Runs it to its end, and hands over each line that it prints, errors included.
    pub(super) fn run<S: AsRef<OsStr>>(&self, arguments: &[S], mut each: impl FnMut(&str)) -> Result<(), Problem> {
        let output = self.spawn(arguments).map_err(|error| self.failed(&error))?;
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            each(String::from_utf8_lossy(&line).trim_end());
            line.clear();
        }
        let mut run = held(&self.run);
        let Run::Running(mut child) = std::mem::replace(&mut *run, Run::Idle) else {
            *run = Run::Over;
            return Err(Problem::NotAsked);
        };
        drop(run);
        // One that has closed its output is of no more use.
        let _ = child.kill();
        let status = child.wait().map_err(|error| self.failed(&error))?;
        if status.success() { Ok(()) } else { Err(Problem::Ended(status.to_string())) }
    }

    fn spawn<S: AsRef<OsStr>>(&self, arguments: &[S]) -> io::Result<io::PipeReader> {
        let mut run = held(&self.run);
        if matches!(*run, Run::Over) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        // Versions differ in which errors they print where.
        let (output, input) = io::pipe()?;
        let mut command = Command::new(&self.path);
        command.args(arguments).stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input).env("LC_ALL", "C");
        *run = Run::Running(command.spawn()?);
        Ok(output)
    }

    fn failed(&self, error: &io::Error) -> Problem {
        let program = self.path.display().to_string();
        match error.kind() {
            io::ErrorKind::NotFound => Problem::NotInstalled(program),
            _ => Problem::CannotRun { program, reason: error.to_string() },
        }
    }
}
