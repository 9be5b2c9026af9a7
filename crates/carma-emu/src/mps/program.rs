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
use super::{CONTROL, CONTROL_SOCKET, Folders, LISTENING, daemon};
use crate::driver_version::DriverVersion;
use crate::machine::{Machine, MachineError, VARIABLE};

/// The folder within a machine's where `carma mps` keeps the daemon of each GPU.
const OF_GPUS: &str = "mps";

const HELP_OF_VERSION_3: &str = "Commands of protocol version 3: server, namespace\n";

/// Runs as `nvidia-cuda-mps-control`. It fails if there is no daemon, or one too many; refused commands are answers like any other.
pub(crate) fn control(name: &Path, arguments: &[OsString]) -> ExitCode {
    let folder = Machine::folder_of(name);
    let words: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let done = match words.as_slice() {
        [] => pass_commands(&Folders::of(&folder), io::stdin().lock(), &mut io::stdout()),
        ["-d"] => start(&folder),
        // The commands of the third version that NVIDIA documents. The stand-in has its help only, as no one has seen it run.
        ["-p", "3", "-h"] if plays_version_3(&folder) => write!(io::stdout(), "{HELP_OF_VERSION_3}").map_err(|error| error.to_string()),
        ["-f"] => Machine::open(&folder)
            .map_err(|error| error.to_string())
            .and_then(|machine| daemon::run(machine, Folders::of(&folder)).map_err(|error| error.to_string())),
        _ => Err(format!("usage: {CONTROL} [-d | -f]")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            // NVIDIA's program prints errors of a start to its output. It may have no reader.
            let _ = if words.is_empty() { writeln!(io::stderr(), "{text}") } else { writeln!(io::stdout(), "{text}") };
            ExitCode::FAILURE
        }
    }
}

fn plays_version_3(folder: &Path) -> bool {
    let played = Machine::open(folder).and_then(|machine| machine.with(|state| state.header.driver));
    played.is_ok_and(|number| DriverVersion::from_number(number) == DriverVersion::R615)
}

/// Starts a daemon in the background, and returns when it listens.
fn start(machine: &Path) -> Result<(), String> {
    let mut command = Command::new(machine.join("bin").join(CONTROL));
    // In its own process group, signals of our terminal do not end it.
    command.arg("-f").env(VARIABLE, machine).process_group(0);
    let daemon = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(|error| error.to_string())?;
    let mut text = String::new();
    let Some(mut output) = daemon.stdout.map(BufReader::new) else { return Err(text) };
    let read = output.read_line(&mut text).map_err(|error| error.to_string())?;
    if read > 0 && text.starts_with(LISTENING) {
        return Ok(());
    }
    // It reports an error, and ends.
    output.read_to_string(&mut text).map_err(|error| error.to_string())?;
    Err(text.trim_end().to_owned())
}

impl Machine {
    /// Removes the machine in a folder, and returns the number of stopped MPS daemons. Processes on it continue until their next access.
    pub fn remove(folder: &Path) -> Result<usize, MachineError> {
        Self::remove_state(folder)?;
        let daemons = take_down(folder);
        Self::remove_files(folder);
        Ok(daemons)
    }
}

/// Stops the daemons in a machine's folder, removes their files, and returns their number.
fn take_down(machine: &Path) -> usize {
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
    // A daemon that hangs is left alone.
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let mut connection = Connection::new(stream);
    let answered = connection.send(&Request::Command("quit -t 0".to_owned())).and_then(|()| connection.receive());
    // Its end of the connection closes when it ends.
    matches!(answered, Ok(Some(Reply::Answer(text))) if text.is_empty()) && connection.receive::<Reply>().is_ok()
}

/// Hands commands, a line each, to the daemon, and prints its answers.
fn pass_commands(folders: &Folders, commands: impl BufRead, output: &mut impl Write) -> Result<(), String> {
    let no_daemon = || "Cannot find MPS control daemon process".to_owned();
    let stream = UnixStream::connect(folders.socket()).map_err(|_| no_daemon())?;
    let mut connection = Connection::new(stream);
    for line in commands.lines().map_while(Result::ok) {
        connection.send(&Request::Command(line.clone())).map_err(|_| no_daemon())?;
        let Ok(Some(Reply::Answer(text))) = connection.receive() else { return Err(no_daemon()) };
        write!(output, "{text}").map_err(|error| error.to_string())?;
        if text.is_empty() && line.trim_start().starts_with("quit") {
            // The daemon ends now; its end of the connection closes with it.
            let _ = connection.receive::<Reply>();
            break;
        }
    }
    Ok(())
}
