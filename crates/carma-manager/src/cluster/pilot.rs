//! A pilot: a batch job in which an agent runs.

use carma_core::ServerId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::units::UnixMillis;

/// A pilot. It is stored before it is requested, so that a request without an answer is found again by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pilot {
    /// The name of its batch job, which no other has.
    pub name: String,
    /// Its pool.
    pub pool: String,
    /// How far it is.
    pub state: PilotState,
    /// When it was requested.
    pub requested: UnixMillis,
    /// The number of its batch job, once that is known.
    #[serde(default)]
    pub batch_job: Option<String>,
    /// What the batch system says about it: a state and a reason.
    #[serde(default)]
    pub batch_state: Option<String>,
    /// The server of its agent, once it has connected.
    #[serde(default)]
    #[schema(value_type = Option<u32>)]
    pub server: Option<ServerId>,
    /// It is to be cancelled, or to end when it is idle.
    #[serde(default)]
    pub returned: bool,
}

/// How far a pilot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PilotState {
    /// It is being requested. Whether the batch system has it is not known.
    Requesting,
    /// The batch system has it, and its agent has not connected yet.
    Pending,
    /// Its agent has connected.
    Connected,
}

impl Pilot {
    /// Whether its GPUs are still to come.
    pub fn is_pending(&self) -> bool {
        self.state != PilotState::Connected && !self.returned
    }
}
