//! The engine: one thread around the decision core.
//!
//! ```text
//!  tasks of users (Handle) ───┐
//!  executor: attempts         │             ┌─► actions ─► batch of changes ─► store ─► effects: starts, signals, answers
//!  gpus: samples and changes  ┼─► Input ─► core    (one batch on its way to the disk at a time)
//!  host, estimates, timers ───┘
//!
//!  what the engine does:  run (the loop), react (inputs), act (actions of the core), work (tasks, in turns), answer (questions), accept, submit, forecast, predict, job_actions, restore, downtime, begin_times, housekeeping
//!                          │ all work on
//!  its parts:             state ──► views ──► accounting ──► attempts ──► gpus, jobs ──► decide        predictions ──► estimates, host, listeners, writer: beside them
//! ```
//!
//! A part knows its own state and the core's `Decisions`, and never the engine. Nothing is done and no question is answered before the decision is
//! on the disk. When a write fails, unwritten decisions are dropped, waiting clients get an error, and the engine restarts from the store as after a
//! crash: there is one recovery path.

mod accept;
mod accounting;
mod act;
mod answer;
mod attempts;
mod begin_times;
mod cancellations;
mod cluster;
mod decide;
mod downtime;
mod error;
mod estimates;
mod forecast;
mod gpus;
mod handle;
mod host;
mod housekeeping;
mod input;
mod job_actions;
mod jobs;
mod jobs_action;
mod keyed;
mod listeners;
mod log_removal;
mod log_space;
mod pilots;
mod pools;
mod predict;
mod predictions;
mod question;
mod react;
mod refusal;
mod remote;
mod request_source;
mod restore;
mod run;
mod secrets;
mod servers;
mod setup;
mod stalls;
mod state;
mod submit;
mod task;
#[cfg(test)]
mod tests;
mod timetable;
mod views;
mod work;
mod writer;

pub(crate) use accounting::measured;
pub(crate) use accounting::recent::SampleFilter;
pub use error::EngineError;
pub use estimates::earlier_need;
pub use handle::Handle;
pub(crate) use question::Unfinished;
pub use run::{Engine, EngineInbox};
pub use setup::Setup;

pub use crate::world::World;
