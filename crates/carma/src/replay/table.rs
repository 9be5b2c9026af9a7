//! Runs side by side, for people.

use std::io::{self, Write};

use carma_core::Outcome;
use carma_sim::ratio;

use super::figures::Figures;
use carma_format::{energy, left, right, write_table};

/// Selects the value of a row.
type Pick = fn(&Figures) -> Option<f64>;

/// Rows: name, value, unit.
const ROWS: [(&str, Pick, Unit); 8] = [
    ("last job done", |run| Some(run.makespan), Unit::Minutes),
    ("mean wait", |run| Some(run.mean_wait), Unit::Minutes),
    ("mean completion time", |run| Some(run.mean_jct), Unit::Minutes),
    ("its 95th percentile", |run| Some(run.p95_jct), Unit::Minutes),
    ("mean time running", |run| Some(run.mean_execution), Unit::Minutes),
    ("energy", |run| run.energy, Unit::Joules),
    (Outcome::OutOfMemory.kind(), |run| Some(run.oom_attempts), Unit::Attempts),
    ("failed, not included above", |run| Some(run.failed).filter(|failed| *failed > 0.0), Unit::Attempts),
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
    /// The names of the rows.
    Names,
    /// A run.
    Run(&'static str, &'a Figures),
    /// One run as a share of another.
    Ratio(&'a Figures, &'a Figures),
}

impl Column<'_> {
    const fn head(&self) -> carma_format::Column {
        match self {
            Self::Names => left("", 24),
            Self::Run(title, _) => right(title, 12),
            Self::Ratio(..) => right("ratio", 12),
        }
    }

    fn cell(&self, (name, of, unit): (&str, Pick, Unit)) -> String {
        let cell = match self {
            Self::Names => Some(name.to_owned()),
            Self::Run(_, run) => of(run).map(|value| match unit {
                Unit::Minutes => format!("{:.1} min", value / 60.0),
                Unit::Joules => energy(value),
                // Means of simulated runs need not be whole.
                Unit::Attempts => ((value * 10.0).round() / 10.0).to_string(),
            }),
            Self::Ratio(part, whole) => {
                of(part).zip(of(whole)).filter(|_| unit != Unit::Attempts).map(|(part, whole)| format!("{:.2}", ratio(part, whole)))
            }
        };
        cell.unwrap_or_default()
    }
}

/// Writes the columns, names first, without rows that have no value.
pub(crate) fn write<const N: usize>(columns: [Column<'_>; N], output: &mut impl Write) -> io::Result<()> {
    let rows = ROWS.map(|row| columns.map(|column| column.cell(row)));
    let rows: Vec<_> = rows.into_iter().filter(|cells| cells[1..].iter().any(|cell| !cell.is_empty())).collect();
    write_table(columns.map(|column| column.head()), &rows, output)
}

/// The rows in which a run is not within a range.
pub(crate) fn outside(run: &Figures, (least, most): (&Figures, &Figures)) -> Vec<&'static str> {
    let within =
        |of: Pick| matches!((of(least), of(run), of(most)), (Some(least), Some(value), Some(most)) if least <= value && value <= most);
    let known = |of: Pick| of(run).is_some() && of(least).is_some();
    ROWS.iter().filter(|(_, of, _)| known(*of) && !within(*of)).map(|(name, ..)| *name).collect()
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
        let columns = [Column::Names, Column::Run("exclusive", &one), Column::Run("sharing", &other), Column::Ratio(&other, &one)];
        write(columns, &mut table).unwrap();
        insta::assert_snapshot!(String::from_utf8(table).unwrap());
    }

    #[test]
    fn figures_outside_a_range_are_named() {
        let run = |makespan: f64, energy: f64| Figures {
            makespan,
            mean_wait: 0.0,
            mean_execution: 1.0,
            mean_jct: 1.0,
            p95_jct: 1.0,
            energy: Some(energy),
            oom_attempts: 0.0,
            failed: 0.0,
        };
        let range = (&run(1.0, 1.0), &run(2.0, 2.0));
        assert_eq!(outside(&run(1.5, 2.0), range), [""; 0]);
        assert_eq!(outside(&run(0.9, 2.1), range), ["last job done", "energy"]);
    }
}
