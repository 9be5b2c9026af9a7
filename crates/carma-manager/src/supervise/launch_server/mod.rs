//! The launch server: a small process that forks the supervisors of attempts, so that no attempt pays for the start of a program.
//!
//! ```text
//!  manager ── folder, its lock, a pipe ──► launch server ── forks ──► guard ── forks ──► shim ── runs ──► the job
//!     ▲         (one message each)                                                        │
//!     └───────────────── by the pipe: it runs, or why not ◄───────────────────────────────┘
//! ```
//!
//! The manager starts `carma launch-server` when it first needs it. The server has one thread, no variables of the manager and no files but its
//! socket, so its forks are cheap and inherit nothing. It keeps no state:
//! - It ends with its manager, by the end of the socket. Supervisors continue.
//! - If it is killed, the manager starts it again. A request that it took and did not carry out closes the pipe and frees the lock.
//! - It is the same program as its manager, also when the file of the program was replaced.

mod handle;
mod message;
mod process;
mod title;

pub use handle::{LaunchServer, LaunchServerError, THIS_PROGRAM};
pub use process::serve;
