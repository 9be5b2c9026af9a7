//! A history as a table: one line per run, the oldest run of a job first.

use std::io::{Read, Write};

use carma_core::{Fraction, Interference, MiB, Seconds, Utilisation, Watts};
use csv::StringRecord;
use thiserror::Error;

use super::{History, METRICS, Measured, RunEnd, Signature};

/// The columns, in order.
const HEADER: [&str; 10] = ["signature", "memory_mib", "smact", "smocc", "drama", "watts", "seconds", "pressure", "sensitivity", "end"];
/// Columns of every table; older tables have only these.
const FIRST_COLUMNS: usize = 7;

/// Last column of a run that ran out of memory; empty for completed runs.
const OUT_OF_MEMORY: &str = "out_of_memory";

/// Upper limit of memory in MiB: a petabyte.
const MOST_MIB: u64 = 1 << 30;

/// Error in a table of runs.
#[derive(Debug, Error)]
pub enum HistoryError {
    /// The CSV cannot be read or written.
    #[error(transparent)]
    Form(#[from] csv::Error),
    /// Wrong columns.
    #[error("line 1: the columns are {0:?} instead of {expected:?}", expected = HEADER.join(","))]
    Header(String),
    /// An invalid line.
    #[error("line {line}: {problem}")]
    Line {
        /// Line number.
        line: u64,
        /// Description of the error.
        problem: String,
    },
}

impl History {
    /// Reads a table that [`Self::write`] wrote; a cell without a measurement is empty.
    pub fn read(table: impl Read) -> Result<Self, HistoryError> {
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).flexible(true).from_reader(table);
        let headers = reader.headers()?;
        let known = headers.len() >= FIRST_COLUMNS && headers.len() <= HEADER.len();
        if !known || headers.iter().zip(HEADER).any(|(found, column)| found != column) {
            return Err(HistoryError::Header(
                headers.iter().take(8).map(|name| name.chars().take(40).collect::<String>()).collect::<Vec<_>>().join(","),
            ));
        }
        let mut history = Self::default();
        for record in reader.into_records() {
            let record = record?;
            let line = record.position().map_or(0, csv::Position::line);
            let (signature, run) = run(&record).map_err(|problem| HistoryError::Line { line, problem })?;
            history.record(signature, run);
        }
        Ok(history)
    }

    /// Writes all runs with a header.
    pub fn write(&self, table: impl Write) -> Result<(), HistoryError> {
        fn cell<T>(value: Option<T>, number: impl Fn(T) -> f64) -> String {
            value.map_or_else(String::new, |value| number(value).to_string())
        }
        let mut writer = csv::Writer::from_writer(table);
        writer.write_record(HEADER)?;
        for (signature, runs) in &self.runs {
            for run in runs {
                let [smact, smocc, drama] = METRICS.map(|metric| cell(run.utilisation[metric], Fraction::get));
                let (watts, seconds) = (cell(run.watts, |watts| watts.0), cell(run.seconds, Seconds::get));
                let (signature, memory) = (signature.to_string(), run.memory.0.to_string());
                let [pressure, sensitivity] =
                    [|seen: Interference| seen.pressure, |seen: Interference| seen.sensitivity].map(|of| cell(run.interference, of));
                let end = match run.end {
                    RunEnd::Completed => String::new(),
                    RunEnd::OutOfMemory => OUT_OF_MEMORY.to_owned(),
                };
                writer.write_record([signature, memory, smact, smocc, drama, watts, seconds, pressure, sensitivity, end])?;
            }
        }
        writer.flush().map_err(csv::Error::from)?;
        Ok(())
    }
}

fn run(record: &StringRecord) -> Result<(Signature, Measured), String> {
    let text = |column: usize| record.get(column).unwrap_or("");
    let number = |column: usize| {
        let text = text(column);
        let wrong = || format!("{} is {:?}, not a number", HEADER[column], text.chars().take(40).collect::<String>());
        if text.is_empty() { Ok(None) } else { text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Some).ok_or_else(wrong) }
    };
    let share = |column: usize| {
        let share = number(column)?.map(Fraction::new).transpose();
        share.map_err(|error| format!("{}: {error}", HEADER[column]))
    };
    let signature = text(0).parse().map_err(|error| format!("{error}"))?;
    let memory = text(1).parse().ok().filter(|memory| *memory <= MOST_MIB);
    let memory =
        memory.ok_or_else(|| format!("memory_mib is {:?}, not a whole number of MiB", text(1).chars().take(40).collect::<String>()))?;
    let watts = number(5)?;
    if let Some(watts) = watts.filter(|watts| *watts < 0.0) {
        return Err(format!("watts is {watts}, less than nothing"));
    }
    let seconds = number(6)?.map(Seconds::new).transpose().map_err(|error| format!("seconds: {error}"))?;
    let interference = number(7)?.zip(number(8)?).map(|(pressure, sensitivity)| Interference { pressure, sensitivity });
    if interference.is_some_and(|seen| !seen.is_sensible()) {
        return Err("pressure and sensitivity are no factors that can be learned".to_owned());
    }
    let mut utilisation = Utilisation::NONE;
    for (metric, column) in METRICS.into_iter().zip(2..) {
        utilisation[metric] = share(column)?;
    }
    let end = match text(9) {
        "" => RunEnd::Completed,
        OUT_OF_MEMORY => RunEnd::OutOfMemory,
        other => return Err(format!("end is {:?}, neither empty nor {OUT_OF_MEMORY}", other.chars().take(40).collect::<String>())),
    };
    let run = Measured { memory: MiB(memory), utilisation, watts: watts.map(Watts), seconds, interference, end };
    Ok((signature, run))
}
