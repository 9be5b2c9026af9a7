//! Simulated beside measured, for people.

use std::io::Write;

use anyhow::Result;
use carma_sim::mean;

use super::{Accuracy, Row, Validation};

type Measure = fn(&Row) -> f64;

/// Prints every policy, measure by measure, and the errors in all.
pub(super) fn print(validation: &Validation, seeds: u64, output: &mut impl Write) -> Result<()> {
    let Validation { rows, pairs, crowds } = validation;
    let names = ["makespan, s", "mean completion, s", "p95 completion, s", "mean execution, s"];
    for (place, name) in names.into_iter().enumerate() {
        writeln!(output, "{name:<24} {:>10} {:>10} {:>8}", "simulated", "measured", "error")?;
        for row in rows {
            let (simulated, measured) = (row.simulated[place], row.measured[place].unwrap_or_default());
            let spread = if place == 0 { format!("  ± {:.0} over seeds", row.makespan_spread) } else { String::new() };
            writeln!(
                output,
                "  {:<22} {simulated:>10.0} {measured:>10.0} {:>+7.1} %{spread}",
                row.policy,
                100.0 * (simulated / measured - 1.0)
            )?;
        }
        writeln!(output)?;
    }
    for (place, name, digits) in [(4, "out-of-memory attempts", 1), (5, "energy over exclusive's", 3)] {
        writeln!(output, "{name:<24} {:>10} {:>10} {:>10}", "simulated", "measured", "difference")?;
        for row in rows {
            let (Some(measured), simulated) = (row.measured[place], row.simulated[place]) else { continue };
            writeln!(output, "  {:<22} {simulated:>10.digits$} {measured:>10.digits$} {:>+10.digits$}", row.policy, simulated - measured)?;
        }
        writeln!(output)?;
    }
    let errors = |of: fn(&Row) -> f64, screened: Option<bool>| {
        let chosen = rows.iter().filter(|row| screened.is_none_or(|screened| row.screened == screened));
        chosen.map(|row| of(row).abs()).collect::<Vec<f64>>()
    };
    let worst = |of: fn(&Row) -> f64, screened: bool| 100.0 * errors(of, Some(screened)).into_iter().fold(0.0, f64::max);
    let measures: [(&str, Measure); 2] = [("makespan", |row| row.makespan_error), ("mean completion", |row| row.mean_jct_error)];
    writeln!(output, "In all, {seeds} seeds a policy:")?;
    for (name, of) in measures {
        let all = 100.0 * mean(&errors(of, None));
        let (screened, unscreened) = (worst(of, true), worst(of, false));
        writeln!(output, "  {name:<16} mean error {all:.1} %, worst {screened:.1} % screened, {unscreened:.1} % unscreened")?;
    }
    let energies: Vec<f64> = rows.iter().filter_map(|row| row.energy_ratio_difference).map(f64::abs).collect();
    writeln!(output, "  out of memory    mean difference {:.1} attempts", mean(&errors(|row| row.oom_difference, None)))?;
    writeln!(output, "  energy ratio     within {:.3}", energies.into_iter().fold(0.0, f64::max))?;
    for (name, accuracy) in [("pairs", pairs), ("crowds", crowds)] {
        if let Some(Accuracy { mape }) = accuracy {
            writeln!(output, "  {name:<16} mean error {:.1} %", 100.0 * mape)?;
        }
    }
    Ok(())
}
