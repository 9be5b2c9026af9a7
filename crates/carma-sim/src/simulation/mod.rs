//! The discrete-event simulation: time jumps from one thing that happens to the next.
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

/// Everything a simulation is made from.
#[derive(Debug, Clone)]
pub struct Simulation<'a> {
    /// What the trace's workloads do.
    pub catalogue: &'a Catalogue,
    /// How they slow each other down.
    pub interference: &'a InterferenceModel,
    /// What chance does.
    pub physics: Physics,
    /// Who submits what; every job has a workload.
    pub trace: &'a Trace,
    /// On what.
    pub servers: &'a Servers,
    /// How GPUs are shared.
    pub sharing: Sharing,
    /// The scheduler's rules.
    pub settings: &'a Settings,
    /// What the scheduler is told of jobs.
    pub knowledge: &'a Knowledge,
    /// What happens besides.
    pub disturbances: &'a [Disturbance],
    /// The same seed gives the same run.
    pub seed: u64,
    /// Whether to keep what each GPU did, moment by moment.
    pub timeline: bool,
}

impl<'a> Simulation<'a> {
    /// A run on time-sliced GPUs, undisturbed, with seed 0 and no timeline kept; the rest is set by struct update.
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

    /// Runs it.
    pub fn run(&self) -> Result<Run, SimulationError> {
        self.run_watched(&mut || ())
    }

    /// Runs it; whoever watches is told of each job that is over.
    pub fn run_watched(&self, over: &mut dyn FnMut()) -> Result<Run, SimulationError> {
        let scheduler = Scheduler::new(self.settings.check()?);
        world::World::new(self, scheduler)?.run(over)
    }

    /// The same, writing down all the scheduler hears and decides.
    pub fn run_logged(&self, log: impl Write, over: &mut dyn FnMut()) -> Result<Run, SimulationError> {
        let log = EventLog::new(self.settings, log)?;
        world::World::new(self, log)?.run(over)
    }
}
