//! A stand-in for MPS: its control program and daemon, and its server.
//!
//! ```text
//!  nvidia-cuda-mps-control ─┐                                            ┌─► nvidia-cuda-mps-server: a process with a context on the GPU
//!  (commands on its input)  ├─ socket `control` ─► daemon (-d or -f) ────┘   (its input stays open for as long as it is to serve)
//!  cuda::MpsConnection ─────┘  messages, a line each     Roster: who is served
//! ```
//!
//! The daemon only says who may be a client, and with which limits; what clients do to each other is worked out from the machine's state.

mod answer;
mod command;
mod daemon;
mod log;
pub(crate) mod message;
mod program;
pub(crate) mod provision;
mod roster;
mod server;

use std::env;
use std::path::{Path, PathBuf};

pub(crate) use program::control;
pub(crate) use server::serve;

/// CUDA's error numbers for MPS.
const CONNECTION_FAILED: u32 = 805;
const SERVER_NOT_READY: u32 = 807;
const MAX_CLIENTS_REACHED: u32 = 808;
const CLIENT_TERMINATED: u32 = 810;
/// The stand-in for the server.
const SERVER: &str = "nvidia-cuda-mps-server";
/// The stand-in for the control program and its daemon.
const CONTROL: &str = "nvidia-cuda-mps-control";

/// The name of the daemon's socket among its pipes.
const CONTROL_SOCKET: &str = "control";
/// The first words of a daemon that listens, to the program that started it.
const LISTENING: &str = "Listening on";
/// The log that servers write.
const SERVER_LOG: &str = "server.log";

/// The folders of a daemon's pipes and logs.
#[derive(Debug, Clone)]
pub(crate) struct Folders {
    pub(crate) pipes: PathBuf,
    pub(crate) logs: PathBuf,
}

impl Folders {
    /// The folders in the variables, or the machine's own.
    pub(crate) fn of(machine: &Path) -> Self {
        let own = Self::in_machine(machine);
        let folder = |name: &str, own: PathBuf| env::var_os(name).filter(|value| !value.is_empty()).map_or(own, PathBuf::from);
        Self { pipes: folder("CUDA_MPS_PIPE_DIRECTORY", own.pipes), logs: folder("CUDA_MPS_LOG_DIRECTORY", own.logs) }
    }

    /// In the machine's own folder: each machine has its daemon, as each server has one in `/tmp/nvidia-mps`.
    fn in_machine(machine: &Path) -> Self {
        let folder = machine.join("nvidia-mps");
        Self { pipes: folder.clone(), logs: folder }
    }

    /// The socket that the daemon listens at.
    pub(crate) fn socket(&self) -> PathBuf {
        self.pipes.join(CONTROL_SOCKET)
    }
}
