//! The scheduler as the simulation sees it: plain, or one that logs all its events.

use std::io::Write;

use carma_core::{Action, ConfigErrors, Event, EventError, EventLog, LogError, Scheduler, Time};
use thiserror::Error;

/// Why a simulation cannot run.
#[derive(Debug, Error)]
pub enum SimulationError {
    /// The settings are invalid.
    #[error(transparent)]
    Settings(#[from] ConfigErrors),
    /// The scheduler refused an event.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The event log could not be written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A job without a workload: the trace has only its times.
    #[error("job {0} has no workload: map the trace onto the catalogue first")]
    Unmapped(String),
    /// MIG on a GPU without MIG support.
    #[error("a {0} does not support MIG: give A100 or H100 GPUs, or another mode")]
    NoMig(&'static str),
    /// A disturbance of a GPU that does not exist.
    #[error("GPU {0} does not exist")]
    NoGpu(usize),
}

/// The scheduler, with or without a log.
pub(super) trait Decider {
    fn decide(&mut self, event: Event, now: Time) -> Result<Vec<Action>, SimulationError>;
    fn scheduler(&self) -> &Scheduler;
}

impl Decider for Scheduler {
    fn decide(&mut self, event: Event, now: Time) -> Result<Vec<Action>, SimulationError> {
        Ok(self.handle(event, now)?)
    }

    fn scheduler(&self) -> &Scheduler {
        self
    }
}

impl<W: Write> Decider for EventLog<W> {
    fn decide(&mut self, event: Event, now: Time) -> Result<Vec<Action>, SimulationError> {
        Ok(self.handle(event, now)?)
    }

    fn scheduler(&self) -> &Scheduler {
        self.scheduler()
    }
}
