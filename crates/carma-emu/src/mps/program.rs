//! The control program: starts the daemon, or hands it commands.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use super::message::{Connection, Reply, Request};
use super::{CONTROL, CONTROL_SOCKET, Folders, daemon};
use crate::machine::{Machine, VARIABLE};
use crate::programs::folder_of;

/// Where `carma mps` has a folder for the daemon of each GPU, within a machine's.
const OF_GPUS: &str = "mps";

/// Plays `nvidia-cuda-mps-control`. It exits with 1 where something could not be done.
pub(crate) fn control(name: &Path, arguments: &[OsString]) -> ExitCode {
    let folder = folder_of(name);
    let words: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let done = match words.as_slice() {
        [] => pass_commands(&Folders::of(&folder), io::stdin().lock(), &mut io::stdout()),
        ["-d"] => start(&folder),
        ["-f"] => Machine::open(&folder)
            .map_err(|error| error.to_string())
            .and_then(|machine| daemon::run(machine, Folders::of(&folder)).map_err(|error| error.to_string())),
        _ => Err(format!("usage: {CONTROL} [-d | -f]")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            // Nobody may be there to read it.
            let _ = writeln!(io::stderr(), "{text}");
            ExitCode::FAILURE
        }
    }
}

/// Starts a daemon in the background, and comes back when it listens.
fn start(machine: &Path) -> Result<(), String> {
    let mut command = Command::new(machine.join("bin").join(CONTROL));
    // In a group of its own, what is typed at our terminal does not end it.
    command.arg("-f").env(VARIABLE, machine).process_group(0);
    let daemon = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
    let mut line = String::new();
    let listens = daemon.stdout.is_some_and(|output| BufReader::new(output).read_line(&mut line).is_ok_and(|length| length > 0));
    if listens {
        return Ok(());
    }
    let mut error = String::new();
    daemon.stderr.and_then(|mut output| output.read_to_string(&mut error).ok());
    Err(error.trim_end().to_owned())
}

/// Stops the daemons in a machine's folder, takes away what they leave, and returns how many there were.
pub(crate) fn take_down(machine: &Path) -> usize {
    let (own, of_gpus) = (Folders::in_machine(machine).pipes, machine.join(OF_GPUS));
    let pipes = fs::read_dir(&of_gpus).into_iter().flatten().flatten().map(|gpu| gpu.path().join("pipes"));
    let stopped = pipes.chain([own.clone()]).filter(|pipes| stop(pipes)).count();
    for folder in [own, of_gpus] {
        let _ = fs::remove_dir_all(folder);
    }
    stopped
}

/// Stops the daemon with these pipes; returns whether there was one.
fn stop(pipes: &Path) -> bool {
    let Ok(stream) = UnixStream::connect(pipes.join(CONTROL_SOCKET)) else { return false };
    // One that hangs is left to itself.
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let mut connection = Connection::new(stream);
    let answered = connection.send(&Request::Command("quit -t 0".to_owned())).and_then(|()| connection.receive());
    // Its end of the connection closes when it ends.
    matches!(answered, Ok(Some(Reply::Answer { done: true, .. }))) && connection.receive::<Reply>().is_ok()
}

/// Hands commands, a line each, to the daemon, and prints its answers.
fn pass_commands(folders: &Folders, commands: impl BufRead, output: &mut impl Write) -> Result<(), String> {
    let no_daemon = || "Cannot find MPS control daemon process".to_owned();
    let stream = UnixStream::connect(folders.socket()).map_err(|_| no_daemon())?;
    let mut connection = Connection::new(stream);
    let mut refused = String::new();
    for line in commands.lines().map_while(Result::ok).filter(|line| !line.trim().is_empty()) {
        connection.send(&Request::Command(line.trim().to_owned())).map_err(|_| no_daemon())?;
        match connection.receive() {
            Ok(Some(Reply::Answer { text, done: true })) => write!(output, "{text}").map_err(|error| error.to_string())?,
            Ok(Some(Reply::Answer { text, done: false })) => {
                refused.push_str(&text);
                continue;
            }
            _ => return Err(no_daemon()),
        }
        if line.trim_start().starts_with("quit") {
            // The daemon ends now; its end of the connection closes with it.
            let _ = connection.receive::<Reply>();
            break;
        }
    }
    if refused.is_empty() { Ok(()) } else { Err(refused.trim_end().to_owned()) }
}
