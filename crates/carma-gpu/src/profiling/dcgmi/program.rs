//! Runs of the `dcgmi` program, one at a time, that can be ended from outside.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::super::problem::Problem;
use crate::environment::find_program;
use crate::lane::held;
use crate::liveness::Process;

/// From the end of its output to its own end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Longer lines are cut off: lines of `dcgmi` are much shorter.
const MAX_LENGTH: usize = 1 << 16;
/// A killed program ends within this time, unless it hangs.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// The program and its run, if it runs.
///
/// A run always dies with us: its output pipe then has no reader.
#[derive(Debug)]
pub(super) struct Program {
    path: PathBuf,
    /// How long it may be silent before it counts as hung.
    timeout: Duration,
    run: Mutex<Run>,
}

#[derive(Debug, Default)]
struct Run {
    child: Option<Child>,
    /// No more runs are allowed.
    over: bool,
}

impl Program {
    pub(super) fn new(path: PathBuf, timeout: Duration) -> Self {
        Self { path, timeout, run: Mutex::default() }
    }

    /// Ends the run, and allows no other. It is reaped here, because the running thread may end before that; one that hangs
    /// in the driver is left alone.
    pub(super) fn end(&self) {
        let mut run = held(&self.run);
        run.over = true;
        if let Some(child) = &mut run.child {
            let _ = child.kill();
            let killed = Instant::now();
            while matches!(child.try_wait(), Ok(None)) && killed.elapsed() < KILL_TIMEOUT {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Runs it to its end, or until it hangs, and passes on each printed line, including errors.
    pub(super) fn run<S: AsRef<OsStr>>(&self, arguments: &[S], each: impl FnMut(&str)) -> Result<(), Problem> {
        let output = self.spawn(arguments).map_err(|error| self.failed(&error))?;
        let read = read_lines(output, self.timeout, each);
        let (child, over) = {
            let mut run = held(&self.run);
            (run.child.take(), run.over)
        };
        let Some(mut child) = child else { return Err(Problem::NotAsked) };
        // A program that closed its output is about to end; one that is silent, or does not end, is killed.
        let ending = read.is_ok() && Process::find(child.id()).is_none_or(|process| process.ends_within(EXIT_TIMEOUT));
        if !ending {
            let _ = child.kill();
        }
        let status = child.wait().map_err(|error| self.failed(&error))?;
        match read {
            _ if over => Err(Problem::NotAsked),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(Problem::Silent),
            _ if status.success() => Ok(()),
            _ => Err(Problem::Ended(status.to_string())),
        }
    }

    fn spawn<S: AsRef<OsStr>>(&self, arguments: &[S]) -> io::Result<io::PipeReader> {
        let mut run = held(&self.run);
        if run.over {
            return Err(io::ErrorKind::Interrupted.into());
        }
        // Versions differ in the stream of their errors.
        let (output, input) = io::pipe()?;
        let mut command = line_by_line(&self.path);
        command.args(arguments).stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input).env("LC_ALL", "C");
        run.child = Some(command.spawn()?);
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

/// A program that prints line by line. Into a pipe, programs may print in blocks of 4 KiB: minutes of rows on a small server.
fn line_by_line(program: &Path) -> Command {
    // Only if both exist: an error about a missing file must name the program.
    match (find_program("stdbuf".as_ref()), find_program(program)) {
        (Some(buffering), Some(program)) => {
            let mut command = Command::new(buffering);
            command.arg("-oL").arg(program);
            command
        }
        _ => Command::new(program),
    }
}

/// Passes on each line until the end, or an error: [`io::ErrorKind::TimedOut`] if there is no output for this long.
fn read_lines(mut output: io::PipeReader, timeout: Duration, mut each: impl FnMut(&str)) -> io::Result<()> {
    let timeout = Timespec { tv_sec: timeout.as_secs().cast_signed(), tv_nsec: timeout.subsec_nanos().into() };
    let (mut line, mut bytes) = (Vec::new(), [0; 4096]);
    loop {
        if poll(&mut [PollFd::new(&output, PollFlags::IN)], Some(&timeout))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let read = output.read(&mut bytes)?;
        for byte in &bytes[..read] {
            match byte {
                b'\n' => {
                    each(String::from_utf8_lossy(&line).trim_end());
                    line.clear();
                }
                _ if line.len() < MAX_LENGTH => line.push(*byte),
                _ => {}
            }
        }
        if read == 0 {
            if !line.is_empty() {
                each(String::from_utf8_lossy(&line).trim_end());
            }
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of a shell script, and the end of its run.
    fn run(script: &str, timeout: Duration) -> (Vec<String>, Result<(), Problem>) {
        let mut lines = Vec::new();
        let ended = Program::new("/bin/sh".into(), timeout).run(&["-c", script], |line| lines.push(line.to_owned()));
        (lines, ended)
    }

    #[test]
    fn rows_come_one_by_one_from_programs_that_print_in_blocks() {
        // `grep` does, into a pipe; without `stdbuf` its first line would arrive with its last.
        let (sender, lines) = std::sync::mpsc::channel();
        let program = std::sync::Arc::new(Program::new("grep".into(), Duration::from_secs(60)));
        let running = std::sync::Arc::clone(&program);
        let fifo = tempfile::tempdir().unwrap();
        let path = fifo.path().join("rows");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let reader = path.clone();
        let thread =
            thread::spawn(move || running.run(&["GPU".as_ref(), reader.as_os_str()], |line| sender.send(line.to_owned()).unwrap()));
        let mut rows = std::fs::File::options().write(true).open(&path).unwrap();
        io::Write::write_all(&mut rows, b"GPU 0     0.984\n").unwrap();
        assert_eq!(lines.recv_timeout(Duration::from_secs(60)).unwrap(), "GPU 0     0.984");
        drop(rows);
        thread.join().unwrap().unwrap();
    }

    #[test]
    fn lines_of_any_length_and_kind_are_handed_over_within_bounds() {
        let long = Duration::from_secs(60);
        assert_eq!(run("printf 'a\\r\\n\\nb'; printf c >&2", long), (vec!["a".to_owned(), String::new(), "bc".to_owned()], Ok(())));
        let (lines, ended) = run("head -c 1000000 /dev/zero; echo; printf '\\377'; exit 3", long);
        assert_eq!((lines[0].len(), lines[1].as_str()), (MAX_LENGTH, "\u{fffd}"));
        assert_eq!(ended, Err(Problem::Ended("exit status: 3".to_owned())));
    }

    #[test]
    fn ended_programs_leave_no_process() {
        let program = std::sync::Arc::new(Program::new("sleep".into(), Duration::from_secs(60)));
        let running = std::sync::Arc::clone(&program);
        let thread = thread::spawn(move || running.run(&["3600"], |_| ()));
        let pid = loop {
            if let Some(child) = &held(&program.run).child {
                break child.id();
            }
            thread::yield_now();
        };
        program.end();
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "not even its remains");
        assert_eq!(thread.join().unwrap(), Err(Problem::NotAsked));
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let (lines, ended) = run("echo first; exec sleep 3600", Duration::from_millis(300));
        assert_eq!((lines, ended), (vec!["first".to_owned()], Err(Problem::Silent)));
        // Even if it has ended, and a child keeps its output open.
        let (_, ended) = run("sleep 5 & exit", Duration::from_millis(300));
        assert_eq!(ended, Err(Problem::Silent));
    }
}
