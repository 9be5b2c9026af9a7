//! The control daemon of one GPU: start, commands, stop.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{self, Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Flock, FlockType, fcntl_getlk};

use super::answers::{
    Refusal, ServerState, memory_limit, percentage, process_numbers, refusal, says_already_running, says_no_daemon, server_state,
};
use super::error::MpsError;
use super::health::Server;
use super::limits::ClientLimits;
use super::rights::foreign_owner;
use crate::driver::DEADLINE;
use crate::environment::environment;
use crate::identity::DeviceUuid;
use crate::liveness::Process;
use crate::ownership::process_user;

/// NVIDIA's control program of MPS.
pub const PROGRAM: &str = "nvidia-cuda-mps-control";
/// The file among its pipes that the daemon keeps locked.
pub(super) const LOCK_FILE: &str = "control_lock";
/// The system's longest name of a socket, less that of the daemon's own with the longest name, `control_privileged`.
const MAX_FOLDER: usize = 107 - 19;
/// The time between checks for a daemon that starts.
const PAUSE: Duration = Duration::from_millis(10);

/// The MPS control daemon of one GPU, whether or not it runs.
#[derive(Debug, Clone)]
pub struct MpsControl {
    gpu: DeviceUuid,
    pipes: PathBuf,
    logs: PathBuf,
    program: PathBuf,
    deadline: Duration,
}

impl MpsControl {
    /// The daemon of this GPU, with its own folders for pipes and logs.
    pub fn new(gpu: DeviceUuid, pipes: impl Into<PathBuf>, logs: impl Into<PathBuf>) -> Self {
        // The daemon and its clients work elsewhere.
        let [pipes, logs] = [pipes.into(), logs.into()].map(|folder: PathBuf| path::absolute(&folder).unwrap_or(folder));
        Self { gpu, pipes, logs, program: PROGRAM.into(), deadline: DEADLINE }
    }

    /// Uses the control program at this path instead of the system's.
    #[must_use]
    pub fn with_program(self, program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), ..self }
    }

    /// Sets the deadline for each answer.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// The environment of the daemon and its clients.
    pub(super) fn environment(&self) -> Vec<(&'static str, OsString)> {
        let folders = [("CUDA_MPS_PIPE_DIRECTORY", self.pipes.clone().into()), ("CUDA_MPS_LOG_DIRECTORY", self.logs.clone().into())];
        let devices = environment(std::slice::from_ref(&self.gpu)).into_iter().map(|(name, value)| (name, value.into()));
        folders.into_iter().chain(devices).collect()
    }

    /// Starts the daemon. Clients get these limits unless theirs are lower.
    pub fn start(&self, defaults: ClientLimits) -> Result<(), MpsError> {
        if self.pipes.as_os_str().len() > MAX_FOLDER {
            return Err(MpsError::LongPath { path: self.pipes.clone(), most: MAX_FOLDER });
        }
        if self.daemon().is_some() {
            return Err(MpsError::AlreadyRunning(self.pipes.clone()));
        }
        for path in [&self.pipes, &self.logs] {
            make_folder(path).map_err(|error| MpsError::Folder { path: path.clone(), error })?;
        }
        let (status, answer) = self.run("-d", None, self.deadline)?;
        if says_already_running(&answer) {
            return Err(MpsError::AlreadyRunning(self.pipes.clone()));
        }
        if !status.success() {
            return Err(refused("-d", &answer));
        }
        let ready = self.wait_until_it_answers().and_then(|()| self.set_defaults(defaults));
        // A daemon with other limits than the requested ones must not serve.
        ready.inspect_err(|_| drop(self.stop(Duration::ZERO)))
    }

    /// Sets the limits of later clients, and reads them back: the daemon reports no wrong value.
    fn set_defaults(&self, defaults: ClientLimits) -> Result<(), MpsError> {
        if let Some(percent) = defaults.active_threads {
            self.command(&format!("set_default_active_thread_percentage {percent}"))?;
            let (question, wanted) = ("get_default_active_thread_percentage", f64::from(percent));
            let answer = self.command(question)?;
            percentage(&answer).filter(|set| (set - wanted).abs() < 0.5).ok_or_else(|| refused(question, &answer))?;
        }
        if let Some(memory) = defaults.memory {
            self.command(&format!("set_default_device_pinned_mem_limit 0 {}M", memory.0))?;
            let question = "get_default_device_pinned_mem_limit 0";
            let answer = self.command(question)?;
            let is_set = |set: &u64| *set == memory.0 || memory.0 >= 1024 && *set == memory.0 / 1024 * 1024;
            memory_limit(&answer).filter(is_set).ok_or_else(|| refused(question, &answer))?;
        }
        Ok(())
    }

    /// The program that starts the daemon may be back before the daemon listens.
    fn wait_until_it_answers(&self) -> Result<(), MpsError> {
        let began = Instant::now();
        loop {
            match self.command("get_server_list") {
                Err(MpsError::NotRunning(_)) if began.elapsed() < self.deadline => thread::sleep(PAUSE),
                answer => return answer.map(drop),
            }
        }
    }

    /// Starts a server for a user, so that the first client need not wait for it. The daemon answers before the server runs, and also if the
    /// server cannot start.
    pub fn start_server(&self, user: u32) -> Result<(), MpsError> {
        self.command(&format!("start_server -uid {user}")).map(drop)
    }

    /// Stops the daemon and its server. Clients have this long to end by themselves; then they are killed.
    pub fn stop(&self, timeout: Duration) -> Result<(), MpsError> {
        let daemon = self.daemon();
        if let Some(owner) = daemon.as_ref().and_then(foreign_owner) {
            return Err(MpsError::Forbidden { owner });
        }
        let servers = daemon.as_ref().map(Process::children).unwrap_or_default();
        // The daemon counts in whole seconds.
        let quit = format!("quit -t {}", timeout.as_secs_f64().ceil());
        let asked = self.ask(&quit, timeout + self.deadline);
        let all = || daemon.iter().chain(&servers);
        match asked {
            Ok(_) | Err(MpsError::NotRunning(_)) => {}
            Err(error @ MpsError::Forbidden { .. }) => return Err(error),
            // The program fails without a message when a server did not end cleanly; the daemon has ended nevertheless.
            Err(MpsError::Refused { answer, .. }) if answer.is_empty() => {}
            Err(_) => all().for_each(Process::kill),
        }
        let until = Instant::now() + self.deadline;
        let stays = |process: &&Process| !process.ends_within(until.saturating_duration_since(Instant::now()));
        let left: Vec<&Process> = all().filter(stays).collect();
        left.iter().copied().for_each(Process::kill);
        left.iter().find(|process| !process.ends_within(self.deadline)).map_or(Ok(()), |stuck| Err(MpsError::Stuck(stuck.pid())))
    }

    /// The daemon's process: the holder of the lock among its pipes, as the kernel knows it. The daemon of driver 535 has no pid file.
    pub(super) fn daemon(&self) -> Option<Process> {
        let lock = File::open(self.pipes.join(LOCK_FILE)).ok()?;
        let holder = fcntl_getlk(lock, &Flock::from(FlockType::WriteLock)).ok()??.pid?;
        let name = self.program.file_name()?.to_str()?.to_owned();
        Process::find(holder.as_raw_nonzero().get().cast_unsigned()).filter(|process| process.name() == Some(name))
    }

    /// Sends a command to the daemon, and returns the answer.
    pub fn command(&self, command: &str) -> Result<String, MpsError> {
        self.ask(command, self.deadline)
    }

    fn ask(&self, command: &str, deadline: Duration) -> Result<String, MpsError> {
        let (status, answer) = self.run(command, Some(command), deadline)?;
        match (refusal(&answer), status.success()) {
            _ if says_no_daemon(&answer) => Err(self.absent()),
            (None, true) => Ok(answer),
            (Some(Refusal::UnknownCommand), _) => Err(MpsError::UnknownCommand { command: command.to_owned() }),
            (Some(Refusal::Privilege), _) => Err(self.forbidden()),
            (Some(Refusal::Argument), _) | (None, false) => Err(refused(command, &answer)),
        }
    }

    /// Its servers: one, or for a moment two when it changes from one to the next.
    pub fn servers(&self) -> Result<Vec<Server>, MpsError> {
        let question = "get_server_list";
        let answer = self.command(question)?;
        let pids = process_numbers(&answer).ok_or_else(|| refused(question, &answer))?;
        let server = |pid| match (self.server_state(pid), self.clients(pid)) {
            (Ok(state), Ok(clients)) => Some(Ok(Server { pid, user: process_user(pid), state, clients })),
            // It has ended since it was listed.
            (Err(MpsError::Refused { .. }), _) | (_, Err(MpsError::Refused { .. })) => None,
            (Err(error), _) | (_, Err(error)) => Some(Err(error)),
        };
        pids.into_iter().filter_map(server).collect()
    }

    /// The processes that are clients of a server.
    pub fn clients(&self, server: u32) -> Result<Vec<u32>, MpsError> {
        let question = format!("get_client_list {server}");
        let answer = self.command(&question)?;
        process_numbers(&answer).ok_or_else(|| refused(&question, &answer))
    }

    fn server_state(&self, server: u32) -> Result<ServerState, MpsError> {
        match self.command(&format!("get_server_status {server}")) {
            // The daemon of driver 535 lacks this command; a listed server counts as active.
            Err(MpsError::UnknownCommand { .. }) => Ok(ServerState::Active),
            answer => answer.map(|answer| server_state(&answer).unwrap_or(ServerState::Active)),
        }
    }

    /// Runs the control program, to start the daemon or with a command for it.
    fn run(&self, what: &str, input: Option<&str>, deadline: Duration) -> Result<(ExitStatus, String), MpsError> {
        let failed = |error| MpsError::NoProgram { program: self.program.clone(), error };
        let mut call = Command::new(&self.program);
        call.envs(self.environment()).args(input.is_none().then_some(what));
        // Limits that we are under ourselves are not the daemon's.
        call.env_remove("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE").env_remove("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
        run(call, input.unwrap_or_default(), deadline)
            .map_err(failed)?
            .ok_or_else(|| MpsError::Unresponsive { command: what.to_owned(), after: deadline })
    }

    /// The folder of its pipes.
    pub fn pipes(&self) -> &Path {
        &self.pipes
    }
}

/// Whether a control program knows the third version of MPS (driver 615 on), which has named servers and namespaces. It is asked for its help
/// only: no daemon is needed, and none is started.
pub fn knows_version_3(program: &Path) -> bool {
    let mut call = Command::new(program);
    call.args(["-p", "3", "-h"]);
    let said = run(call, "", DEADLINE).ok().flatten();
    said.is_some_and(|(status, text)| status.success() && ["server", "namespace"].iter().all(|word| text.contains(word)))
}

/// Makes a folder that clients of all users can enter, independent of our umask.
fn make_folder(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.exists()).collect();
    fs::create_dir_all(path)?;
    missing.into_iter().try_for_each(|folder| fs::set_permissions(folder, Permissions::from_mode(0o755)))
}

fn refused(command: &str, answer: &str) -> MpsError {
    MpsError::Refused { command: command.to_owned(), answer: answer.trim().to_owned() }
}

/// Runs a program to its end, and returns its output; nothing if it was killed at the deadline.
fn run(mut call: Command, input: &str, deadline: Duration) -> io::Result<Option<(ExitStatus, String)>> {
    // A file in memory, because a daemon may keep what it inherits: a pipe would never reach its end.
    let mut output = File::from(memfd_create("answer", MemfdFlags::CLOEXEC)?);
    let mut child = call.stdin(Stdio::piped()).stdout(output.try_clone()?).stderr(output.try_clone()?).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input explains why.
        let _ = writeln!(stdin, "{input}");
    }
    if Process::find(child.id()).is_some_and(|process| !process.ends_within(deadline)) {
        give_up(child)?;
        return Ok(None);
    }
    let status = child.wait()?;
    let mut said = Vec::new();
    output.rewind()?;
    output.read_to_end(&mut said)?;
    Ok(Some((status, String::from_utf8_lossy(&said).into_owned())))
}

/// Kills a child. If it hangs in the driver, it ends only when the call returns, so a separate thread waits for it.
fn give_up(mut child: Child) -> io::Result<()> {
    child.kill()?;
    thread::Builder::new().name("reaper".to_owned()).spawn(move || child.wait()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(pipes: impl Into<PathBuf>) -> MpsControl {
        MpsControl::new("GPU-1".parse().unwrap(), pipes, "logs").with_program("/bin/true")
    }

    #[test]
    fn folders_can_be_reached_by_all_users_from_everywhere() {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("mps/GPU-1");
        make_folder(&folder).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&base.path().join("mps")), mode(base.path())), (0o755, 0o755, 0o700), "and no others");
        assert!(control("pipes").pipes().is_absolute());
    }

    #[test]
    fn a_folder_path_too_long_for_sockets_is_refused() {
        let deep = tempfile::tempdir().unwrap().path().join("x".repeat(MAX_FOLDER));
        let refused = control(&deep).start(ClientLimits::default());
        assert!(matches!(refused, Err(MpsError::LongPath { path, most: 88 }) if path == deep && !deep.exists()));
    }
}
