//! Servers beyond this host, and where they come from: leaf types that engine, store and API share.
//!
//! A *pool* says which pilots the manager may request of a batch system. A *pilot* is one batch job: GPUs of a node for some hours. A *server* is what
//! the agent in a pilot offers. An agent that was started by hand is a server without a pilot.

mod pilot;
mod pool;
mod server;

pub use self::pilot::{Pilot, PilotState};
pub use self::pool::{Pool, PoolName, PoolNameError, PoolPause, PoolSettings};
pub use self::server::JoinedServer;
pub(crate) use self::server::ServerFacts;
