//! Supervised attempts: a small process (the shim) runs each, keeps its logs, and records how it ended.
//!
//! ```text
//!  manager ── request ──► launch server ── forks ──► guard ── forks ──► shim ── runs ──► the job
//!     │  (folder, lock)    (one for all)              │ kills what is    │ logs, signals, exit.json
//!     │                                               │ left of the job  │
//!     └── finds and signals them through the folder ◄─┴──────────────────┘
//!                                                     └── forks ──► processes of the user: write to `--output`, look for checkpoints
//! ```
//!
//! The manager locks the folder before it requests anything, and guard and shim get the lock. It is free only when all of them are gone: an attempt
//! whose lock is free and that has no recorded exit is lost, and never starts again. The lock works on local disks only.
//!
//! An attempt has few files: `lock`, `order.json`, `shim.pid` (guard, shim and control group), `progress` and `exit.json`. Logs are made with their first
//! line, and processes of the user are forked only for what the order needs.
//!
//! The record of the exit survives a crash of the manager. It survives a power cut if the manager was gone when the job ended: then the shim syncs it.
//! A manager that is there writes the end into its own store before it acts, and that write is synced.
//!
//! Which process dies with which:
//! - The launch server ends with its manager. Attempts continue, as they do when the launch server is killed (`launch_server`).
//! - The first process ended: everything it left behind is killed before the exit is recorded.
//! - The shim was killed: the guard inherits all of its descendants, even detached ones, and kills them.
//! - The guard was killed: the shim continues.
//! - A process of the user that serves the shim was killed: the copy of the output ends; the job continues.
//! - Both were killed at once: the first process dies with the shim (by the kernel), and the next process that checks the attempt kills the rest
//!   of its control group. Without a control group, detached processes are not found.
//! - An agent on another server died or lost its lease: each guard kills its shim (`lifeline`).
//! - A terminal hangs up with its shim: the client receives the exit of the job, or loses the connection.
//! - Containers belong to a daemon; guard and shim remove them by name.

mod cgroup;
mod checkpoint_scan;
mod child;
mod client;
mod connect;
mod console;
mod dispositions;
mod folder;
mod fork;
mod fork_as_user;
mod guard;
mod launch_server;
mod lifeline;
mod log;
mod output_copy;
mod owners;
mod peek;
mod processes;
mod running;
mod scrollback;
mod shim;
mod signals;
mod state;
mod stream;
mod supervisor_log;
mod switches;
mod user_processes;
mod watch;

pub(crate) use cgroup::{Cgroup, group_of_jobs, remove_abandoned};
pub use cgroup::{Enforced, GroupSupport, GroupVersion, enforceable, prepare_group_of_jobs};
pub(crate) use checkpoint_scan::last_change;
pub use connect::connect_terminal;
pub use dispositions::keep_exits_of_children;
pub use folder::{AttemptFolder, FolderError};
pub use guard::{ShimError, run};
pub use launch_server::{LaunchServer, LaunchServerError, THIS_PROGRAM, serve};
pub(crate) use lifeline::{Lifeline, since_boot};
pub(crate) use log::Gap;
pub use owners::Owners;
pub use peek::{FolderState, peek};
pub(crate) use shim::CLEANUP_TIMEOUT;
pub use state::{AttemptState, Supervised, find};
pub(crate) use switches::NUMBER;
pub use watch::ExitWatch;
