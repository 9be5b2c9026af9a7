//! The table of a comparison.

use std::fmt::Write;

use crate::compare::{Comparison, ComparisonRow, spread};
use carma_format::draw::escape;
use carma_format::number;

/// Which value of a column is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Best {
    Lowest,
    Highest,
}

/// A column: its heading, its description, its values with their spread, and their number of decimals.
struct Column {
    heading: &'static str,
    meaning: &'static str,
    value: fn(&ComparisonRow) -> f64,
    spread: Option<fn(&ComparisonRow) -> Option<f64>>,
    decimals: usize,
    best: Best,
}

const fn column(heading: &'static str, meaning: &'static str, value: fn(&ComparisonRow) -> f64, decimals: usize, best: Best) -> Column {
    Column { heading, meaning, value, spread: None, decimals, best }
}

const COLUMNS: [Column; 10] = [
    Column {
        spread: Some(|row| row.makespan_spread),
        ..column("Makespan", "from the first submission to the last end, over exclusive's", |row| row.makespan_ratio, 2, Best::Lowest)
    },
    Column {
        spread: Some(|row| row.mean_jct_spread),
        ..column("Mean JCT", "mean time from submission to end, over exclusive's", |row| row.mean_jct_ratio, 2, Best::Lowest)
    },
    column("p95 JCT", "95th percentile of times from submission to end, over exclusive's", |row| row.p95_jct_ratio, 2, Best::Lowest),
    column("Energy", "energy of all GPUs, over exclusive's", |row| row.energy_ratio, 2, Best::Lowest),
    column("SMACT", "mean SM activity, over exclusive's", |row| row.smact_ratio, 2, Best::Highest),
    column("SMOCC", "mean SM occupancy, over exclusive's", |row| row.smocc_ratio, 2, Best::Highest),
    column("Memory", "mean GPU memory in use, over exclusive's", |row| row.memory_ratio, 2, Best::Highest),
    column("OOM attempts", "attempts that ran out of GPU memory, mean over seeds", |row| row.oom_attempts, 1, Best::Lowest),
    column("Mean slowdown", "run time over time alone, mean over jobs and runs", |row| row.mean_slowdown, 2, Best::Lowest),
    column(
        "Worst slowdown",
        "run time over time alone of the worst job of a run, mean over the runs",
        |row| row.worst_slowdown,
        2,
        Best::Lowest,
    ),
];

const FAILED: Column = column("Failed jobs", "jobs that did not succeed, mean over seeds", |row| row.failed, 1, Best::Lowest);

impl Column {
    /// The formatted value; values that look equal count as equal.
    fn written(&self, row: &ComparisonRow) -> String {
        format!("{:.*}", self.decimals, (self.value)(row))
    }

    /// The formatted best value of the column; none if all are equal.
    fn winner(&self, rows: &[ComparisonRow]) -> Option<String> {
        let better = |a: &&ComparisonRow, b: &&ComparisonRow| (self.value)(a).total_cmp(&(self.value)(b));
        let best = match self.best {
            Best::Lowest => rows.iter().min_by(better),
            Best::Highest => rows.iter().max_by(better),
        };
        let best = self.written(best?);
        rows.iter().any(|row| self.written(row) != best).then_some(best)
    }
}

/// The table in HTML: one row per contender, then the lower bounds.
pub(super) fn table(comparison: &Comparison) -> String {
    let rows = comparison.rows();
    let failed = rows.iter().any(|row| row.failed > 0.0);
    let columns: Vec<&Column> = COLUMNS.iter().chain(failed.then_some(&FAILED)).collect();
    let mut html = String::from("<table>\n<thead><tr><th scope=\"col\">Policy</th>");
    for column in &columns {
        let _ = write!(html, "<th scope=\"col\" title=\"{}\">{}</th>", escape(column.meaning), escape(column.heading));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    let winners: Vec<Option<String>> = columns.iter().map(|column| column.winner(&rows)).collect();
    for row in &rows {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(&row.policy));
        for (column, winner) in columns.iter().zip(&winners) {
            let value = column.written(row);
            let class = if winner.as_ref() == Some(&value) { " class=\"best\"" } else { "" };
            let spread =
                column.spread.and_then(|spread| spread(row)).map(|spread| format!(" <small>± {spread:.2}</small>")).unwrap_or_default();
            let _ = write!(html, "<td{class}>{value}{spread}</td>");
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n<tfoot>\n");
    let makespan = comparison.contenders.first().map(|exclusive| spread(&exclusive.summaries, |summary| summary.makespan).0);
    let bounds = [
        ("Critical path", comparison.bounds.critical_path, "the last end if every job ran alone as soon as it was submitted"),
        (
            "Work over capacity",
            comparison.bounds.work_over_capacity,
            "all jobs' time alone, spread evenly over the GPUs; sharing can go below",
        ),
    ];
    for (name, seconds, meaning) in bounds {
        let share =
            makespan.filter(|makespan| *makespan > 0.0).map_or_else(|| "–".to_owned(), |makespan| number_of_two(seconds / makespan));
        let _ = writeln!(
            html,
            "<tr><th scope=\"row\">{name}</th><td>{share}</td><td class=\"meaning\" colspan=\"{}\">{meaning}</td></tr>",
            columns.len() - 1
        );
    }
    html.push_str("</tfoot>\n</table>\n");
    html
}

fn number_of_two(value: f64) -> String {
    if value < 100.0 { format!("{value:.2}") } else { number(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(makespan_ratio: f64) -> ComparisonRow {
        ComparisonRow { makespan_ratio, ..ComparisonRow::default() }
    }

    #[test]
    fn the_best_value_is_marked_unless_all_are_equal() {
        assert_eq!(COLUMNS[0].winner(&[row(1.0), row(0.61), row(0.70)]).as_deref(), Some("0.61"));
        assert_eq!(COLUMNS[0].winner(&[row(1.0), row(1.001)]), None);
        assert_eq!(COLUMNS[0].winner(&[]), None);
    }
}
