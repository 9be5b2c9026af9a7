//! The results of a suite as CSV: one row for each scenario and policy, each with what is needed to make it again.

use std::io::Write;

use anyhow::Result;
use carma_sim::suite::{Figure, ScenarioResult, memory_error_of};
use carma_sim::{Origin, RunSummary};

type Mean = (&'static str, fn(&RunSummary) -> f64);

/// Means over traces and seeds, beside the figures.
const MEANS: [Mean; 3] = [
    ("oom_attempts", |run| run.oom_attempts as f64),
    ("mean_slowdown", |run| run.mean_slowdown),
    ("worst_slowdown", |run| run.worst_slowdown),
];

/// Writes all rows. Figures are shares of exclusive, as geometric means over the traces.
pub(super) fn write_csv(results: &[ScenarioResult], origin: &Origin, output: &mut impl Write) -> Result<()> {
    let mut table = csv::Writer::from_writer(output);
    let figures = Figure::ALL.map(|figure| figure.name().to_lowercase().replace(' ', "_"));
    let ratios = figures.iter().flat_map(|name| [format!("{name}_ratio"), format!("{name}_spread")]);
    let means = MEANS.map(|(name, _)| name.to_owned());
    let settings = ["memory_error", "settings", "seeds", "carma", "command", "inputs"].map(str::to_owned);
    table.write_record(["scenario", "policy"].map(str::to_owned).into_iter().chain(ratios).chain(means).chain(settings))?;
    let inputs = origin.inputs_in_words();
    for result in results {
        for policy in &result.policies {
            let ratios = Figure::ALL.into_iter().flat_map(|figure| {
                let (ratio, spread) = result.figure(policy, figure);
                [ratio.to_string(), spread.map(|spread| spread.to_string()).unwrap_or_default()]
            });
            let means = MEANS.map(|(_, of)| policy.mean(of).to_string());
            let settings = origin.policies.iter().find(|known| known.name == policy.name).map(|known| known.settings.clone());
            let error = memory_error_of(result.name).map(|error| error.to_string()).unwrap_or_default();
            let made =
                [error, settings.unwrap_or_default(), origin.seeds.clone(), origin.carma.clone(), origin.command.clone(), inputs.clone()];
            table.write_record([result.name.to_owned(), policy.name.clone()].into_iter().chain(ratios).chain(means).chain(made))?;
        }
    }
    Ok(table.flush()?)
}
