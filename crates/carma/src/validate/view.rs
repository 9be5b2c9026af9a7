//! Simulated and measured results side by side, for people.

use std::io::Write;

use anyhow::Result;
use carma_core::mean;
use carma_sim::MeasuredRun;

use super::{Accuracy, Row, Validation};
use carma_format::{Column, change, count, labelled, left, right, wrapped, write_table};

type Measure = fn(&Row) -> f64;
type Time = (&'static str, fn(&MeasuredRun) -> f64, Measure);
type Count = (&'static str, fn(&MeasuredRun) -> Option<f64>, usize);

const TIMES: [Time; 4] = [
    ("makespan, s", |run| run.makespan, |row| row.makespan_error),
    ("mean completion, s", |run| run.mean_jct, |row| row.mean_jct_error),
    ("p95 completion, s", |run| run.p95_jct, |row| row.p95_jct_error),
    ("mean execution, s", |run| run.mean_execution, |row| row.execution_error),
];
const COUNTS: [Count; 2] =
    [("out-of-memory attempts", |run| Some(run.oom_attempts), 1), ("energy over exclusive's", |run| run.energy_ratio, 3)];

const fn columns(name: &'static str, last: &'static str) -> [Column; 4] {
    [left(name, 40), right("simulated", 10), right("measured", 10), right(last, 10)]
}

/// Prints every policy, measure by measure, and the total errors.
pub(super) fn print(validation: &Validation, seeds: u64, output: &mut impl Write) -> Result<()> {
    let Validation { rows, pairs, crowds, left_out, .. } = validation;
    for (name, of, error) in TIMES {
        let row = |row: &Row| {
            let [simulated, measured] = [&row.simulated, &row.measured].map(|run| format!("{:.0}", of(run)));
            [format!("  {}", row.policy), simulated, measured, change(error(row), 1)]
        };
        write_table(columns(name, "error"), &rows.iter().map(row).collect::<Vec<_>>(), output)?;
        writeln!(output)?;
    }
    for (name, of, digits) in COUNTS {
        let row = |row: &Row| {
            let (simulated, measured) = of(&row.simulated).zip(of(&row.measured))?;
            let number = |number: f64| format!("{number:.digits$}");
            Some([format!("  {}", row.policy), number(simulated), number(measured), format!("{:+.digits$}", simulated - measured)])
        };
        write_table(columns(name, "difference"), &rows.iter().filter_map(row).collect::<Vec<_>>(), output)?;
        writeln!(output)?;
    }
    let errors = |of: fn(&Row) -> f64, screened: Option<bool>| {
        let chosen = rows.iter().filter(|row| screened.is_none_or(|screened| row.screened == screened));
        chosen.map(|row| of(row).abs()).collect::<Vec<f64>>()
    };
    let worst = |of: fn(&Row) -> f64, screened: bool| 100.0 * errors(of, Some(screened)).into_iter().fold(0.0, f64::max);
    let measures: [(&str, Measure); 2] = [("makespan", |row| row.makespan_error), ("mean completion", |row| row.mean_jct_error)];
    let without: Vec<&str> = rows.iter().filter(|row| !row.screened).map(|row| row.policy.as_str()).collect();
    let spreads = rows.iter().filter_map(|row| Some(100.0 * row.makespan_spread? / row.simulated.makespan));
    let (least, most) = spreads.fold((f64::INFINITY, 0.0_f64), |(least, most), spread| (least.min(spread), most.max(spread)));
    if most > 0.0 {
        let text = format!(
            "Makespans vary by {least:.1} to {most:.1} % over single seeds (one standard deviation); pairs of seeds mirror each other, so means vary less than \
             this suggests."
        );
        writeln!(output, "{}", wrapped(&text))?;
    }
    if !left_out.is_empty() {
        writeln!(output, "{}", wrapped(&format!("Left out, because their estimates are not given: {}.", left_out.join(", "))))?;
    }
    writeln!(output, "{}\n", wrapped(&format!("Without a utilisation screen: {}.", without.join(", "))))?;
    writeln!(output, "Total, {} a policy:", count(seeds as usize, "seed"))?;
    let mut line = |name: &str, value: String| writeln!(output, "{}", labelled(&format!("  {name}"), 19, &value));
    for (name, of) in measures {
        let all = 100.0 * mean(&errors(of, None));
        let (screened, unscreened) = (worst(of, true), worst(of, false));
        line(name, format!("mean error {all:.1} %, worst {screened:.1} % screened, {unscreened:.1} % unscreened"))?;
    }
    let energies: Vec<f64> = rows.iter().filter_map(|row| row.energy_ratio_difference).map(f64::abs).collect();
    line("out of memory", format!("mean difference {:.1} attempts", mean(&errors(|row| row.oom_difference, None))))?;
    if let Some(most) = energies.into_iter().reduce(f64::max) {
        line("energy ratio", format!("within {most:.3}"))?;
    }
    for (name, accuracy) in [("pairs", pairs), ("crowds", crowds)] {
        if let Some(Accuracy { mape }) = accuracy {
            line(name, format!("mean error {:.1} %", 100.0 * mape))?;
        }
    }
    Ok(())
}
