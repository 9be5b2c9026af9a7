//! The printed table.

use std::time::Duration;

/// The measurements of a case.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The case.
    pub(crate) name: String,
    /// The median time of a call.
    pub(crate) time: Duration,
    /// Instructions of a call.
    pub(crate) instructions: Option<u64>,
}

pub(crate) fn print_head(title: &str) {
    println!("\n{title}\n{:<46} {:>10} {:>14} {:>7} {:>7}", "case", "time", "instructions", "x time", "x instr");
}

/// A row, with its ratios to a reference of the same run.
pub(crate) fn print_row(row: &Row, reference: &Row) {
    let ratio = row.time.as_secs_f64() / reference.time.as_secs_f64().max(1e-9);
    let instructions = row.instructions.map_or("not counted".to_owned(), |count| count.to_string());
    let counted = row.instructions.zip(reference.instructions).map(|(count, of)| count as f64 / of.max(1) as f64);
    let counted = counted.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
    println!("{:<46} {:>7.2} us {instructions:>14} {ratio:>7.2} {counted:>7}", row.name, row.time.as_secs_f64() * 1e6);
}
