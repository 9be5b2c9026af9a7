//! The manager's side of agents: it accepts their connections, and runs attempts on their servers.
//!
//! ```text
//!  agents ──► listener ──► a task for each connection ──► engine (samples, reports, hellos)
//!                               │        ▲
//!                    copies of logs      └── orders ── AgentExecutor ◄── Servers (routes by server) ◄── engine
//! ```

mod executor;
mod listener;
mod log_copy;
mod servers;
mod session;

pub(crate) use self::executor::AgentExecutor;
pub(crate) use self::listener::{AgentListener, ListenError};
pub(crate) use self::servers::Servers;
pub(crate) use self::session::{AgentReport, Session};
