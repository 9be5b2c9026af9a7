//! `carma compare --suite`: policies on the 13 standard traces, in several scenarios.

mod rows;
mod tables;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use carma_core::Settings;
use carma_sim::suite::{
    OWN_POLICIES, PolicyResult, SCENARIOS, Scenario, ScenarioResult, SuiteTrace, published_files, published_policies, read,
};
use carma_sim::{Aim, Catalogue, InterferenceModel, Knowledge, Origin, PolicyOrigin, RunSummary, Simulation, SimulationError};

use crate::configuration::policy_settings;
use crate::manager::write_json;
use crate::origin::{print, seeds_in_words, settings_in_a_line};
use crate::progress::simulate_all;
use crate::simulate::World;

/// Runs of each policy where none are given: mirrored pairs, so that means vary little.
const SEEDS: u64 = 20;

/// Runs of a search, which takes as long as thousands of other runs.
const SEARCH_SEEDS: u64 = 2;

/// What the command line says about a suite.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) folder: &'a Path,
    pub(super) scenarios: &'a [String],
    pub(super) policies: Option<&'a [String]>,
    pub(super) seeds: Option<u64>,
    pub(super) best: &'a [Aim],
    pub(super) tries: u32,
    pub(super) form: Form,
}

/// How the results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Tables,
    Csv,
    Json,
}

/// A policy to run.
struct Entry {
    name: String,
    settings: Settings,
    search: Option<Aim>,
}

/// Runs all scenarios and prints the tables.
pub(super) fn run(request: &Request<'_>, world: &World, output: &mut impl Write) -> Result<()> {
    let traces = read(request.folder, &world.catalogue).context("the suite needs the published traces")?;
    let (entries, scenarios) = (entries(request.policies)?, scenarios(request.scenarios)?);
    let seeds = request.seeds.unwrap_or(SEEDS);
    let model = (&world.catalogue, &world.interference);
    let mut results = Vec::new();
    for (place, scenario) in scenarios.into_iter().enumerate() {
        let mut policies = simulate(model, scenario, &traces, &entries, seeds, request.tries)?;
        if place == 0 && !request.best.is_empty() {
            let orders: Vec<Entry> = request.best.iter().map(|aim| best_order(*aim)).collect();
            policies.extend(simulate(model, scenario, &traces, &orders, seeds.min(SEARCH_SEEDS), request.tries)?);
        }
        results.push(ScenarioResult { name: scenario.name, policies });
    }
    let names: Vec<&str> = traces.iter().map(|trace| trace.name).collect();
    let origin = origin(request.folder, world, &entries, seeds)?;
    match request.form {
        Form::Json => write_json(&serde_json::json!({ "traces": names, "seeds": seeds, "scenarios": results, "origin": origin }), output),
        Form::Csv => rows::write_csv(&results, &origin, output),
        Form::Tables => {
            tables::print(&results, &names, seeds, output)?;
            print(&origin, output)
        }
    }
}

/// Version, command, published traces and settings.
fn origin(folder: &Path, world: &World, entries: &[Entry], seeds: u64) -> Result<Origin> {
    let traces: Vec<PathBuf> = published_files().map(|file| folder.join(file)).collect();
    let policy = |entry: &Entry| {
        let settings = settings_in_a_line(&entry.settings)?;
        Ok(PolicyOrigin { name: entry.name.clone(), estimator: "the measured peak, with the errors of the scenario".to_owned(), settings })
    };
    let policies = entries.iter().map(policy).collect::<Result<_>>()?;
    let read = world.origin(traces.iter().map(|trace| ("trace", trace.as_path())))?;
    Ok(Origin { seeds: seeds_in_words(seeds, 0), policies, ..read })
}

/// Exclusive first, since all figures are relative to it.
fn entries(policies: Option<&[String]>) -> Result<Vec<Entry>> {
    let all = || published_policies().into_iter().chain(OWN_POLICIES.map(str::to_owned)).collect();
    let mut names: Vec<String> = policies.map_or_else(all, |policies| policies.iter().map(|policy| policy.to_lowercase()).collect());
    names.retain(|name| name != "exclusive");
    names.insert(0, "exclusive".to_owned());
    let entry = |name: String| Ok(Entry { settings: policy_settings(&name, &Settings::default())?, name, search: None });
    names.into_iter().map(entry).collect()
}

fn best_order(aim: Aim) -> Entry {
    Entry { name: format!("best order: {aim}"), settings: Settings::default(), search: Some(aim) }
}

fn scenarios(names: &[String]) -> Result<Vec<&'static Scenario>> {
    if names.is_empty() {
        return Ok(SCENARIOS.iter().collect());
    }
    let find = |name: &String| {
        let found = SCENARIOS.iter().find(|scenario| scenario.name == name);
        let all = || SCENARIOS.map(|scenario| scenario.name).join(", ");
        found.with_context(|| format!("unknown scenario {name:?}: give one of {}", all()))
    };
    names.iter().map(find).collect()
}

fn simulate(
    (catalogue, interference): (&Catalogue, &InterferenceModel),
    scenario: &Scenario,
    traces: &[SuiteTrace],
    entries: &[Entry],
    seeds: u64,
    tries: u32,
) -> Result<Vec<PolicyResult>> {
    let worlds: Vec<_> = traces.iter().map(|suite| (scenario.trace(suite), scenario.servers(suite))).collect();
    let (blurred, exact) = (scenario.knowledge(), Knowledge::default());
    let each = |entry| (0..worlds.len()).flat_map(move |world| (0..seeds).map(move |seed| (entry, world, seed)));
    let runs: Vec<(usize, usize, u64)> = (0..entries.len()).flat_map(each).collect();
    let simulate = |(entry, world, seed): &(usize, usize, u64)| -> Result<RunSummary, SimulationError> {
        let (Entry { settings, search, .. }, (trace, servers)) = (&entries[*entry], &worlds[*world]);
        let knowledge = if search.is_some() { &exact } else { &blurred };
        let simulation = Simulation::new((catalogue, interference), trace, servers, settings, knowledge);
        let simulation = Simulation { sharing: scenario.sharing, seed: *seed, ..simulation };
        Ok(match search {
            Some(aim) => simulation.best_order(*aim, tries)?,
            None => simulation.run()?,
        }
        .summary())
    };
    let summaries = simulate_all(&runs, simulate)?;
    let mut by_seeds = summaries.chunks_exact(seeds as usize).map(<[RunSummary]>::to_vec);
    let results: Vec<PolicyResult> = entries
        .iter()
        .map(|entry| PolicyResult { name: entry.name.clone(), runs: by_seeds.by_ref().take(worlds.len()).collect() })
        .collect();
    if let Some(failing) = results.iter().find(|result| result.mean(|run| run.succeeded as f64) <= 0.0) {
        bail!("no job succeeds under {} in scenario {}", failing.name, scenario.name);
    }
    Ok(results)
}
