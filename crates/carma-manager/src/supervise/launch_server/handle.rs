//! The manager's side of the launch server.

use std::fs::{self, File};
use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use thiserror::Error;

use super::message::send;
use super::title;
use crate::supervise::folder::AttemptFolder;
use crate::supervise::fork::is_ready;
use crate::supervise::guard::{ShimError, read_answer};
use crate::supervise::lifeline::Lifeline;

/// The program of this process, also when its file was replaced.
pub const THIS_PROGRAM: &str = "/proc/self/exe";
/// How long supervisors may take to begin.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A killed process closes its files one after the other, within this time.
const EXIT_TIMEOUT: Duration = Duration::from_millis(100);

/// Why the launch server started no supervisors.
#[derive(Debug, Error)]
pub enum LaunchServerError {
    /// It could not be run.
    #[error("cannot run {program} as launch server: {source}")]
    NotRun {
        /// The program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It takes no requests.
    #[error("the launch server accepts no requests: {0}")]
    Refused(#[from] io::Error),
    /// There was no answer in time.
    #[error("the launch server does not answer")]
    Silent,
    /// The supervisors did not begin.
    #[error("the shim did not start: {0}")]
    NotBegun(ShimError),
}

/// Starts supervisors of attempts, by a process of its own that runs from the first of them on. It is killed when this is dropped; attempts continue.
#[derive(Debug)]
pub struct LaunchServer {
    program: PathBuf,
    lifeline: Option<Arc<Lifeline>>,
    process: Mutex<Option<ServerProcess>>,
}

impl LaunchServer {
    /// With this program, for attempts that outlive this process.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), lifeline: None, process: Mutex::default() }
    }

    /// With this program, for attempts that end with this lifeline.
    pub(crate) fn on_lifeline(program: impl Into<PathBuf>, lifeline: Arc<Lifeline>) -> Self {
        Self { lifeline: Some(lifeline), ..Self::new(program) }
    }

    /// The file with the lease of its attempts, if they end with this process.
    pub(crate) fn lease(&self) -> Option<&Path> {
        self.lifeline.as_deref().map(Lifeline::lease)
    }

    /// The pid of the process, if it was started.
    pub fn pid(&self) -> Option<u32> {
        self.process().as_ref().map(|process| process.child.id())
    }

    /// Starts the supervisors of an attempt. Returns when they run independently, or did not begin.
    pub(crate) fn start_supervisors(&self, folder: &AttemptFolder, lock: &File) -> Result<(), LaunchServerError> {
        let (server, begun) = self.request(folder, lock)?;
        match begun {
            // It was killed with the request in its socket. A shim records itself before it runs anything.
            Err(LaunchServerError::NotBegun(ShimError::Vanished)) if self.is_gone(server) && matches!(folder.supervisor(), Ok(None)) => {
                self.request(folder, lock)?.1
            }
            begun => begun,
        }
    }

    /// Sends a request. Returns which process took it, and whether the supervisors have started.
    fn request(&self, folder: &AttemptFolder, lock: &File) -> Result<(u32, Result<(), LaunchServerError>), LaunchServerError> {
        let (answer, theirs) = io::pipe()?;
        let server = self.send(folder.path(), lock, &theirs)?;
        drop(theirs);
        if is_ready(&answer, PollFlags::IN, Instant::now() + TIMEOUT) {
            return Ok((server, read_answer(answer).map_err(LaunchServerError::NotBegun)));
        }
        // It may be stopped: the next request goes to a new one.
        *self.process() = None;
        Err(LaunchServerError::Silent)
    }

    fn send(&self, folder: &Path, lock: &File, answer: &PipeWriter) -> Result<u32, LaunchServerError> {
        let mut process = self.process();
        if let Some(process) = &*process
            && send(&process.socket, folder, lock, answer).is_ok()
        {
            return Ok(process.child.id());
        }
        // It was not started yet, or was killed.
        let process = process.insert(self.run().map_err(|source| LaunchServerError::NotRun { program: self.program.clone(), source })?);
        send(&process.socket, folder, lock, answer)?;
        Ok(process.child.id())
    }

    /// Whether the process with this pid has ended, or is about to.
    fn is_gone(&self, pid: u32) -> bool {
        let ends = |process: &ServerProcess| is_ready(&process.socket, PollFlags::empty(), Instant::now() + EXIT_TIMEOUT);
        self.process().as_ref().is_none_or(|process| process.child.id() != pid || ends(process))
    }

    fn run(&self) -> io::Result<ServerProcess> {
        let (socket, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let mut command = Command::new(&self.program);
        // It has the name of this process, whatever its program is called here.
        let name = fs::read_to_string("/proc/self/comm").unwrap_or_default();
        command.arg0(name.trim_end()).arg("launch-server").env_clear().envs([title::room()]).current_dir("/");
        // In its own process group, Ctrl-C in the manager's terminal does not end it.
        command.process_group(0).stdin(Stdio::from(theirs)).stderr(Stdio::null());
        command.stdout(self.lifeline.as_ref().map_or_else(|| Ok(Stdio::null()), |lifeline| lifeline.end_for_guards())?);
        Ok(ServerProcess { child: command.spawn()?, socket })
    }

    fn process(&self) -> MutexGuard<'_, Option<ServerProcess>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The running process.
#[derive(Debug)]
struct ServerProcess {
    child: Child,
    socket: OwnedFd,
}

impl Drop for ServerProcess {
    /// Killed, it loses nothing: it has no state.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
