//! CARMA's `.rad` task files: they refer to the model's summary and state how it is trained.
//!
//! One value per line: comment, `conda activate ENV`, command, summary, dataset, batch, mode, GPUs, then known needs. Files with
//! `key = value` lines are accepted too.

use super::error::{ParseError, Problem};
use super::text;
use super::{Description, Format, Hints};
use crate::model::Model;

pub(super) fn read(text: &str) -> Result<Description, ParseError> {
    let lines: Vec<&str> = text.lines().take(64).map(str::trim).collect();
    let hints = if lines.get(1).is_some_and(|line| line.starts_with("conda activate")) { by_place(&lines)? } else { by_key(&lines)? };
    let summary = hints.summary.as_deref().unwrap_or_default();
    let notes = vec![format!("the layers are in {summary:?}, which this task file points to")];
    Ok(Description { format: Format::Rad, model: Model::default(), hints, notes })
}

fn by_place(lines: &[&str]) -> Result<Hints, ParseError> {
    let line = |place: usize, what: &str| {
        let line = lines.get(place).copied().filter(|line| !line.is_empty());
        line.ok_or_else(|| Problem::Missing(format!("{what} is missing: it is line {} of a task file", place + 1)).at_line(place + 1))
    };
    let number = |place: usize, what: &str| positive(line(place, what)?, place + 1);
    line(2, "the command")?;
    let summary = line(3, "the model's summary")?.to_owned();
    line(4, "the dataset")?;
    let batch = number(5, "the batch size")?;
    line(6, "the mode")?;
    let gpus = number(7, "the number of GPUs")?;
    Ok(Hints { batch: Some(batch), gpus: Some(gpus), summary: Some(summary), ..Hints::default() })
}

fn by_key(lines: &[&str]) -> Result<Hints, ParseError> {
    let mut hints = Hints::default();
    for (place, line) in lines.iter().enumerate() {
        let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) else { continue };
        let value = value.trim().trim_matches('"');
        match key.trim() {
            "summary" | "model" | "model_summary" => hints.summary = Some(value.to_owned()),
            "batch" | "batch_size" => hints.batch = Some(positive(value, place + 1)?),
            "sequence" | "sequence_length" => hints.sequence = Some(positive(value, place + 1)?),
            "gpus" => hints.gpus = Some(positive(value, place + 1)?),
            _ => {}
        }
    }
    if hints.summary.is_none() {
        let problem = "the model's summary is missing: line 4 of a task file, or `summary = FILE`";
        return Err(Problem::Missing(problem.to_owned()).at_line(lines.len().max(1)));
    }
    Ok(hints)
}

fn positive(value: &str, line: usize) -> Result<u64, ParseError> {
    text::count(value).filter(|&number| number > 0).ok_or_else(|| Problem::expected(value, "a whole number of 1 or more").at_line(line))
}
