//! Text format of a recording: a format line, a header line in JSON, then one event per line.

use std::collections::HashMap;
use std::io::BufRead;

use serde::{Deserialize, Serialize};

use super::{Convolution, Direction, Event, Mark, Purpose, StorageId};
use crate::model::ElementType;

/// First line of a recording.
const FORMAT: &str = "carma-memory-trace 1";

/// Header of a recording; unknown fields are ignored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// Version of PyTorch that ran.
    pub torch: Option<String>,
    /// The script.
    pub script: Option<String>,
    /// Number of recorded iterations.
    pub iterations: Option<u32>,
    /// Class of the optimizer.
    pub optimizer: Option<String>,
    /// Samples in a batch.
    pub batch: Option<u64>,
    /// Notes for the user, such as that the optimizer made no step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A recording of one process: events for each device it used.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recording {
    /// Its header.
    pub header: Header,
    /// Events by device.
    pub devices: Vec<Vec<Event>>,
}

/// Why a recording could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// Not a recording.
    #[error("not a memory trace: the first line must be `{FORMAT}`")]
    NotATrace,
    /// An invalid line.
    #[error("line {line}: {problem}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// Description of the error.
        problem: String,
    },
    /// An I/O error.
    #[error("cannot read the trace")]
    Read(#[from] std::io::Error),
}

/// Upper limit of devices: a wrong number must not exhaust memory.
const MOST_DEVICES: usize = 1024;
const MOST_STORAGES: u32 = 200_000_000;

impl Recording {
    /// Reads the text format.
    pub fn read(reader: impl BufRead) -> Result<Self, TraceError> {
        let mut lines = reader.lines().enumerate();
        let mut next = || lines.next().map(|(number, line)| line.map(|line| (number + 1, line))).transpose();
        if next()?.is_none_or(|(_, line)| line.trim_end() != FORMAT) {
            return Err(TraceError::NotATrace);
        }
        let (_, facts) = next()?.ok_or_else(|| problem(2, &"the line of facts is missing"))?;
        let header = serde_json::from_str(&facts).map_err(|error| problem(2, &error))?;
        let mut recording = Self { header, devices: vec![Vec::new()] };
        let mut homes: HashMap<StorageId, usize> = HashMap::new();
        while let Some((number, line)) = next()? {
            recording.line(&line, &mut homes).map_err(|wrong| problem(number, &wrong))?;
        }
        Ok(recording)
    }

    fn line(&mut self, line: &str, homes: &mut HashMap<StorageId, usize>) -> Result<(), String> {
        let mut words = line.split_ascii_whitespace();
        let Some(what) = words.next() else { return Ok(()) };
        match what {
            "+" => {
                let storage = storage(words.next())?;
                let bytes = number(words.next(), "bytes")?;
                let purpose = purpose(words.next())?;
                let device = self.device(words.next())?;
                if device > 0 {
                    homes.insert(storage, device);
                }
                self.devices[device].push(Event::Allocate { storage, bytes, purpose });
            }
            "-" => {
                let storage = storage(words.next())?;
                let device = homes.remove(&storage).unwrap_or(0);
                self.devices[device].push(Event::Free(storage));
            }
            "k" => {
                let storage = storage(words.next())?;
                let device = homes.get(&storage).copied().unwrap_or(0);
                let purpose = purpose(words.next())?;
                self.devices[device].push(Event::Reveal { storage, purpose });
            }
            "m" => {
                let device = self.device(words.next())?;
                self.devices[device].push(Event::MatrixProduct);
            }
            "c" => self.devices[0].push(Event::Convolution(convolution(words)?)),
            "@" => {
                let mark = match words.next() {
                    Some("iteration") => Mark::Iteration(number(words.next(), "an iteration")? as u32),
                    Some("forward") => Mark::Forward,
                    Some("backward") => Mark::Backward,
                    Some("optimizer") => Mark::Optimizer,
                    Some("end") => Mark::End,
                    other => return Err(format!("unknown mark `{}`", other.unwrap_or_default())),
                };
                self.devices.iter_mut().for_each(|events| events.push(Event::Mark(mark)));
            }
            other => return Err(format!("unknown event `{}`", other.chars().take(20).collect::<String>())),
        }
        Ok(())
    }

    fn device(&mut self, word: Option<&str>) -> Result<usize, String> {
        let device = word.map_or(Ok(0), |word| number(Some(word), "a device"))? as usize;
        if device >= MOST_DEVICES {
            return Err(format!("device {device} is out of range"));
        }
        if device >= self.devices.len() {
            self.devices.resize(device + 1, Vec::new());
        }
        Ok(device)
    }
}

fn problem(line: usize, problem: &impl ToString) -> TraceError {
    TraceError::Line { line, problem: problem.to_string() }
}

fn number(word: Option<&str>, what: &str) -> Result<u64, String> {
    let word = word.ok_or_else(|| format!("{what} is missing"))?;
    word.parse().map_err(|_| format!("`{word}` is not {what}"))
}

fn storage(word: Option<&str>) -> Result<StorageId, String> {
    let storage = number(word, "a storage")?;
    u32::try_from(storage).ok().filter(|&storage| storage < MOST_STORAGES).ok_or_else(|| format!("storage {storage} is out of range"))
}

fn purpose(word: Option<&str>) -> Result<Purpose, String> {
    Ok(match word {
        Some("w" | "b") => Purpose::Weights,
        Some("g") => Purpose::Gradients,
        Some("o") => Purpose::Optimizer,
        Some("i") => Purpose::Inputs,
        Some("a") => Purpose::Activations,
        Some("t") => Purpose::Temporaries,
        other => return Err(format!("unknown purpose `{}`", other.unwrap_or_default())),
    })
}

fn convolution<'text>(mut words: impl Iterator<Item = &'text str>) -> Result<Convolution, String> {
    let direction = match words.next() {
        Some("forward") => Direction::Forward,
        Some("data") => Direction::Data,
        Some("weight") => Direction::Weight,
        other => return Err(format!("unknown direction `{}`", other.unwrap_or_default())),
    };
    let mut next = || number(words.next(), "a dimension");
    let batch = next()?;
    let input = [next()?, next()?, next()?];
    let output = [next()?, next()?, next()?];
    let kernel = [next()?, next()?];
    let stride = [next()?, next()?];
    let groups = next()?;
    let element = words.next().and_then(ElementType::named).ok_or("unknown type of elements")?;
    Ok(Convolution { direction, batch, input, output, kernel, stride, groups, element, transposed: words.next() == Some("t") })
}
