//! The engine: one thread around the decision core.
//!
//! ```text
//!  questions (Handle) ─┐                       ┌─► Batch of changes ─► store ─► effects: launches, signals, answers
//!  exits, looks, host ─┼─► Input ─► the core ──┤        (one on its way to the disk at a time)
//!  estimates, timers ──┘                       └─► what waits, and why
//! ```
//!
//! Nothing is done and nobody is answered before what led to it is on the disk. When the disk refuses, what the core has decided meanwhile is
//! dropped, those who wait are told, and the engine begins anew from the store as it does after a crash: there is one way to come back.

mod activity;
mod acts;
mod answers;
mod attempts;
mod batch;
mod checkpoints;
mod clock;
mod core;
mod devices;
mod estimates;
mod exits;
mod facts;
mod forecast;
mod handle;
mod input;
mod keep;
mod launcher;
mod learning;
mod listing;
mod looked;
mod looks;
mod machine;
mod minutes;
mod modes;
mod mps;
mod outside;
mod pool;
mod power;
mod recent;
mod restore;
mod run;
mod saved;
mod scans;
mod setup;
mod steps;
mod submit;

pub(crate) use answers::ORPHANED;
pub(crate) use attempts::measured;
pub use handle::Handle;
pub(crate) use launcher::{NotLaunched, run_as};
pub(crate) use recent::Wanted;
pub use run::{Arriving, Engine, EngineError};
pub use setup::{Setup, World};
pub use submit::AcceptedJobs;
