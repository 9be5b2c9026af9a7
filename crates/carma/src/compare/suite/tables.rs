//! The tables of a suite: one for each figure, one for all policies, one for all traces.

use std::io::Write;

use anyhow::Result;
use carma_format::{Column, Terminal, change, count, left, right, wrapped, write_table};
use carma_sim::suite::{Figure, OWN_POLICIES, PROTOTYPE, PolicyResult, ScenarioResult, UTILISATION_ERROR, memory_error_of};
use carma_sim::{RunSummary, ratio};

const BY_SCENARIO: [Column; 7] = [
    left("", 16),
    right("carma", 12),
    right("magm", 6),
    right("wins", 6).spoken("wins against magm"),
    right("best published", 15),
    right("wins", 6).spoken("wins against it"),
    left("which", 16),
];
const BY_POLICY: [Column; 7] =
    [left("", 32), right("makespan", 9), right("mean JCT", 9), right("p95", 6), right("energy", 7), right("OOM", 6), right("slowdown", 9)];
const BY_TRACE: [Column; 5] =
    [left("carma / magm", 12), right("makespan", 15), right("mean JCT", 15), right("p95 JCT", 15), right("energy", 15)];
const CLAIMS: [Column; 7] =
    [left("", 10), left("", 16), right("makespan", 9), right("energy", 8), right("SMACT", 7), right("SMOCC", 7), right("memory", 8)];

/// The published system's claims for its own traces, against exclusive.
const CLAIMED: [&str; 5] = ["-35 %", "-15 %", "+54 %", "+61 %", "+62 %"];
const CLAIMED_ON: [&str; 2] = ["mix90", "heavy60"];

/// Prints all tables. The first scenario is shown in full.
pub(super) fn print(results: &[ScenarioResult], traces: &[&str], seeds: u64, output: &mut impl Write) -> Result<()> {
    let [traces_in_words, seeds] = [count(traces.len(), "trace"), count(seeds as usize, "seed")];
    writeln!(output, "{traces_in_words}, {seeds}; shares of exclusive, geometric means over the traces.")?;
    let Some(base) = results.first() else { return Ok(()) };
    writeln!(output, "{}", wrapped(&errors(results)))?;
    let own = OWN_POLICIES[0];
    if results.iter().all(|result| result.policy(own).is_some()) {
        for figure in Figure::ALL {
            writeln!(output, "\n{}", figure.name())?;
            let rows: Vec<_> = results.iter().filter_map(|result| scenario_row(result, result.policy(own)?, figure)).collect();
            write_table(BY_SCENARIO, &rows, output)?;
        }
        let legend = format!(
            "{} is one standard deviation of single seeds; pairs of seeds mirror each other, so means vary less than this suggests. Wins: \
             on how many of the traces carma is better. Policies with more than 0.5 out-of-memory attempts per run do not count.",
            Terminal::current().glyphs().plus_minus
        );
        writeln!(output, "\n{}", wrapped(&legend))?;
    }
    writeln!(output, "\nAll policies, {}", base.name)?;
    write_table(BY_POLICY, &policy_rows(base), output)?;
    let legend = "OOM is out-of-memory attempts per run (*: too many to count). Slowdown is run time over time alone: the mean over jobs, and the \
                  worst job of a run; both are means over the runs.";
    writeln!(output, "\n{}", wrapped(legend))?;
    if let (Some(carma), Some(magm)) = (base.policy(own), base.policy("magm")) {
        writeln!(output, "\nEach trace, {}", base.name)?;
        let rows: Vec<_> = traces.iter().enumerate().map(|(trace, name)| trace_row(base, (carma, magm), trace, name)).collect();
        write_table(BY_TRACE, &rows, output)?;
    }
    claims(base, traces, output)
}

/// The errors of the estimates in these scenarios.
fn errors(results: &[ScenarioResult]) -> String {
    let mut memory: Vec<(f64, Vec<&str>)> = Vec::new();
    for result in results {
        let error = memory_error_of(result.name).unwrap_or_default();
        match memory.iter_mut().find(|(known, _)| known.total_cmp(&error).is_eq()) {
            Some((_, names)) => names.push(result.name),
            None => memory.push((error, vec![result.name])),
        }
    }
    memory.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let usual = |place: usize, names: &[&str]| if place == 0 { String::new() } else { format!(" ({})", names.join(", ")) };
    let memory: Vec<String> = memory.iter().enumerate().map(|(place, (error, names))| format!("{error}{}", usual(place, names))).collect();
    format!("Relative errors of estimates: memory {}; utilisation and durations {UTILISATION_ERROR}.", memory.join(", "))
}

fn scenario_row(result: &ScenarioResult, carma: &PolicyResult, figure: Figure) -> Option<[String; 7]> {
    let (middle, deviation) = result.figure(carma, figure);
    let (best, of_best) = result.best_published(figure)?;
    let wins = |other| format!("{}/{}", result.wins(carma, other, figure), carma.runs.len());
    let magm = result.policy("magm");
    Some([
        result.name.to_owned(),
        format!(
            "{middle:.3}{}",
            deviation.map(|deviation| format!("{}{deviation:.3}", Terminal::current().glyphs().plus_minus)).unwrap_or_default()
        ),
        magm.map(|magm| format!("{:.3}", result.figure(magm, figure).0)).unwrap_or_default(),
        magm.map(wins).unwrap_or_default(),
        format!("{of_best:.3}"),
        wins(best),
        best.name.clone(),
    ])
}

/// One row for each policy. Policies that did the same are one row.
fn policy_rows(result: &ScenarioResult) -> Vec<[String; 7]> {
    let mut rows: Vec<(&PolicyResult, [String; 7])> = Vec::new();
    for policy in &result.policies {
        if let Some((_, row)) = rows.iter_mut().find(|(earlier, _)| earlier.runs == policy.runs) {
            row[0] = format!("{}, {}", row[0], policy.name);
            continue;
        }
        let figure = |figure| format!("{:.3}", result.figure(policy, figure).0);
        let [makespan, mean_jct, p95_jct, energy] = Figure::ALL.map(figure);
        let oom = format!("{:.2}{}", policy.mean(|run| run.oom_attempts as f64), if policy.counts() { " " } else { "*" });
        let slowdown = format!("{:.2}/{:.1}", policy.mean(|run| run.mean_slowdown), policy.mean(|run| run.worst_slowdown));
        rows.push((policy, [policy.name.clone(), makespan, mean_jct, p95_jct, energy, oom, slowdown]));
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

fn trace_row(result: &ScenarioResult, (carma, magm): (&PolicyResult, &PolicyResult), trace: usize, name: &str) -> [String; 5] {
    let both = |figure| format!("{:.3} / {:.3}", result.on_trace(carma, figure, trace), result.on_trace(magm, figure, trace));
    let [makespan, mean_jct, p95_jct, energy] = Figure::ALL.map(both);
    [name.to_owned(), makespan, mean_jct, p95_jct, energy]
}

/// What the published system claims for its own traces, beside the simulation of its policy and of ours.
fn claims(result: &ScenarioResult, traces: &[&str], output: &mut impl Write) -> Result<()> {
    let mut rows: Vec<[String; 7]> = Vec::new();
    for trace in CLAIMED_ON {
        let Some(place) = traces.iter().position(|name| *name == trace) else { continue };
        for policy in PROTOTYPE.iter().chain(&OWN_POLICIES).filter_map(|name| result.policy(name)) {
            let [makespan, energy, smact, smocc, memory] = changes(&policy.runs[place], &result.policies[0].runs[place]);
            rows.push([trace.to_owned(), policy.name.clone(), makespan, energy, smact, smocc, memory]);
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    let [makespan, energy, smact, smocc, memory] = CLAIMED.map(str::to_owned);
    rows.push(["claimed".to_owned(), "the prototype".to_owned(), makespan, energy, smact, smocc, memory]);
    writeln!(output, "\nAgainst exclusive, on the traces of the published prototype")?;
    Ok(write_table(CLAIMS, &rows, output)?)
}

/// Makespan, energy, SMACT, SMOCC and memory in use, against exclusive.
fn changes(runs: &[RunSummary], exclusive: &[RunSummary]) -> [String; 5] {
    let figures: [fn(&RunSummary) -> f64; 5] =
        [|run| run.makespan, |run| run.energy, |run| run.smact, |run| run.smocc, |run| run.memory_mib];
    figures.map(|figure| {
        let sum = |runs: &[RunSummary]| runs.iter().map(figure).sum::<f64>() / runs.len().max(1) as f64;
        change(ratio(sum(runs), sum(exclusive)) - 1.0, 0)
    })
}
