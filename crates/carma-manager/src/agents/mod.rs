//! The manager's side of agents: it accepts their connections, and runs attempts on their servers.
//!
//! ```text
//!  agents ──► listener ──► a task for each connection ──► engine (samples, reports, hellos)
//!                               │        ▲
//!                    copies of logs      └── orders ── AgentExecutor ◄── Servers (routes by server) ◄── engine
//!                                                         └── AgentEstimates ◄── threads that wait for dry runs
//! ```

mod estimates;
mod executor;
mod listener;
mod log_copy;
mod servers;
mod session;
mod terminals;

use std::sync::Arc;

use crate::executor::Executor;

pub(crate) use self::estimates::AgentWait;
pub(crate) use self::executor::AgentExecutor;
pub(crate) use self::listener::{AgentListener, address_file, secret_file};
pub(crate) use self::log_copy::complete as complete_logs;
pub(crate) use self::servers::Servers;
pub(crate) use self::session::{AgentReport, Session};

/// The executor of an engine, and its part for agents.
#[derive(Debug, Clone)]
pub(crate) struct Executors {
    pub(crate) all: Arc<dyn Executor>,
    /// Unset in tests without agents.
    pub(crate) agents: Option<Arc<AgentExecutor>>,
}
