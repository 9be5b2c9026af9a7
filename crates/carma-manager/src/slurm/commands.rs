//! Runs programs of Slurm, each with a time limit.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use carma_gpu::find_program;

use super::error::SlurmError;

/// Slurm's own clients give up after about ten seconds.
const LIMIT: Duration = Duration::from_secs(30);
/// An answer comes within a few of these.
const STEP: Duration = Duration::from_millis(5);

/// How programs of Slurm are run.
#[derive(Debug, Clone)]
pub struct Commands {
    limit: Duration,
    survives_term: bool,
}

impl Default for Commands {
    fn default() -> Self {
        Self { limit: LIMIT, survives_term: false }
    }
}

impl Commands {
    /// Programs that end within this time, or are killed.
    pub fn within(limit: Duration) -> Self {
        Self { limit, ..Self::default() }
    }

    /// The same, for a job that requeues itself: Slurm sends SIGTERM to all its processes, and a started step must be finished.
    #[must_use]
    pub fn surviving_term(self) -> Self {
        Self { survives_term: true, ..self }
    }

    /// What a program prints.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String, SlurmError> {
        let path = find_program(Path::new(program)).ok_or_else(|| SlurmError::NotInstalled(program.to_owned()))?;
        let not_started = |error| SlurmError::NotStarted { program: program.to_owned(), error };
        let mut command = if self.survives_term {
            // An ignored signal stays ignored after exec.
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", "trap '' TERM; exec \"$0\" \"$@\""]).arg(path);
            shell
        } else {
            Command::new(path)
        };
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(not_started)?;
        let (output, errors) = (reader(child.stdout.take()), reader(child.stderr.take()));
        let status = self.wait(&mut child).map_err(not_started)?;
        let Some(status) = status else { return Err(SlurmError::Late { program: program.to_owned(), limit: self.limit }) };
        let text = |thread: JoinHandle<Vec<u8>>| String::from_utf8_lossy(&thread.join().unwrap_or_default()).into_owned();
        let (output, errors) = (text(output), text(errors));
        if status.success() {
            return Ok(output);
        }
        let printed = if errors.trim().is_empty() { output.trim() } else { errors.trim() };
        let message = if printed.is_empty() { status.to_string() } else { printed.replace('\n', "; ") };
        Err(SlurmError::Failed { command: format!("{program} {}", arguments.join(" ")), message })
    }

    /// Waits until the time is up; then kills it.
    fn wait(&self, child: &mut Child) -> io::Result<Option<std::process::ExitStatus>> {
        let since = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            if since.elapsed() > self.limit {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            thread::sleep(STEP);
        }
    }
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What could be read is the answer.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        bytes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_failures_and_late_answers_are_distinguished() {
        let commands = Commands::within(Duration::from_millis(300));
        assert_eq!(commands.run("echo", &["a", "b c"]).unwrap(), "a b c\n");
        assert_eq!(commands.clone().surviving_term().run("echo", &["a", "b c"]).unwrap(), "a b c\n");
        let error = |program, arguments: &[&str]| commands.run(program, arguments).unwrap_err().to_string();
        assert_eq!(error("sh", &["-c", "echo no >&2; exit 3"]), "sh -c echo no >&2; exit 3: no");
        assert_eq!(error("false", &[]), "false : exit status: 1");
        assert_eq!(error("sleep", &["5"]), "sleep gave no answer within 0 s");
        assert!(error("no-such-program", &[]).starts_with("no-such-program is not in PATH"));
    }

    #[test]
    fn processes_that_survive_sigterm_are_killed() {
        let commands = Commands::default().surviving_term();
        assert_eq!(commands.run("sh", &["-c", "kill -TERM $$; echo finished"]).unwrap(), "finished\n");
    }
}
