//! Lengths of runs as a table: one line per run, the oldest first.

use std::io::{Read, Write};

use carma_core::Seconds;
use thiserror::Error;

use super::{Durations, Groups};

/// The columns, in order: the groups of a run, its units of work and its length.
const HEADER: [&str; 8] = ["command", "settings", "numbers", "model", "program", "user", "units", "seconds"];
const GROUPS: usize = 6;

/// Error in a table of lengths.
#[derive(Debug, Error)]
pub enum DurationsError {
    /// The CSV cannot be read or written.
    #[error(transparent)]
    Form(#[from] csv::Error),
    /// Wrong columns.
    #[error("line 1: the columns are not {expected}", expected = HEADER.join(","))]
    Header,
    /// An invalid line.
    #[error("line {line}: {problem}")]
    Line {
        /// Line number.
        line: u64,
        /// Description of the error.
        problem: String,
    },
}

impl Durations {
    /// Reads a table that [`Self::write`] wrote.
    pub fn read(table: impl Read) -> Result<Self, DurationsError> {
        let mut reader = csv::Reader::from_reader(table);
        if reader.headers()?.iter().ne(HEADER) {
            return Err(DurationsError::Header);
        }
        let mut durations = Self::default();
        for record in reader.into_records() {
            let record = record?;
            let line = record.position().map_or(0, csv::Position::line);
            let (groups, seconds) = run(&record).map_err(|problem| DurationsError::Line { line, problem })?;
            durations.record(groups, seconds);
        }
        Ok(durations)
    }

    /// Writes all runs with a header.
    pub fn write(&self, table: impl Write) -> Result<(), DurationsError> {
        let mut writer = csv::Writer::from_writer(table);
        writer.write_record(HEADER)?;
        for (groups, seconds) in &self.runs {
            writer.write_record(cells(groups, *seconds))?;
        }
        writer.flush().map_err(csv::Error::from)?;
        Ok(())
    }

    /// The line of one run.
    pub fn line(groups: &Groups, seconds: Seconds) -> String {
        format!("{}\n", cells(groups, seconds).join(","))
    }
}

fn cells(groups: &Groups, seconds: Seconds) -> Vec<String> {
    let keys = groups.keys.iter().map(|key| key.map_or_else(String::new, |key| key.to_string()));
    keys.chain([groups.units.map_or_else(String::new, |units| units.to_string()), seconds.get().to_string()]).collect()
}

fn run(record: &csv::StringRecord) -> Result<(Groups, Seconds), String> {
    let text = |column: usize| record.get(column).unwrap_or("");
    let number = |column: usize| {
        let wrong = || format!("{} is {:?}, not a number above 0", HEADER[column], text(column).chars().take(40).collect::<String>());
        text(column).parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0).ok_or_else(wrong)
    };
    let mut keys = [None; GROUPS];
    for (column, key) in keys.iter_mut().enumerate().filter(|(column, _)| !text(*column).is_empty()) {
        *key = Some(text(column).parse().map_err(|error| format!("{}: {error}", HEADER[column]))?);
    }
    let units = if text(GROUPS).is_empty() { None } else { Some(number(GROUPS)?) };
    let seconds = Seconds::new(number(GROUPS + 1)?).map_err(|error| format!("seconds: {error}"))?;
    Ok((Groups { keys, units }, seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_table_is_refused_with_its_line() {
        let header = HEADER.join(",");
        for (table, problem) in [
            ("a,b\n".to_owned(), "line 1: the columns are not command,settings,numbers,model,program,user,units,seconds"),
            (format!("{header}\n,,,,,,,0\n"), "line 2: seconds is \"0\", not a number above 0"),
            (format!("{header}\nxyz,,,,,,,1\n"), "line 2: command: \"xyz\" is not a signature of 32 hexadecimal digits"),
        ] {
            assert_eq!(Durations::read(table.as_bytes()).unwrap_err().to_string(), problem);
        }
    }
}
