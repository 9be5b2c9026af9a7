//! The engine: one thread around the decision core.
//!
//! ```text
//!  questions (Handle) ────────┐
//!  executor: attempts         │             ┌─► actions ─► batch of changes ─► store ─► effects: starts, signals, answers
//!  gpus: samples and changes  ┼─► Input ─► core    (one batch on its way to the disk at a time)
//!  host, estimates, timers ───┘
//!
//!  run: the loop    react: inputs to parts    act: actions to parts    answer: questions to parts    restore: the beginning
//!  decide ◄── jobs, gpus ◄── attempts ◄── accounting ◄── views      estimates, host: beside them
//! ```
//!
//! Nothing is done and no question is answered before what led to it is on the disk. When the disk refuses, decisions that are not written are dropped,
//! those who wait get an error, and the engine restarts from the store as after a crash: there is one recovery path.

mod accounting;
mod act;
mod answer;
mod attempts;
mod decide;
mod estimates;
mod gpus;
mod handle;
mod host;
mod housekeeping;
mod input;
mod jobs;
mod listeners;
mod question;
mod react;
mod refusal;
mod restore;
mod run;
mod saved;
mod setup;
#[cfg(test)]
mod tests;
mod views;
mod writer;

pub(crate) use accounting::measured;
pub(crate) use accounting::recent::SampleFilter;
pub use handle::Handle;
pub use run::{Engine, EngineError, EngineInbox};
pub use setup::Setup;

pub use crate::world::World;
