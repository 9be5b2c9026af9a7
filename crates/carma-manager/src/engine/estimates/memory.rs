//! What earlier runs have taught: a job that ran before needs what it needed then.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use carma_core::{Estimate, MemoryEstimate, PerRank};
use carma_estimate::history::{History, Measured, Recalled, Signature};

use super::Estimated;
use crate::request::{JobCommand, JobRequest};

/// What is remembered of earlier runs, in a file that grows by a line a run.
#[derive(Debug)]
pub(in crate::engine) struct Memory {
    history: History,
    path: PathBuf,
}

impl Memory {
    /// Reads the file. One that is damaged teaches nothing, and is put aside.
    pub(in crate::engine) fn open(path: PathBuf) -> Self {
        let history = File::open(&path).ok().and_then(|file| History::read(file).ok());
        if history.is_none() && path.exists() {
            let _ = fs::rename(&path, path.with_extension("damaged"));
        }
        let memory = Self { history: history.unwrap_or_default(), path };
        // Only the latest runs of each job are remembered: what is forgotten goes from the file too.
        let new = memory.path.with_extension("new");
        let written = File::create(&new).is_ok_and(|file| memory.history.write(file).is_ok());
        if written {
            let _ = fs::rename(new, &memory.path);
        }
        memory
    }

    pub(in crate::engine) fn recall(&self, request: &JobRequest) -> Option<Estimated> {
        let Recalled { memory, memory_upper, utilisation, duration, interference, .. } = self.history.recall(&signature(request))?;
        let memory = MemoryEstimate { expected: memory, upper: memory_upper };
        let (memory, utilisation) = (Some(PerRank::Same(memory)), Some(utilisation));
        let estimate = Estimate { memory, utilisation, interference, sharing: None, duration };
        Some(Estimated { estimate, source: Some("history".to_owned()), notes: Vec::new(), parts: Vec::new() })
    }

    /// Learns from a run. A disk that is full forgets it with the next start.
    pub(in crate::engine) fn learn(&mut self, request: &JobRequest, run: Measured) {
        let signature = signature(request);
        self.history.record(signature, run);
        let mut one = History::default();
        one.record(signature, run);
        let mut lines = Vec::new();
        if one.write(&mut lines).is_ok() {
            let line = lines.splitn(2, |byte| *byte == b'\n').nth(1).unwrap_or_default().to_owned();
            let _ = File::options().append(true).open(&self.path).and_then(|mut file| file.write_all(&line));
        }
    }
}

/// What makes two jobs the same: what is run, where, on how many GPUs, and what is said of the model.
fn signature(request: &JobRequest) -> Signature {
    let mut words = match &request.command {
        JobCommand::Program(words) => words.clone(),
        JobCommand::Script { text, arguments } => std::iter::once(text).chain(arguments).cloned().collect(),
    };
    words.extend(request.hints.model.as_ref().map(|model| model.display().to_string()));
    words.extend(request.hints.batch.map(|batch| batch.to_string()));
    words.extend(request.array.iter().flat_map(|label| label.parameters.values().cloned()));
    Signature::of_command(&words, &request.directory).on_gpus(request.resources.gpus.into())
}
