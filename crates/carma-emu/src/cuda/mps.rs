//! A CUDA program's side of MPS: it becomes a client if a daemon listens.

use std::env;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use super::error::CudaError;
use crate::machine::Machine;
use crate::mps::Folders;
use crate::mps::message::{Connection, Reply, Request};
use crate::mps::provision::Provision;

/// The MPS settings of a program.
#[derive(Debug, Clone)]
pub struct MpsSettings {
    /// The folder of the daemon's pipes.
    pub pipes: PathBuf,
    /// The value of `CUDA_MPS_ACTIVE_THREAD_PERCENTAGE`.
    pub threads: Option<String>,
    /// The value of `CUDA_MPS_PINNED_DEVICE_MEM_LIMIT`.
    pub memory: Option<String>,
    /// Timeout for the daemon's first answer.
    pub timeout: Duration,
}

impl MpsSettings {
    /// From this process's environment.
    pub fn of_environment(machine: &Machine) -> Self {
        let [threads, memory] = ["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"].map(|name| env::var(name).ok());
        Self { pipes: Folders::of(machine.folder()).pipes, threads, memory, timeout: Duration::from_secs(10) }
    }
}

/// This process as a client of an MPS server, until this is dropped.
#[derive(Debug)]
pub struct MpsConnection {
    server: u32,
    provision: Provision,
    /// The daemon lists us as a client while it is open.
    _connection: Connection,
}

impl MpsConnection {
    /// Becomes a client, if a daemon listens. Like CUDA, it waits for as long as another user is served.
    pub fn open(settings: &MpsSettings) -> Result<Option<Self>, CudaError> {
        let stream = match UnixStream::connect(settings.pipes.join("control")) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => return Ok(None),
            connected => connected.map_err(|_| CudaError::MpsUnreachable)?,
        };
        match ask(Connection::new(stream), settings.timeout) {
            Ok((Some(Reply::Served { server, provision }), connection)) => {
                let own = Provision::of_client(settings.threads.as_deref(), settings.memory.as_deref());
                Ok(Some(Self { server, provision: own.narrowed(&provision), _connection: connection }))
            }
            Ok((Some(Reply::Refused(code)), _)) => Err(CudaError::from_code(code)),
            _ => Err(CudaError::MpsUnreachable),
        }
    }

    /// The server's process.
    pub const fn server(&self) -> u32 {
        self.server
    }

    /// The share of the multiprocessors that may be used, in whole percent.
    pub(super) fn threads(&self) -> u32 {
        self.provision.threads.ceil() as u32
    }

    /// Most memory in bytes on a GPU, by the program's own number for it.
    pub(super) fn memory(&self, ordinal: usize) -> u64 {
        self.provision.memory.get(&ordinal).copied().unwrap_or(u64::MAX)
    }
}

/// The daemon's final answer to a request to connect.
fn ask(mut connection: Connection, timeout: Duration) -> io::Result<(Option<Reply>, Connection)> {
    connection.stream().set_read_timeout(Some(timeout))?;
    connection.send(&Request::Connect)?;
    let mut reply = connection.receive()?;
    if reply == Some(Reply::Received) {
        connection.stream().set_read_timeout(None)?;
        reply = connection.receive()?;
    }
    Ok((reply, connection))
}
