//! The order for an attempt's supervisor, and the record of the end.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::SystemTime;

use carma_core::{AttemptId, MiB, Seconds};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::request::HIDDEN;
use crate::submission::looks_secret;
use crate::umask::Umask;

/// What a supervisor runs. It is a file in the attempt's folder, so that a supervisor needs nothing else. A program of another version may have
/// written it, so unknown fields are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Which attempt it is.
    pub attempt: AttemptId,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its working directory.
    pub directory: PathBuf,
    /// Its whole environment.
    pub environment: BTreeMap<String, String>,
    /// Its umask; unset: the usual one for another user, otherwise the supervisor's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<Umask>,
    /// The user to run as; unset: the supervisor's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<RunAs>,
    /// Where a copy of its output goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<PathBuf>,
    /// Where a copy of its errors goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<PathBuf>,
    /// The most that is kept of each log, in bytes: the beginning, and the end.
    pub log_limit: u64,
    /// What the kernel enforces, where it can.
    #[serde(default)]
    pub limits: HostLimits,
    /// The control groups that were made for it; unset: its supervisor makes them, if it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupFolders>,
    /// The folder for its checkpoints, if it can write them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_folder: Option<PathBuf>,
    /// The number of the signal that makes it write a checkpoint and end.
    pub checkpoint_signal: i32,
    /// A command that removes its container, which belongs to a daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub afterwards: Option<Vec<String>>,
    /// The soft limit of its open files; unset: that of its supervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// The file with the lease of the agent that started it: the attempt ends with the agent. Unset: it outlives its manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<PathBuf>,
    /// Its terminal; without one it has no input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<Terminal>,
}

impl Order {
    /// Hides the values of secrets. False if there are none.
    pub(crate) fn hide_secrets(&mut self) -> bool {
        let secrets = self.environment.iter_mut().filter(|(name, value)| looks_secret(name) && *value != HIDDEN);
        secrets.map(|(_, value)| HIDDEN.clone_into(value)).count() > 0
    }

    /// The umask that the job gets, if it is not the supervisor's own.
    pub fn job_umask(&self) -> Option<Umask> {
        self.umask.or_else(|| self.user.as_ref().map(|_| Umask::USUAL))
    }
}

/// Limits of an attempt on its host. Each is unset where there is none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostLimits {
    /// Memory.
    pub memory: Option<MiB>,
    /// Cores.
    pub cpus: Option<u32>,
    /// Processes and threads.
    pub processes: Option<u64>,
    /// The numbers of the GPU device files that it may open.
    pub gpus: Option<Vec<u32>>,
}

/// The folders of an attempt's control groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupFolders {
    /// The group that tells which processes belong to the attempt.
    #[serde(rename = "cgroup")]
    pub main: PathBuf,
    /// Groups of version 1 with limits only.
    #[serde(rename = "limited_in", default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<PathBuf>,
}

/// A terminal that people can attach to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terminal {
    /// The job is ended when nothing was typed or printed for this long.
    pub idle_limit: Option<Seconds>,
    /// Its size until a client attaches.
    pub size: TerminalSize,
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

impl Default for TerminalSize {
    /// The usual size of a terminal.
    fn default() -> Self {
        Self { rows: 24, columns: 80 }
    }
}

/// A user to run as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunAs {
    /// The user id.
    pub uid: u32,
    /// The primary group.
    pub gid: u32,
    /// The name, used to find the other groups.
    pub name: String,
    /// The home folder.
    pub home: PathBuf,
}

/// How an attempt ended, as its supervisor saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It exited by itself.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// It could not be started.
    NotStarted(String),
    /// It was ended, because nothing was typed or printed at its terminal for this long.
    Idle(Seconds),
}

impl fmt::Display for Exit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "it exited with code {code}"),
            Self::Signal(signal) => write!(formatter, "it was ended by signal {signal}"),
            Self::NotStarted(reason) => write!(formatter, "it could not be started: {reason}"),
            Self::Idle(limit) if limit.get() % 60.0 == 0.0 => write!(formatter, "it was idle for {} min", limit.get() / 60.0),
            Self::Idle(limit) => write!(formatter, "it was idle for {} s", limit.get()),
        }
    }
}

/// The record of an attempt's end. Nothing of the attempt runs any more. A shim of another version may have written it, so unknown fields are
/// ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// How it ended.
    pub exit: Exit,
    /// When it was started.
    pub started: SystemTime,
    /// When its first process was gone.
    pub ended: SystemTime,
    /// How many of its processes the kernel ended for lack of memory, if its control group counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oom_kills: Option<u64>,
    /// It reached its own limit of host memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_memory_limit: bool,
}

/// How long an attempt ran, and how long ago it ended, in its host's time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Past {
    /// How long it ran.
    pub(crate) ran: Seconds,
    /// How long ago it ended.
    pub(crate) ago: Seconds,
}

impl Ended {
    /// As seen from now. A clock that was set back counts as no time.
    pub(crate) fn past(&self) -> Past {
        let between = |from: SystemTime, to: SystemTime| {
            to.duration_since(from).ok().and_then(|span| Seconds::new(span.as_secs_f64()).ok()).unwrap_or(Seconds::ZERO)
        };
        Past { ran: between(self.started, self.ended), ago: between(self.ended, SystemTime::now()) }
    }
}
