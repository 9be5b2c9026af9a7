//! The comparison for people, in 80 columns.

use std::io::Write;

use anyhow::Result;
use carma_sim::{Comparison, ComparisonRow, spread};

use carma_format::wrapped;

/// Prints the table.
pub(super) fn print(comparison: &Comparison, output: &mut impl Write) -> Result<()> {
    let Comparison { trace, jobs, servers, seeds, bounds, .. } = comparison;
    let runs = comparison.contenders.first().map_or(0, |contender| contender.summaries.len());
    let orders = if runs > *seeds { format!(" in {} orders", runs / seeds) } else { String::new() };
    writeln!(output, "{trace}: {jobs} jobs on {servers}; ratios to exclusive; seeds: {seeds}{orders}\n")?;
    let rows = comparison.rows();
    let width = rows.iter().map(|row| row.policy.chars().count()).max().unwrap_or(0).max(22);
    writeln!(output, "{:<width$} {:>11} {:>11} {:>6} {:>6} {:>6} {:>9}", "", "makespan", "mean JCT", "p95", "energy", "OOM", "slowdown")?;
    for row in &rows {
        let with_spread = |ratio: f64, spread: f64| format!("{ratio:.3}±{spread:.3}");
        let ComparisonRow { makespan_ratio, makespan_spread, mean_jct_ratio, mean_jct_spread, .. } = *row;
        writeln!(
            output,
            "{:<width$} {:>11} {:>11} {:>6.3} {:>6.3} {:>6.1} {:>9}",
            row.policy,
            with_spread(makespan_ratio, makespan_spread),
            with_spread(mean_jct_ratio, mean_jct_spread),
            row.p95_jct_ratio,
            row.energy_ratio,
            row.oom_attempts,
            format!("{:.2}/{:.1}", row.mean_slowdown, row.worst_slowdown),
        )?;
    }
    if let Some(exclusive) = comparison.contenders.first() {
        let (makespan, _) = spread(&exclusive.summaries, |summary| summary.makespan);
        writeln!(output, "{:<width$} {:>5.3}", "critical path", bounds.critical_path / makespan)?;
        writeln!(output, "{:<width$} {:>5.3}", "work / capacity", bounds.work_over_capacity / makespan)?;
    }
    writeln!(output, "\n± is one standard deviation over the runs; slowdown is the mean and the worst of")?;
    writeln!(output, "run time over time alone; sharing may go below work / capacity.")?;
    for row in rows.iter().filter(|row| row.failed > 0.0) {
        writeln!(output, "{}: {:.1} jobs a run did not succeed, and are not in the means.", row.policy, row.failed)?;
    }
    for curve in &comparison.curves {
        writeln!(output, "\n{} with {}", curve.policy, curve.setting)?;
        writeln!(output, "  {:>8} {:>9} {:>9} {:>7} {:>6}", "", "makespan", "mean JCT", "energy", "OOM")?;
        for point in &curve.points {
            writeln!(
                output,
                "  {:>8} {:>9.3} {:>9.3} {:>7.3} {:>6.1}",
                point.value, point.makespan_ratio, point.mean_jct_ratio, point.energy_ratio, point.oom_attempts
            )?;
        }
    }
    for caveat in &comparison.caveats {
        writeln!(output, "\n{}", wrapped(caveat))?;
    }
    Ok(())
}
