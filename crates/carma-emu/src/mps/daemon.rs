//! The control daemon: it listens, starts servers, and lets clients in.

use std::fs::{self, File, Permissions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Child, ChildStdin, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::fs::{FlockOperation, Mode, fcntl_lock};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Uid, getuid, umask};
use thiserror::Error;

use super::log::Log;
use super::message::{Connection, Reply, Request};
use super::roster::{Roster, Step};
use super::{CLIENT_TERMINATED, CONNECTION_FAILED, CONTROL_SOCKET, Folders, LISTENING, SERVER, SERVER_LOG, SERVER_NOT_READY};
use crate::machine::{Machine, VARIABLE};

/// Why there is no daemon.
#[derive(Debug, Error)]
pub(super) enum DaemonError {
    /// A daemon is already running.
    #[error("An instance of this daemon is already running")]
    AlreadyRunning,
    /// One of its files cannot be made.
    #[error("Cannot start the daemon: {path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// A daemon that runs.
#[derive(Debug)]
pub(super) struct Daemon {
    pub(super) machine: Machine,
    /// Its user.
    pub(super) owner: Uid,
    folders: Folders,
    log: Log,
    /// Held while the daemon runs. Closing any other handle of this file in this process would release it.
    _lock: File,
    shared: Mutex<Shared>,
    pub(super) changed: Condvar,
}

/// The state that all its threads share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) roster: Roster,
    /// The server's input: it serves until that is closed.
    link: Option<ChildStdin>,
}

/// The file among its pipes that the daemon keeps locked; there is no pid file.
const LOCK: &str = "control_lock";

/// Runs a daemon until it receives `quit`.
pub(super) fn run(machine: Machine, folders: Folders) -> Result<(), DaemonError> {
    // Clients of all users need access to our files, independent of our umask.
    umask(Mode::from_raw_mode(0o022));
    let in_file = |path: &Path| {
        let path = path.to_owned();
        |error| DaemonError::File { path, error }
    };
    fs::create_dir_all(&folders.pipes).map_err(in_file(&folders.pipes))?;
    let [socket, lock] = [CONTROL_SOCKET, LOCK].map(|name| folders.pipes.join(name));
    let held = File::options().create(true).truncate(false).write(true).open(&lock).map_err(in_file(&lock))?;
    match fcntl_lock(&held, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::AGAIN | Errno::ACCESS) => return Err(DaemonError::AlreadyRunning),
        locked => locked.map_err(io::Error::from).map_err(in_file(&lock))?,
    }
    // As NVIDIA's daemon: any user can see who holds the lock.
    let _ = held.set_permissions(Permissions::from_mode(0o666));
    let log = Log::open(&folders.logs, "control.log", "Control").map_err(in_file(&folders.logs))?;
    // Servers write to theirs as the users they serve.
    Log::open(&folders.logs, SERVER_LOG, "Server").map_err(in_file(&folders.logs))?.open_to_all();
    // The socket of a killed daemon.
    let _ = fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).map_err(in_file(&socket))?;
    fs::set_permissions(&socket, Permissions::from_mode(0o666)).map_err(in_file(&socket))?;
    log.line(format_args!("Starting control daemon using socket {}", socket.display()));
    log.line(format_args!("To connect CUDA applications to this daemon, set env CUDA_MPS_PIPE_DIRECTORY={}", folders.pipes.display()));
    // The parent waits for this line, and may stop reading after it.
    let _ = writeln!(io::stdout(), "{LISTENING} {}", socket.display());
    let daemon =
        Arc::new(Daemon { machine, owner: getuid(), folders, log, _lock: held, shared: Mutex::default(), changed: Condvar::new() });
    for stream in listener.incoming().flatten() {
        let daemon = Arc::clone(&daemon);
        thread::spawn(move || daemon.attend(stream));
    }
    Ok(())
}

impl Daemon {
    pub(super) fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a connection until it is closed.
    fn attend(self: &Arc<Self>, stream: UnixStream) -> io::Result<()> {
        let peer = socket_peercred(&stream)?;
        self.log.line("Accepting connection...");
        let mut connection = Connection::new(stream);
        let (pid, user) = (peer.pid.as_raw_nonzero().get().cast_unsigned(), peer.uid.as_raw());
        while let Some(request) = connection.receive()? {
            match request {
                Request::Connect => return self.attend_client(connection, pid, user),
                Request::Command(line) => {
                    self.log.line(format_args!("Cmd:{line}"));
                    connection.send(&Reply::Answer(self.answer(&line, user)))?;
                    self.exit_if_done();
                }
            }
        }
        Ok(())
    }

    /// A client is served while it stays connected.
    fn attend_client(self: &Arc<Self>, mut connection: Connection, pid: u32, user: u32) -> io::Result<()> {
        connection.send(&Reply::Received)?;
        let at_once = self.shared().roster.step(user) == Step::Serve;
        let course = if at_once { "Server already exists" } else { "Server is not ready, push client to pending list" };
        self.log.line(format_args!("NEW CLIENT {pid} from user {user}: {course}"));
        let joined = self.server_for(user).and_then(|mut shared| shared.roster.join(pid).ok_or(SERVER_NOT_READY));
        let (client, server, provision) = match joined {
            Ok(joined) => joined,
            Err(code) => return connection.send(&Reply::Refused(code)),
        };
        // A client sends nothing more: the next event is its end.
        let parted = connection.send(&Reply::Served { server, provision }).and_then(|()| connection.receive::<Request>());
        let mut shared = self.shared();
        shared.roster.leave(client);
        self.settle(&mut shared);
        parted.map(drop)
    }

    /// Waits for a server that can accept a client of this user; the error is a CUDA error number.
    pub(super) fn server_for(self: &Arc<Self>, user: u32) -> Result<MutexGuard<'_, Shared>, u32> {
        // Only root can start a server that runs as another user.
        if !self.owner.is_root() && user != self.owner.as_raw() {
            return Err(CONNECTION_FAILED);
        }
        let mut shared = self.shared();
        let failed = shared.roster.failed_starts;
        loop {
            match shared.roster.step(user) {
                _ if shared.roster.failed_starts != failed => return Err(CONNECTION_FAILED),
                Step::Serve if shared.roster.server.as_ref().is_some_and(|server| self.is_faulty(server.pid)) => {
                    return Err(SERVER_NOT_READY);
                }
                Step::Serve => return Ok(shared),
                Step::Refuse(code) => return Err(code),
                Step::Start => self.start_server(&mut shared, user).map_err(|_| CONNECTION_FAILED)?,
                Step::Replace => self.close(&mut shared),
                Step::Wait => {}
            }
            shared = self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether one of a server's clients brought its GPU into an error.
    pub(super) fn is_faulty(&self, server: u32) -> bool {
        let faulty = |code| code != 0 && code != CLIENT_TERMINATED;
        self.machine.with(|state| state.contexts().iter().any(|context| context.server == server && faulty(context.fault))).unwrap_or(false)
    }

    /// The server accepts no more clients, and ends with its last.
    pub(super) fn close(&self, shared: &mut Shared) {
        if let Some(server) = &mut shared.roster.server {
            server.closing = true;
        }
        self.settle(shared);
    }

    fn settle(&self, shared: &mut Shared) {
        if shared.roster.is_over() {
            shared.link = None;
        }
        self.changed.notify_all();
    }

    pub(super) fn start_server(self: &Arc<Self>, shared: &mut Shared, user: u32) -> io::Result<()> {
        let mut command = process::Command::new(self.machine.programs().join(SERVER));
        command.env(VARIABLE, self.machine.folder()).env("CUDA_MPS_LOG_DIRECTORY", &self.folders.logs);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // A server runs as the user it serves. Its group does not matter, as long as it is not root's.
        if user != self.owner.as_raw() {
            command.uid(user).gid(user);
        }
        let mut server = command.spawn().inspect_err(|error| self.log.line(format_args!("Failed to start server: {error}")))?;
        self.log.line(format_args!("Starting new server {} for user {user}", server.id()));
        shared.link = server.stdin.take();
        shared.roster.started(server.id(), user);
        let daemon = Arc::clone(self);
        thread::spawn(move || daemon.attend_server(server));
        Ok(())
    }

    /// Follows a server from its start to its end.
    fn attend_server(&self, mut server: Child) {
        let pid = server.id();
        let mut line = String::new();
        let ready = server.stdout.take().is_some_and(|output| BufReader::new(output).read_line(&mut line).is_ok_and(|length| length > 0));
        if ready {
            if let Some(server) = self.shared().roster.server(pid) {
                server.ready = true;
            }
            self.log.line(format_args!("NEW SERVER {pid}: Ready"));
            self.changed.notify_all();
        }
        match server.wait() {
            Ok(status) => self.log.line(format_args!("Server {pid} exited: {status}")),
            Err(error) => self.log.line(format_args!("Server {pid} lost: {error}")),
        }
        let mut shared = self.shared();
        shared.roster.ended(pid);
        shared.link = None;
        self.changed.notify_all();
    }

    /// Ends the process once it received `quit` and serves no client.
    fn exit_if_done(&self) {
        let shared = self.shared();
        if shared.roster.quitting && shared.roster.server.is_none() {
            let _ = fs::remove_file(self.folders.socket());
            self.log.line("Exit");
            process::exit(0);
        }
    }
}
