//! An attempt as it is handed to its supervisor, and what the supervisor writes down of it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::SystemTime;

use carma_core::{AttemptId, Seconds};
use serde::{Deserialize, Serialize};

/// What a supervisor is to run. It is a file in the attempt's folder, so that a supervisor needs nothing from anybody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Which attempt it is.
    pub attempt: AttemptId,
    /// The program and its arguments, everything worked out.
    pub command: Vec<String>,
    /// Where to run it.
    pub directory: PathBuf,
    /// All of its environment.
    pub environment: BTreeMap<String, String>,
    /// Whose it is; unset: the supervisor's own user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<RunAs>,
    /// A copy of its output goes there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<PathBuf>,
    /// And of its errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<PathBuf>,
    /// The most that is kept of each log, in bytes: the beginning, and the end.
    pub log_limit: u64,
    /// The number of the signal that makes it write a checkpoint and end.
    pub checkpoint_signal: i32,
    /// A command that ends what is none of its processes: its container belongs to a daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub afterwards: Option<Vec<String>>,
    /// How many files it may have open at once, unless it asks for more; unset: as many as its supervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// The terminal it is to have; without one it has no input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<Terminal>,
}

/// A terminal that people can attach to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terminal {
    /// The job is ended when nothing was typed or printed for so long.
    pub idle_limit: Option<Seconds>,
    /// How large it is until somebody attaches to it.
    pub size: TerminalSize,
}

/// How large a terminal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

impl Default for TerminalSize {
    /// What everybody takes a terminal of unknown size for.
    fn default() -> Self {
        Self { rows: 24, columns: 80 }
    }
}

/// A user to run as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunAs {
    /// The number.
    pub uid: u32,
    /// The first group.
    pub gid: u32,
    /// The name, by which the other groups are found.
    pub name: String,
    /// The folder that is theirs.
    pub home: PathBuf,
}

/// How an attempt ended, as its supervisor saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It exited by itself.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// It could not be started.
    NotStarted(String),
    /// It was ended, as nothing had been typed or printed at its terminal for so long.
    Idle(Seconds),
}

impl fmt::Display for Exit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "it exited with code {code}"),
            Self::Signal(signal) => write!(formatter, "signal {signal} ended it"),
            Self::NotStarted(reason) => write!(formatter, "it could not be started: {reason}"),
            Self::Idle(limit) if limit.get() % 60.0 == 0.0 => write!(formatter, "it was idle for {} min", limit.get() / 60.0),
            Self::Idle(limit) => write!(formatter, "it was idle for {} s", limit.get()),
        }
    }
}

/// The end of an attempt, as it is kept: nothing of the attempt runs any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// How it ended.
    pub exit: Exit,
    /// When it was started.
    pub started: SystemTime,
    /// When its first process was gone.
    pub ended: SystemTime,
}
