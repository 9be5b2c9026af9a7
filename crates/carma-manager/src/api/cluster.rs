//! Servers of agents, pools and their pilots.

use carma_core::ServerId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::cluster::{Pilot, Pool, PoolName, PoolSettings};
use crate::units::UnixMillis;

/// A server of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServerDetail {
    /// Its number. Its GPUs are named after it.
    pub id: ServerId,
    /// The name of its host.
    pub node: String,
    /// Whether its agent is connected.
    pub connected: bool,
    /// How many GPUs it has.
    pub gpus: u32,
    /// How many jobs run there.
    pub jobs: u32,
    /// The pilot that its agent runs in.
    pub pilot: Option<String>,
    /// The pool of the pilot.
    pub pool: Option<String>,
    /// Its batch job.
    pub batch_job: Option<String>,
    /// When its agent first connected.
    pub joined: UnixMillis,
    /// When its batch job ends.
    pub ends: Option<UnixMillis>,
    /// Why nothing new starts there.
    pub draining: Option<String>,
}

/// A pool and its pilots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolDetail {
    /// The pool.
    #[serde(flatten)]
    pub pool: Pool,
    /// Its pilots.
    pub pilots: Vec<Pilot>,
    /// Why it requests no pilot now; unset if it requests one next.
    pub note: Option<String>,
}

/// A pool to add.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NewPool {
    /// Its name.
    pub name: PoolName,
    /// Which pilots it requests, and when.
    pub settings: PoolSettings,
}

/// A change of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PoolChange {
    /// It requests no more pilots.
    Pause,
    /// It requests pilots again.
    Resume,
    /// Its pending pilots are cancelled, the others end with their jobs, and then it is gone.
    Remove,
}

/// What the batch system says about a pilot of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolTest {
    /// Whether it would accept it.
    pub accepted: bool,
    /// Its words.
    pub text: String,
}
