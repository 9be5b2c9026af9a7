//! Runs side by side, for people.

use std::io::{self, Write};

use carma_sim::ratio;

use super::figures::Figures;
use carma_format::energy;

/// Selects the value of a row.
type Pick = fn(&Figures) -> Option<f64>;

/// Rows: name, value, unit.
const ROWS: [(&str, Pick, Unit); 7] = [
    ("last job done", |run| Some(run.makespan), Unit::Minutes),
    ("mean wait", |run| Some(run.mean_wait), Unit::Minutes),
    ("mean time to completion", |run| Some(run.mean_jct), Unit::Minutes),
    ("mean time running", |run| Some(run.mean_execution), Unit::Minutes),
    ("energy", |run| run.energy, Unit::Joules),
    ("ran out of memory", |run| Some(run.oom_attempts), Unit::Attempts),
    ("failed, left out above", |run| Some(run.failed).filter(|failed| *failed > 0.0), Unit::Attempts),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Minutes,
    Joules,
    Attempts,
}

/// A column of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column<'a> {
    /// A run.
    Run(&'a str, &'a Figures),
    /// One run as a share of another.
    Ratio(&'a str, &'a Figures, &'a Figures),
}

impl Column<'_> {
    const fn title(&self) -> &str {
        match self {
            Self::Run(title, ..) | Self::Ratio(title, ..) => title,
        }
    }

    fn cell(&self, of: Pick, unit: Unit) -> String {
        let shown = match self {
            Self::Run(_, run) => of(run).map(|value| match unit {
                Unit::Minutes => format!("{:.1} min", value / 60.0),
                Unit::Joules => energy(value),
                // Means of simulated runs need not be whole.
                Unit::Attempts => ((value * 10.0).round() / 10.0).to_string(),
            }),
            Self::Ratio(_, part, whole) => {
                of(part).zip(of(whole)).filter(|_| unit != Unit::Attempts).map(|(part, whole)| format!("{:.2}", ratio(part, whole)))
            }
        };
        shown.unwrap_or_default()
    }
}

/// Writes the columns, without rows that are empty in all of them.
pub(crate) fn write(columns: &[Column<'_>], output: &mut impl Write) -> io::Result<()> {
    let mut line = |name: &str, cells: Vec<String>| {
        let line = cells.iter().fold(format!("{name:<24}"), |line, cell| format!("{line} {cell:>12}"));
        writeln!(output, "{}", line.trim_end())
    };
    line("", columns.iter().map(|column| column.title().to_owned()).collect())?;
    for (name, of, unit) in ROWS {
        let cells: Vec<String> = columns.iter().map(|column| column.cell(of, unit)).collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            line(name, cells)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_columns_and_empty_rows_are_left_out() {
        let run = |makespan: f64, energy| Figures {
            makespan,
            mean_wait: 90.0,
            mean_execution: 600.0,
            mean_jct: 690.0,
            p95_jct: 800.0,
            energy,
            oom_attempts: 1.0,
            failed: 0.0,
        };
        let (one, other) = (run(3600.0, Some(7.2e6)), run(2400.0, None));
        let mut table = Vec::new();
        write(&[Column::Run("exclusive", &one), Column::Run("sharing", &other), Column::Ratio("ratio", &other, &one)], &mut table).unwrap();
        insta::assert_snapshot!(String::from_utf8(table).unwrap());
    }
}
