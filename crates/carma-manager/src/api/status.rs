//! The manager itself.

use carma_core::{JobId, Seconds};
use serde::{Deserialize, Serialize};

use crate::store::{Phase, UnixMillis};

/// How the manager is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// When it was started.
    pub started: UnixMillis,
    /// How long ago that is.
    pub up: Seconds,
    /// It watches, and launches nothing.
    pub observes: bool,
    /// It launches nothing more, and ends when nothing runs.
    pub draining: bool,
    /// Which GPUs it manages, in words.
    pub world: String,
    /// How much faster than ours their time passes; 1 for real ones.
    pub speed: f64,
    /// How many there are.
    pub gpus: u32,
    /// How jobs are mapped to them.
    pub policy: String,
    /// Jobs that are not over.
    pub jobs: Counts,
    /// What an operator should know: a full disk, a host that is short, a GPU that is lost.
    pub troubles: Vec<String>,
}

/// Jobs that are not over, by where they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Launched.
    pub running: u64,
    /// In a queue.
    pub waiting: u64,
    /// Kept back.
    pub held: u64,
}

/// To end the manager; jobs that run go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shutdown {
    /// Launch nothing more, and end when nothing runs.
    pub drain: bool,
}

/// Something changed: what is told to whoever listens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "update", rename_all = "snake_case")]
pub enum Update {
    /// A job stands elsewhere than before.
    Job {
        /// Which.
        job: JobId,
        /// Whose.
        uid: u32,
        /// Where it stands.
        state: Phase,
        /// The number of its latest attempt.
        attempt: u32,
        /// What happened, for people.
        text: String,
    },
    /// GPUs were looked at: ask for them.
    Gpus,
    /// Something of a GPU or of the host changed.
    Machine {
        /// What happened, for people.
        text: String,
    },
}
