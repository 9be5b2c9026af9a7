//! The comparison for people, in 80 columns.

use std::io::Write;

use anyhow::Result;
use carma_format::{Column, Terminal, count, duration, energy, left, right, wrapped, write_table};
use serde_json::Value;

use carma_sim::{Comparison, ComparisonRow, CurvePoint, Origin, spread};

const COLUMNS: [Column; 7] =
    [left("", 30), left("makespan", 12), left("mean JCT", 12), right("p95", 6), right("energy", 6), right("OOM", 6), right("slowdown", 9)];
const CURVE_COLUMNS: [Column; 5] = [right("", 10), right("makespan", 9), right("mean JCT", 9), right("energy", 7), right("OOM", 6)];

/// Prints the table.
pub(super) fn print(comparison: &Comparison, output: &mut impl Write) -> Result<()> {
    let Comparison { trace, jobs, servers, seeds, bounds, .. } = comparison;
    let runs = comparison.contenders.first().map_or(0, |contender| contender.summaries.len());
    let orders = if runs > *seeds { format!(" in {} orders", runs / seeds) } else { String::new() };
    writeln!(output, "{trace}: {} on {servers}; ratios to exclusive; seeds: {seeds}{orders}\n", count(*jobs, "job"))?;
    let rows = comparison.rows();
    let mut cells: Vec<[String; 7]> = rows.iter().map(row).collect();
    if let Some(exclusive) = comparison.contenders.first() {
        let (makespan, _) = spread(&exclusive.summaries, |summary| summary.makespan);
        for (name, bound) in [("critical path", bounds.critical_path), ("work / capacity", bounds.work_over_capacity)] {
            let mut bound = [name.to_owned(), format!("{:.3}", bound / makespan)].into_iter();
            cells.push(std::array::from_fn(|_| bound.next().unwrap_or_default()));
        }
    }
    write_table(COLUMNS, &cells, output)?;
    if let Some(ComparisonRow { makespan_s, mean_jct_s, p95_jct_s, energy_j, .. }) = rows.first() {
        let [makespan, jct, p95] = [makespan_s, mean_jct_s, p95_jct_s].map(|seconds| duration(*seconds));
        let exclusive = format!("exclusive: makespan {makespan}, mean JCT {jct}, p95 {p95}, {}", energy(*energy_j));
        writeln!(output, "\n{}", wrapped(&exclusive))?;
    }
    writeln!(output, "\n{}", wrapped(&legend(runs)))?;
    let victims = rows.iter().filter(|row| row.oom_victims > 0.0).map(|row| format!("{} {:.1}", row.policy, row.oom_victims));
    let victims: Vec<String> = victims.collect();
    if !victims.is_empty() {
        writeln!(output, "{}", wrapped(&format!("OOM of attempts that had kept to their reservation: {}.", victims.join(", "))))?;
    }
    for row in rows.iter().filter(|row| row.failed > 0.0) {
        writeln!(output, "{}: {:.1} jobs a run did not succeed, and are not in the means.", row.policy, row.failed)?;
    }
    for curve in &comparison.curves {
        writeln!(output, "\n{} with {}", curve.policy, curve.setting)?;
        write_table(CURVE_COLUMNS, &curve.points.iter().map(point).collect::<Vec<_>>(), output)?;
    }
    for caveat in &comparison.caveats {
        writeln!(output, "\n{}", wrapped(caveat))?;
    }
    Ok(())
}

/// Writes the rows as CSV, each with what is needed to make it again.
pub(super) fn write_csv(comparison: &Comparison, output: &mut impl Write) -> Result<()> {
    let mut table = csv::Writer::from_writer(output);
    let Origin { carma, command, seeds, policies, .. } = &comparison.origin;
    let inputs = comparison.origin.inputs_in_words();
    for (place, (row, policy)) in comparison.rows().into_iter().zip(policies).enumerate() {
        let Value::Object(cells) = serde_json::to_value(&row)? else { continue };
        let origin = [
            ("trace", Value::from(comparison.trace.as_str())),
            ("jobs", comparison.jobs.into()),
            ("servers", comparison.servers.as_str().into()),
            ("seeds", comparison.seeds.into()),
            ("carma", carma.as_str().into()),
            ("which_seeds", seeds.as_str().into()),
            ("estimator", policy.estimator.as_str().into()),
            ("settings", policy.settings.as_str().into()),
            ("command", command.as_str().into()),
            ("inputs", inputs.as_str().into()),
        ];
        let cells: Vec<(String, Value)> = cells.into_iter().chain(origin.map(|(name, value)| (name.to_owned(), value))).collect();
        // The name of the row first; a JSON object has its keys in the order of the alphabet.
        let (mut cells, rest): (Vec<_>, Vec<_>) = cells.into_iter().partition(|(name, _)| name == "policy");
        cells.extend(rest);
        if place == 0 {
            table.write_record(cells.iter().map(|(name, _)| name))?;
        }
        table.write_record(cells.iter().map(|(_, value)| cell(value)))?;
    }
    Ok(table.flush()?)
}

/// A value without the quotation marks and nulls of JSON.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// How to read the columns.
fn legend(runs: usize) -> String {
    let spread = if runs > 1 {
        let plus_minus = Terminal::current().glyphs().plus_minus;
        format!(
            "{plus_minus} is one standard deviation of single runs; pairs of seeds mirror each other, so means vary less than this suggests. "
        )
    } else {
        String::new()
    };
    format!(
        "{spread}Slowdown is run time over time alone: the mean over jobs, and the worst job of a run; both are means over the runs. Sharing may go \
         below work / capacity."
    )
}

fn row(row: &ComparisonRow) -> [String; 7] {
    let plus_minus = Terminal::current().glyphs().plus_minus;
    let with_spread = |ratio: f64, spread: Option<f64>| {
        format!("{ratio:.3}{}", spread.map(|spread| format!("{plus_minus}{spread:.3}")).unwrap_or_default())
    };
    [
        row.policy.clone(),
        with_spread(row.makespan_ratio, row.makespan_spread),
        with_spread(row.mean_jct_ratio, row.mean_jct_spread),
        format!("{:.3}", row.p95_jct_ratio),
        format!("{:.3}", row.energy_ratio),
        format!("{:.1}", row.oom_attempts),
        format!("{:.2}/{:.1}", row.mean_slowdown, row.worst_slowdown),
    ]
}

fn point(point: &CurvePoint) -> [String; 5] {
    let ratios = [point.makespan_ratio, point.mean_jct_ratio, point.energy_ratio];
    let [makespan, mean_jct, energy] = ratios.map(|ratio| format!("{ratio:.3}"));
    [format!("  {}", point.value), makespan, mean_jct, energy, format!("{:.1}", point.oom_attempts)]
}
