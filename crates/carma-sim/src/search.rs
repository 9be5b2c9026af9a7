//! The best order of jobs that simulated annealing finds with full knowledge: how much any policy could gain.
//!
//! The search varies the order. The scheduler places the jobs and knows their exact needs and run times. The result is not a bound: a
//! search over placements may find a better schedule.

use std::fmt;
use std::str::FromStr;

use carma_core::{ForecastSettings, Priority, QueueOrder, QueueSettings, Settings};
use thiserror::Error;

use crate::random::Random;
use crate::simulation::{Estimator, Knowledge, Run, Simulation, SimulationError};
use crate::summary::RunSummary;

/// What a search minimizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// The time until the last job ends.
    Makespan,
    /// The mean time from submission to end.
    MeanJct,
    /// Its 95th percentile.
    P95Jct,
    /// The sum of the three, each relative to shortest-job-first.
    All,
}

/// A name that is not an aim.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown aim {0:?}: give makespan, mean-jct, p95-jct or all")]
pub struct UnknownAim(String);

impl fmt::Display for Aim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Makespan => "makespan",
            Self::MeanJct => "mean-jct",
            Self::P95Jct => "p95-jct",
            Self::All => "all",
        })
    }
}

impl FromStr for Aim {
    type Err = UnknownAim;
    fn from_str(name: &str) -> Result<Self, UnknownAim> {
        let all = [Self::Makespan, Self::MeanJct, Self::P95Jct, Self::All];
        all.into_iter().find(|aim| aim.to_string() == name).ok_or_else(|| UnknownAim(name.to_owned()))
    }
}

impl Aim {
    /// Cost of a run, relative to the first run. Means are over succeeded jobs, so a run that loses a job has infinite cost.
    fn cost(self, run: &RunSummary, first: &RunSummary) -> f64 {
        if run.succeeded < first.succeeded {
            return f64::INFINITY;
        }
        let (makespan, mean, p95) = (run.makespan / first.makespan, run.mean_jct / first.mean_jct, run.p95_jct / first.p95_jct);
        match self {
            Self::Makespan => makespan,
            Self::MeanJct => mean,
            Self::P95Jct => p95,
            Self::All => (makespan + mean + p95) / 3.0,
        }
    }
}

/// A candidate: the order of the jobs, by index in the trace, and two settings of the forecast.
#[derive(Debug, Clone)]
struct Plan {
    order: Vec<usize>,
    gain: f64,
    slowdown: f64,
}

/// Values of `forecast.gain` and `forecast.slowdown`.
const GAINS: [f64; 4] = [0.0, 0.1, 0.2, 0.3];
const SLOWDOWNS: [f64; 4] = [1.8, 2.2, 3.0, 100.0];
/// Temperature at the start of the annealing.
const INITIAL_TEMPERATURE: f64 = 0.02;

impl Plan {
    /// A candidate with one difference: two jobs are swapped, one job is moved, or one setting changes.
    fn neighbour(&self, random: &mut Random) -> Self {
        let mut plan = self.clone();
        let (one, other) = (random.below(plan.order.len()), random.below(plan.order.len()));
        match random.below(8) {
            0 => plan.gain = GAINS[random.below(GAINS.len())],
            1 => plan.slowdown = SLOWDOWNS[random.below(SLOWDOWNS.len())],
            2..=4 => plan.order.swap(one, other),
            _ => {
                let job = plan.order.remove(one);
                plan.order.insert(other, job);
            }
        }
        plan
    }

    fn settings(&self, base: &Settings) -> Settings {
        let queue = QueueSettings {
            order: Some(QueueOrder::Submission),
            backfill: Some(10_000.0),
            reserve_after: Some(31_536_000.0),
            critical: Some(0.0),
            ..base.queue.clone().unwrap_or_default()
        };
        let forecast =
            ForecastSettings { gain: Some(self.gain), slowdown: Some(self.slowdown), ..base.forecast.clone().unwrap_or_default() };
        Settings { policy: Some("carma".to_owned()), queue: Some(queue), forecast: Some(forecast), ..base.clone() }
    }

    /// Full knowledge of the jobs, with priorities in this order.
    fn knowledge(&self) -> Knowledge {
        let mut priorities = vec![Priority::default(); self.order.len()];
        for (turn, job) in (0..).zip(&self.order) {
            priorities[*job] = Priority(-turn);
        }
        Knowledge { memory: Estimator::Oracle, duration_error: Some(0.0), priorities, ..Knowledge::default() }
    }

    fn run(&self, simulation: &Simulation<'_>, timeline: bool) -> Result<Run, SimulationError> {
        let (settings, knowledge) = (self.settings(simulation.settings), self.knowledge());
        Simulation { settings: &settings, knowledge: &knowledge, timeline, ..simulation.clone() }.run()
    }
}

impl Simulation<'_> {
    /// The run with the best order found in `tries` steps of simulated annealing from shortest-job-first. The policy is `carma`, and the
    /// scheduler has full knowledge.
    pub fn best_order(&self, aim: Aim, tries: u32) -> Result<Run, SimulationError> {
        let mut order: Vec<usize> = (0..self.trace.jobs.len()).collect();
        let alone = |job: &usize| self.trace.jobs[*job].time_alone(self.catalogue);
        order.sort_by_key(alone);
        let mut random = Random::new(self.seed);
        let mut plan = Plan { order, gain: 0.2, slowdown: 2.2 };
        let first = plan.run(self, false)?.summary();
        let mut cost = aim.cost(&first, &first);
        let mut best = (cost, plan.clone());
        for tried in 0..if plan.order.is_empty() { 0 } else { tries } {
            let neighbour = plan.neighbour(&mut random);
            let its_cost = aim.cost(&neighbour.run(self, false)?.summary(), &first);
            let temperature = INITIAL_TEMPERATURE * (1.0 - f64::from(tried) / f64::from(tries));
            if its_cost <= cost || random.fraction() < ((cost - its_cost) / temperature).exp() {
                (plan, cost) = (neighbour, its_cost);
                if cost < best.0 {
                    best = (cost, plan.clone());
                }
            }
        }
        best.1.run(self, self.timeline)
    }
}
