//! A server of an agent.

use carma_core::{MiB, ServerId, Topology};
use serde::{Deserialize, Serialize};

use crate::host_gpus::Device;
use crate::units::UnixMillis;

/// What a server has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ServerFacts {
    pub(crate) devices: Vec<Device>,
    pub(crate) topology: Option<Topology>,
    pub(crate) cores: Option<u32>,
    pub(crate) host_memory: Option<MiB>,
}

/// A server that an agent offers. Numbers are never used again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JoinedServer {
    /// Its number.
    pub id: ServerId,
    /// The pilot that its agent runs in.
    pub pilot: Option<String>,
    /// Its agent process.
    pub incarnation: String,
    /// The name of its host.
    pub node: String,
    /// Its batch job.
    pub batch_job: Option<String>,
    /// What it has.
    pub(crate) facts: ServerFacts,
    /// When its agent first connected.
    pub joined: UnixMillis,
    /// When its batch job ends.
    pub ends: Option<UnixMillis>,
}
