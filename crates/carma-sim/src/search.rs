//! The best order that a search finds which knows everything beforehand: how much there is to gain at all.
//!
//! Who is next is searched for, by trying; where a job goes is up to the scheduler, which is told exactly what jobs need and how long they take.
//! So what is found is no bound: a schedule that was looked for elsewhere may be better still.

use std::fmt;
use std::str::FromStr;

use carma_core::{ForecastSettings, Priority, QueueOrder, QueueSettings, Settings};
use fastrand::Rng;
use thiserror::Error;

use crate::simulation::{Estimator, Knowledge, Run, Simulation, SimulationError};
use crate::summary::RunSummary;

/// What a search makes small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// The time until all is done.
    Makespan,
    /// The mean time from submission to end.
    MeanJct,
    /// Its 95th percentile.
    P95Jct,
    /// The sum of the three, each as a share of what it is where the shortest goes first.
    All,
}

/// A name that no aim has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no aim {0:?}: give makespan, mean-jct, p95-jct or all")]
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
    /// What a run costs, 1 being what the first costs. Means are over jobs that succeed, so to lose one is no gain.
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

/// A schedule to try: the jobs by their places in the trace, and how far predictions may go.
#[derive(Debug, Clone)]
struct Plan {
    order: Vec<usize>,
    gain: f64,
    slowdown: f64,
}

/// What may be asked of a newcomer's gain, and of anybody's slowdown.
const GAINS: [f64; 4] = [0.0, 0.1, 0.2, 0.3];
const SLOWDOWNS: [f64; 4] = [1.8, 2.2, 3.0, 100.0];
/// How much worse a plan may be and still be gone on from, at the beginning.
const BOLDNESS: f64 = 0.02;

impl Plan {
    /// One that differs in one thing: two jobs change places, one is put before another, or the rules are others.
    fn neighbour(&self, random: &mut Rng) -> Self {
        let mut plan = self.clone();
        let (one, other) = (random.usize(..plan.order.len()), random.usize(..plan.order.len()));
        match random.u8(..8) {
            0 => plan.gain = GAINS[random.usize(..GAINS.len())],
            1 => plan.slowdown = SLOWDOWNS[random.usize(..SLOWDOWNS.len())],
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

    /// All there is to know, and whose turn it is.
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
    /// The run by the best order found in so many tries, by simulated annealing from the shortest first. The policy is `carma`; what the
    /// scheduler was to be told is replaced by all there is to know.
    pub fn best_order(&self, aim: Aim, tries: u32) -> Result<Run, SimulationError> {
        let mut order: Vec<usize> = (0..self.trace.jobs.len()).collect();
        let alone = |job: &usize| self.trace.jobs[*job].time_alone(self.catalogue);
        order.sort_by_key(alone);
        let mut random = Rng::with_seed(self.seed);
        let mut plan = Plan { order, gain: 0.2, slowdown: 2.2 };
        let first = plan.run(self, false)?.summary();
        let mut cost = aim.cost(&first, &first);
        let mut best = (cost, plan.clone());
        for tried in 0..if plan.order.is_empty() { 0 } else { tries } {
            let neighbour = plan.neighbour(&mut random);
            let its_cost = aim.cost(&neighbour.run(self, false)?.summary(), &first);
            let boldness = BOLDNESS * (1.0 - f64::from(tried) / f64::from(tries));
            if its_cost <= cost || random.f64() < ((cost - its_cost) / boldness).exp() {
                (plan, cost) = (neighbour, its_cost);
                if cost < best.0 {
                    best = (cost, plan.clone());
                }
            }
        }
        best.1.run(self, self.timeline)
    }
}
