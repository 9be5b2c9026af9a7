//! A blocking client of the manager, for the command line and other programs.
//!
//! ```text
//!  Client::connect() ──► Address (a socket, or a host with a token) ──► Connection (kept for many calls)
//!        │                                                                │
//!        ├── submit, queue, act, ... ──► one request, one typed answer ◄──┤
//!        └── logs, events, export ─────► bytes, messages or jobs as they come
//! ```

mod address;
mod calls;
mod connection;
mod error;
mod events;
mod query;
mod streams;

pub use address::{Address, CA_VARIABLE, HOST_VARIABLE, TOKEN_VARIABLE, Token};
pub use calls::Client;
pub(crate) use connection::SYSTEM_ROOTS;
pub use error::ClientError;
pub use events::{Event, Events};
pub use streams::{Export, Log};
