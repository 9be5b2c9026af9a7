//! The discrete-event simulation: time jumps from event to event.
//!
//! ```text
//!  trace ──► submissions ─┐                    ┌─► Launch: a process begins
//!                         ├─► carma-core ──────┤
//!  GPUs ───► telemetry ───┤   (as in a manager)└─► Signal: a process ends
//!    ▲       exits ───────┘
//!    └── processes: start-up, memory growth, training, end; speeds from the interference model
//! ```

mod agenda;
mod chance;
mod contention;
mod disturbance;
mod driver;
mod facts;
mod gpu;
mod knowledge;
mod life;
mod memory;
mod meter;
mod physics;
mod process;
mod record;
mod switch;
mod telemetry;
mod trouble;
mod world;

pub use chance::Draw;
pub use disturbance::{Disturbance, DisturbanceError};
pub use driver::SimulationError;
pub use facts::RankFacts;
pub use knowledge::{Estimates, EstimatesError, Estimator, Knowledge};
pub use meter::{GpuTotals, Moment};
pub use physics::Physics;
pub use record::{AttemptRecord, GpuRecord, JobRecord, Run};
pub use telemetry::Levels;

use std::io::Write;

use carma_core::{EventLog, Scheduler, Settings};

use crate::catalogue::Catalogue;
use crate::hardware::{Servers, Sharing};
use crate::interference::InterferenceModel;
use crate::trace::Trace;

/// Inputs of a simulation.
#[derive(Debug, Clone)]
pub struct Simulation<'a> {
    /// Facts about the workloads.
    pub catalogue: &'a Catalogue,
    /// Slowdown of workloads that share a GPU.
    pub interference: &'a InterferenceModel,
    /// Distributions of start-up times, noise and so on.
    pub physics: Physics,
    /// The jobs; each has a workload.
    pub trace: &'a Trace,
    /// The servers.
    pub servers: &'a Servers,
    /// How GPUs are shared.
    pub sharing: Sharing,
    /// The scheduler's settings.
    pub settings: &'a Settings,
    /// What the scheduler knows about jobs.
    pub knowledge: &'a Knowledge,
    /// Disturbances, such as lost GPUs.
    pub disturbances: &'a [Disturbance],
    /// The same seed gives the same run.
    pub seed: u64,
    /// Whether to record the GPUs over time.
    pub timeline: bool,
}

impl<'a> Simulation<'a> {
    /// A run on time-sliced GPUs without disturbances, with seed 0 and no timeline; set other fields by struct update.
    pub fn new(
        (catalogue, interference): (&'a Catalogue, &'a InterferenceModel),
        trace: &'a Trace,
        servers: &'a Servers,
        settings: &'a Settings,
        knowledge: &'a Knowledge,
    ) -> Self {
        Self {
            catalogue,
            interference,
            physics: Physics::default(),
            trace,
            servers,
            sharing: Sharing::Streams,
            settings,
            knowledge,
            disturbances: &[],
            seed: 0,
            timeline: false,
        }
    }

    /// Runs the simulation.
    pub fn run(&self) -> Result<Run, SimulationError> {
        self.run_watched(&mut || ())
    }

    /// Runs the simulation, and calls `over` after each job that ends.
    pub fn run_watched(&self, over: &mut dyn FnMut()) -> Result<Run, SimulationError> {
        let scheduler = Scheduler::new(self.settings.check()?);
        world::World::new(self, scheduler)?.run(over)
    }

    /// The same, with a log of the scheduler's events and decisions.
    pub fn run_logged(&self, log: impl Write, over: &mut dyn FnMut()) -> Result<Run, SimulationError> {
        let log = EventLog::new(self.settings, log)?;
        world::World::new(self, log)?.run(over)
    }
}
