//! MPS: processes of one user that share a GPU through a server.
//!
//! ```text
//!  MpsControl ── nvidia-cuda-mps-control ──► control daemon (one a GPU) ──► server (one user's) ◄── clients
//!      └─ Health ──► Watch ── ServerDied ──► the clients' jobs are put back
//! ```
//!
//! Each GPU has a daemon of its own that sees this GPU only, with its own folder of pipes: a server that dies takes the clients of one GPU with it.

mod answers;
mod control;
mod error;
mod failure;
mod health;
mod limits;
mod rights;
mod watch;

pub use answers::{ServerState, memory_limit, percentage, process_numbers, server_state};
pub use control::{MpsControl, PROGRAM, knows_version_3};
pub use error::MpsError;
pub use failure::MpsFailure;
pub use health::{Health, Server};
pub use limits::ClientLimits;
pub use watch::{ServerDied, Watch};
