//! Supervised attempts: a small process of its own runs each, keeps its logs, and writes down how it ended.
//!
//! ```text
//!  manager ── spawns ──► carma shim FOLDER ── forks ──► guard ── forks ──► shim ── runs ──► the job
//!     │                   (ends when the                 │ ends what is     │ logs, signals, exit.json
//!     │                    shim has begun)               │ left of the job  │
//!     └── finds and signals them through FOLDER ◄────────┴──────────────────┘
//! ```
//!
//! The manager locks FOLDER before it spawns anything, and guard and shim inherit the lock: it is free only when all of them are gone, so an attempt
//! whose lock is free and whose exit is not written down is lost, and can never begin again. The lock is of the kind that must be on a local disk.
//!
//! Who dies with whom:
//! - The first process ended: everything it left behind is killed before the exit is written down.
//! - The shim was killed: the guard, which inherits all of its descendants however they detached themselves, kills them.
//! - The guard was killed: the shim goes on.
//! - Both were killed at once: the first process dies with the shim (the kernel sees to that), and whoever asks for the attempt next kills the rest
//!   of its control group. Where no control group can be made, processes that detached themselves are not found.
//! - A terminal hangs up with its shim: who is attached is told how the job ended, and else loses the connection.
//! - Containers belong to a daemon; guard and shim remove them by name.

mod attached;
mod cgroup;
mod child;
mod console;
mod ending;
mod family;
mod folder;
mod guard;
mod log;
mod owners;
mod running;
mod scrollback;
mod shim;
mod standing;
mod stream;
mod watch;

pub(crate) use folder::read_note;
pub use folder::{AttemptFolder, FolderError};
pub use guard::{ShimError, run};
pub(crate) use log::Gap;
pub use owners::Owners;
pub(crate) use shim::CLEARING_LIMIT;
pub use standing::{Standing, Supervised, find};
pub use watch::ExitWatch;
