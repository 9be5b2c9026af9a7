//! The same rows by kind of network, and as published estimators answered them.

use std::io::Write;

use anyhow::Result;
use carma_estimate::Family;
use carma_format::{left, right, write_table};
use carma_learn::evaluate::{Answer, Scores};

use super::evaluate::EvaluatedRow;

/// One line for each kind of network where there are several, and one for each published estimator.
pub(super) fn show(rows: &[EvaluatedRow], output: &mut impl Write) -> Result<()> {
    let mut lines: Vec<(String, Vec<Answer>)> = Vec::new();
    for family in Family::ALL {
        let answers: Vec<Answer> = rows.iter().filter(|row| row.family == Some(family)).map(|row| row.answer).collect();
        if !answers.is_empty() && answers.len() < rows.len() {
            lines.push((format!("{family:?}").to_lowercase(), answers));
        }
    }
    let mut names: Vec<&str> = rows.iter().flat_map(|row| &row.published).map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let answer = |row: &EvaluatedRow| {
            let (_, point) = row.published.iter().find(|(known, point)| *known == name && *point > 0.0)?;
            Some(Answer { point: *point, bound: *point, ..row.answer })
        };
        lines.push((format!("{name} (published)"), rows.iter().filter_map(answer).collect()));
    }
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(output)?;
    let percent = |share: f64| format!("{:.2} %", share * 100.0);
    let cells = |(name, answers): &(String, Vec<Answer>)| {
        let scores = Scores::of(answers);
        let shares = [scores.median_ape, scores.mape, scores.within_10pct].map(percent);
        let [median, mean, within] = shares;
        [name.clone(), scores.rows.to_string(), median, mean, within]
    };
    let columns = [left("on these rows", 24), right("rows", 6), right("median", 9), right("mean", 9), right("within 10 %", 12)];
    Ok(write_table(columns, &lines.iter().map(cells).collect::<Vec<_>>(), output)?)
}
