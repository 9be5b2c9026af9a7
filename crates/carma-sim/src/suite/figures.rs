//! Figures of a scenario: ratios to exclusive, as geometric means over the traces.

use carma_core::mean;
use serde::Serialize;

use super::policies::is_own;
use crate::compare::{ratio, spread};
use crate::summary::RunSummary;

/// A headline figure; less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// From the first submission to the last end.
    Makespan,
    /// Mean time from submission to end.
    MeanJct,
    /// Its 95th percentile.
    P95Jct,
    /// Energy of all GPUs.
    Energy,
}

impl Figure {
    /// Every figure.
    pub const ALL: [Self; 4] = [Self::Makespan, Self::MeanJct, Self::P95Jct, Self::Energy];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Makespan => "makespan",
            Self::MeanJct => "mean JCT",
            Self::P95Jct => "p95 JCT",
            Self::Energy => "energy",
        }
    }

    const fn of(self) -> fn(&RunSummary) -> f64 {
        match self {
            Self::Makespan => |run| run.makespan,
            Self::MeanJct => |run| run.mean_jct,
            Self::P95Jct => |run| run.p95_jct,
            Self::Energy => |run| run.energy,
        }
    }
}

/// All runs of one policy in a scenario.
#[derive(Debug, Clone, Serialize)]
pub struct PolicyResult {
    /// The policy.
    pub name: String,
    /// Summaries by trace, then by seed.
    pub runs: Vec<Vec<RunSummary>>,
}

/// All policies in a scenario; exclusive is the first.
#[derive(Debug, Clone, Serialize)]
pub struct ScenarioResult {
    /// The scenario.
    pub name: &'static str,
    /// The policies.
    pub policies: Vec<PolicyResult>,
}

/// Published policies with more out-of-memory attempts per run are listed but not counted.
const MOST_OOM: f64 = 0.5;

impl PolicyResult {
    /// The mean of a number over traces and seeds.
    pub fn mean(&self, of: fn(&RunSummary) -> f64) -> f64 {
        mean(&self.runs.iter().map(|seeds| spread(seeds, of).0).collect::<Vec<_>>())
    }

    /// Whether it counts among published policies.
    pub fn counts(&self) -> bool {
        self.mean(|run| run.oom_attempts as f64) <= MOST_OOM
    }
}

impl ScenarioResult {
    /// The figure of a policy on one trace, against exclusive.
    pub fn on_trace(&self, policy: &PolicyResult, figure: Figure, trace: usize) -> f64 {
        let middle = |result: &PolicyResult| spread(&result.runs[trace], figure.of()).0;
        ratio(middle(policy), middle(&self.policies[0]))
    }

    /// The geometric mean over the traces, and its standard deviation over seeds, if there are several.
    pub fn figure(&self, policy: &PolicyResult, figure: Figure) -> (f64, Option<f64>) {
        let traces = policy.runs.len();
        let middle = geometric_mean((0..traces).map(|trace| self.on_trace(policy, figure, trace)));
        let exclusive: Vec<f64> = self.policies[0].runs.iter().map(|seeds| spread(seeds, figure.of()).0).collect();
        let of_seed =
            |seed: usize| geometric_mean((0..traces).map(|trace| ratio(figure.of()(&policy.runs[trace][seed]), exclusive[trace])));
        let seeds: Vec<f64> = (0..policy.runs.first().map_or(0, Vec::len)).map(of_seed).collect();
        let squares: f64 = seeds.iter().map(|value| (value - mean(&seeds)).powi(2)).sum();
        (middle, (seeds.len() > 1).then(|| (squares / (seeds.len() - 1) as f64).sqrt()))
    }

    /// The best of the policies that count, other than ours and exclusive.
    pub fn best_published(&self, figure: Figure) -> Option<(&PolicyResult, f64)> {
        let published = self.policies[1..].iter().filter(|policy| !is_own(&policy.name) && policy.counts());
        let figures = published.map(|policy| (policy, self.figure(policy, figure).0));
        figures.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// On how many traces the first policy is better than the second.
    pub fn wins(&self, first: &PolicyResult, second: &PolicyResult, figure: Figure) -> usize {
        (0..first.runs.len()).filter(|trace| self.on_trace(first, figure, *trace) < self.on_trace(second, figure, *trace)).count()
    }

    /// A policy by name.
    pub fn policy(&self, name: &str) -> Option<&PolicyResult> {
        self.policies.iter().find(|policy| policy.name == name)
    }
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    mean(&values.map(|value| value.max(f64::MIN_POSITIVE).ln()).collect::<Vec<_>>()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(makespan: f64, oom_attempts: usize) -> RunSummary {
        RunSummary { makespan, oom_attempts, ..RunSummary::default() }
    }

    fn policy(name: &str, runs: &[[RunSummary; 2]; 2]) -> PolicyResult {
        PolicyResult { name: name.to_owned(), runs: runs.iter().map(|seeds| seeds.to_vec()).collect() }
    }

    #[test]
    fn figures_are_geometric_means_of_ratios_to_exclusive() {
        let result = ScenarioResult {
            name: "test",
            policies: vec![
                policy("exclusive", &[[run(100.0, 0), run(100.0, 0)], [run(200.0, 0), run(200.0, 0)]]),
                policy("magm", &[[run(50.0, 0), run(50.0, 0)], [run(100.0, 0), run(100.0, 0)]]),
                policy("or-magm", &[[run(10.0, 1), run(10.0, 1)], [run(10.0, 1), run(10.0, 0)]]),
                policy("carma", &[[run(24.0, 0), run(26.0, 0)], [run(200.0, 0), run(200.0, 0)]]),
            ],
        };
        let carma = result.policy("carma").unwrap();
        let (middle, deviation) = result.figure(carma, Figure::Makespan);
        assert!((middle - 0.5).abs() < 1e-9, "the root of 0.25 x 1");
        assert!(deviation.unwrap() > 0.0);
        let (best, value) = result.best_published(Figure::Makespan).unwrap();
        assert_eq!((best.name.as_str(), value), ("magm", 0.5), "the other runs out of memory too often");
        assert_eq!(result.wins(carma, best, Figure::Makespan), 1);
    }
}
