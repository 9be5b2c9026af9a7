//! `carma what-if`: the manager's own jobs once more, in the simulator, by other rules.
//!
//! ```text
//!  jobs as they were ─► stays on GPUs ─► time alone (without interference) ─► trace ─► simulated by each policy ─► WhatIfRun
//! ```

mod alone;
mod defaults;
mod machine;
mod replayed;
mod run_figures;
mod view;

use std::io::Write;

use anyhow::{Result, ensure};
use carma_core::{Metric, Settings};
use carma_format::count;
use carma_manager::api::{ConfigurationDetail, HistoryQuery, JobDetail, WhatIf, WhatIfRun};
use carma_manager::client::Client;
use carma_sim::{InterferenceModel, JobRecord, Simulation, SimulationError};
use clap::Args;
use jiff::tz::TimeZone;

use crate::configuration::policy_settings;
use crate::manager::{AnswerArguments, Moment, write_json};
use crate::progress;
#[cfg(test)]
pub(crate) use machine::tests::gpu as sample_gpu;
use machine::{Machine, joules};
use replayed::Replayed;
use run_figures::{mean_run, what_if_run};
pub(crate) use view::simulator_error;
#[cfg(test)]
pub(crate) use view::tests::sample;

/// Limit of simulated jobs over all runs and policies: about 20 s of a core if GPUs are many and full.
const MOST_RUNS: usize = 30_000;
/// Runs of a policy, which are averaged: many if jobs are few. They come in mirrored pairs, so it is an even number.
const SEEDS: (usize, usize) = (2, 20);
/// Policies that differ much, besides those in force. A manager does not know the sharing classes that Lucid goes by.
const DEFAULT_POLICIES: [&str; 5] = ["exclusive", "carma", "magm", "or-magm", "lug"];

#[derive(Debug, Args)]
#[command(after_help = "\
First, the run time of each job alone is computed from its measured run. Then all jobs \
are simulated on the same GPUs: with the present policy, which shows how accurate \
the simulation is, and with the other policies.\n\n\
Example:\n  carma what-if --since 1d --policy exclusive,or-magm/aegis")]
pub(crate) struct Arguments {
    /// Jobs submitted since this time: 7d, 12h, 2027-01-31 or 2027-01-31T08:00.
    #[arg(long, value_name = "TIME", default_value = "1d")]
    since: Moment,
    /// Jobs submitted before this time, in the same form [default: now].
    #[arg(long, value_name = "TIME")]
    until: Option<Moment>,
    /// Policies, as for `carma compare` [default: a few that differ much].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    policy: Vec<String>,
    #[command(flatten)]
    answer: AnswerArguments,
}

/// Replays the manager's jobs, and prints the simulated results.
pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let client = &mut arguments.answer.manager.connect()?;
    let now = client.status()?.now;
    let until = arguments.until.map_or(now, |until| until.at(now));
    let since = arguments.since.at(now);
    ensure!(since < until, "the requested period ends before it begins");
    // One more than the limit shows that there are more.
    let limit = Some(most_jobs(&arguments.policy) as u32 + 1);
    let query = HistoryQuery { since: Some(since), until: Some(until), limit, ..HistoryQuery::default() };
    let jobs: Vec<JobDetail> = progress::collect_counted("reading jobs", client.export(&query)?)?;
    let what_if = what_if(client, &jobs, &arguments.policy)?;
    if arguments.answer.json {
        return write_json(&what_if, output);
    }
    view::write(&what_if, (since, until), &TimeZone::system(), output)
}

/// The limit of jobs for these policies, or for the default ones, with the rules in force.
const fn most_jobs(policies: &[String]) -> usize {
    let others = if policies.is_empty() { DEFAULT_POLICIES.len() } else { policies.len() };
    MOST_RUNS / SEEDS.0 / (1 + others)
}

/// Simulated results of these jobs under these policies, or under some that differ much.
pub(crate) fn what_if(client: &mut Client, jobs: &[JobDetail], policies: &[String]) -> Result<WhatIf> {
    let (status, gpus, configuration) = (client.status()?, client.gpus()?, client.configuration()?);
    let others = others(policies, &status.policy, &configuration)?;
    let machine = Machine::of(&gpus)?;
    let model = InterferenceModel::shipped();
    let most = most_jobs(policies);
    let replayed = Replayed::of(&newest(jobs, most), &machine, &model, status.now)?;
    let contenders: Vec<(&str, &Settings)> = [(status.policy.as_str(), &configuration.rules)]
        .into_iter()
        .chain(others.iter().map(|(name, settings)| (name.as_str(), settings)))
        .collect();
    let (mut runs, never) = simulate(&contenders, &replayed, &machine, &model)?;
    let simulated = runs.remove(0);
    // The energy of the GPUs includes jobs that are not replayed.
    let others_ran = jobs.iter().any(|job| job.ended.is_none() && !job.attempts.is_empty());
    let joules = if others_ran { None } else { joules(client, &gpus, replayed.span)? };
    let not_compared = others_ran.then(|| "Energy is not compared: jobs that are not over had GPUs as well.".to_owned());
    let measured = what_if_run(&status.policy, &replayed.measured, joules);
    let more = (jobs.len() > most).then(|| format!("Earlier jobs are left out: only the latest {most} are simulated."));
    let blind = without_utilisation(&contenders, &replayed)?;
    let left_out = replayed.notes.into_iter().chain(more).chain(machine.notes).chain(blind).chain(never).chain(not_compared).collect();
    Ok(WhatIf { jobs: replayed.measured.len() as u64, left_out, measured, simulated, others: runs })
}

/// A note on policies that go by expected utilisation, where it is not known.
fn without_utilisation(contenders: &[(&str, &Settings)], replayed: &Replayed) -> Result<Option<String>> {
    let mut names = Vec::new();
    let mut alone = 0;
    for (name, settings) in contenders {
        let jobs = match settings.check()?.mapping.policy.name {
            "horus" => replayed.requests().filter(|request| request.utilisation[Metric::Utilisation].is_none()).count(),
            "lucid" => replayed.requests().filter(|request| request.sharing.is_none()).count(),
            _ => 0,
        };
        if jobs > 0 {
            names.push(*name);
            alone = alone.max(jobs);
        }
    }
    let policies = names.join(" and ");
    let text = || {
        let jobs = count(alone, "job");
        format!("{policies}: jobs of unknown GPU utilisation (horus) or sharing class (lucid) have GPUs alone, as under exclusive: {jobs}.")
    };
    Ok((!names.is_empty()).then(text))
}

/// The latest, in order of submission.
fn newest(jobs: &[JobDetail], most: usize) -> Vec<&JobDetail> {
    let mut jobs: Vec<&JobDetail> = jobs.iter().collect();
    jobs.sort_by_key(|job| (job.submitted, job.id));
    jobs.split_off(jobs.len().saturating_sub(most))
}

/// The policies to compare with, and their rules: explicit settings, and for the rest those of the policy or its preset.
fn others(requested: &[String], in_force: &str, configuration: &ConfigurationDetail) -> Result<Vec<(String, Settings)>> {
    let defaults = || DEFAULT_POLICIES.into_iter().filter(|name| *name != in_force).map(str::to_owned).collect();
    let mut names: Vec<String> =
        if requested.is_empty() { defaults() } else { requested.iter().map(|name| name.trim().to_lowercase()).collect() };
    ensure!(names.len() <= 12, "{} policies are more than the 12 that are simulated at once", names.len());
    names.dedup();
    names.into_iter().map(|name| policy_settings(&name, &configuration.written).map(|settings| (name, settings))).collect()
}

/// The results of the jobs under each policy, and the jobs without one.
fn simulate(
    contenders: &[(&str, &Settings)],
    replayed: &Replayed,
    machine: &Machine,
    model: &InterferenceModel,
) -> Result<(Vec<WhatIfRun>, Vec<String>)> {
    let seeds = (MOST_RUNS / contenders.len() / replayed.measured.len().max(1)).clamp(SEEDS.0, SEEDS.1) & !1;
    let runs: Vec<(usize, u64)> = (0..contenders.len()).flat_map(|policy| (0..seeds as u64).map(move |seed| (policy, seed))).collect();
    let results = progress::simulate_all(&runs, |(policy, seed)| -> Result<(WhatIfRun, bool), SimulationError> {
        let (name, settings) = contenders[*policy];
        let Replayed { trace, catalogue, knowledge, .. } = replayed;
        let simulation = Simulation::new((catalogue, model), trace, &machine.servers, settings, knowledge);
        let run = Simulation { seed: *seed, sharing: machine.sharing, ..simulation }.run()?;
        let joules = run.gpus.iter().map(|gpu| gpu.totals.joules).sum();
        let all_ended = run.jobs.iter().all(|job: &JobRecord| job.ended.is_some());
        Ok((what_if_run(name, &run.jobs, Some(joules)), all_ended))
    })?;
    let mut means = Vec::new();
    let mut never = Vec::new();
    for ((name, _), results) in contenders.iter().zip(results.chunks_exact(seeds)) {
        let (runs, all_ended): (Vec<WhatIfRun>, Vec<bool>) = results.iter().cloned().unzip();
        means.push(mean_run(name, &runs));
        if all_ended.contains(&false) {
            never.push(format!("Under {name}, some jobs would never have ended; they are not in the times."));
        }
    }
    Ok((means, never))
}

#[cfg(test)]
mod tests {
    use carma_manager::configuration::{ManagerSettings, Sources};

    use super::*;

    #[test]
    fn other_policies_have_the_rules_by_which_they_are_compared() {
        let written: Settings = toml::from_str("policy = \"carma\"\n[window]\nperiod = 5\n").unwrap();
        let rules = Settings::from(&written.check().unwrap());
        let configuration = ConfigurationDetail {
            file: "carma.toml".into(),
            rules,
            written,
            manager: ManagerSettings::default(),
            sources: Sources::default(),
            names: carma_manager::configuration::AccountNames::default(),
        };
        let names = ["exclusive", "magm", "or-magm/aegis"].map(str::to_owned);
        for (name, rules) in others(&names, "carma", &configuration).unwrap() {
            let compared: Settings = toml::from_str("[window]\nperiod = 5\n").unwrap();
            assert_eq!(rules.check().unwrap(), policy_settings(&name, &compared).unwrap().check().unwrap(), "{name}");
        }
    }
}
