//! The history of runs: a job needs what its earlier runs needed.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use carma_core::{Estimate, JobSpec, MemoryEstimate, MiB, PerRank, UserId};
use carma_estimate::history::{History, HistoryEstimate, Measured, Signature};

use super::Estimated;
use crate::request::{JobCommand, JobRequest};
use carma_format::memory as size;

/// A job that ran out of memory needs more than it had. This share more is tried first; recovery adds to it.
const MORE_AFTER_OOM: f64 = 0.25;

/// Earlier runs that contradict the declaration or estimate of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EarlierRuns {
    /// A completed run used this much.
    Used(MemoryEstimate),
    /// The last runs ran out of memory with this much.
    RanOutWith(MiB),
}

impl EarlierRuns {
    /// What a history shows about a job.
    pub(super) fn of(history: &History, signature: &Signature) -> Option<Self> {
        let ran_out = history.ran_out_with(signature).map(Self::RanOutWith);
        ran_out.or_else(|| {
            let recalled = history.recall(signature)?;
            Some(Self::Used(MemoryEstimate { expected: recalled.memory, upper: recalled.memory_upper }))
        })
    }

    /// The memory that a job needs accordingly.
    pub(super) fn need(self) -> MemoryEstimate {
        match self {
            Self::Used(estimate) => estimate,
            Self::RanOutWith(memory) => {
                MemoryEstimate { expected: memory, upper: MiB((memory.0 as f64 * (1.0 + MORE_AFTER_OOM)).ceil() as u64) }
            }
        }
    }

    /// Raises a declaration or estimate that is less than earlier runs needed. Answers a note for the user if it does.
    pub(crate) fn raise(self, spec: &mut JobSpec) -> Option<String> {
        let declared = spec.memory.known.as_ref().and_then(|known| known.values().iter().max()).copied();
        let estimated = spec.memory.estimated.as_ref().and_then(|all| all.values().iter().map(|one| one.expected).max());
        let need = self.need();
        let expected = declared.or(estimated);
        let too_low = match self {
            Self::Used(_) => declared.is_some_and(|declared| declared < need.expected),
            Self::RanOutWith(memory) => expected.is_none_or(|expected| expected <= memory),
        };
        if !too_low {
            return None;
        }
        // An estimate, not a known need: on a GPU that is a little smaller it may still run.
        spec.memory.known = None;
        spec.memory.estimated = Some(PerRank::Same(need));
        let before = match (declared, estimated) {
            (Some(declared), _) => format!("it declares {}, but ", size(declared)),
            (None, Some(estimated)) => format!("it is estimated at {}, but ", size(estimated)),
            (None, None) => String::new(),
        };
        let earlier = match self {
            Self::Used(MemoryEstimate { expected, .. }) => format!("an earlier run of this command used {}", size(expected)),
            Self::RanOutWith(memory) => format!("an earlier run of this command ran out of memory with {}", size(memory)),
        };
        Some(format!("{before}{earlier}: {} is reserved", size(need.upper)))
    }
}

/// The history of runs, in a file with a line for each run.
#[derive(Debug)]
pub(crate) struct Memory {
    history: History,
    path: PathBuf,
    /// All users learn from each other.
    shared: bool,
}

impl Memory {
    /// Reads the file. A damaged one is put aside.
    pub(crate) fn open(path: PathBuf, shared: bool) -> Self {
        let history = File::open(&path).ok().and_then(|file| History::read(file).ok());
        if history.is_none() && path.exists() {
            let _ = fs::rename(&path, path.with_extension("damaged"));
        }
        let memory = Self { history: history.unwrap_or_default(), path, shared };
        // Only the latest runs of each job are kept, so the file is rewritten.
        let new = memory.path.with_extension("new");
        let written = File::create(&new).is_ok_and(|file| memory.history.write(file).is_ok());
        if written {
            let _ = fs::rename(new, &memory.path);
        }
        memory
    }

    pub(crate) fn recall(&self, request: &JobRequest, user: UserId) -> Option<Estimated> {
        let signature = self.signature(request, user);
        let HistoryEstimate { memory, memory_upper, utilisation, duration, interference, .. } = self.history.recall(&signature)?;
        let memory = MemoryEstimate { expected: memory, upper: memory_upper };
        let (memory, utilisation) = (Some(PerRank::Same(memory)), Some(utilisation));
        let estimate = Estimate { memory, utilisation, interference, sharing: None, duration };
        Some(Estimated { estimate, source: Some("history".to_owned()), notes: Vec::new(), parts: Vec::new() })
    }

    /// What earlier runs of this command show about its memory.
    pub(crate) fn earlier_runs(&self, request: &JobRequest, user: UserId) -> Option<EarlierRuns> {
        EarlierRuns::of(&self.history, &self.signature(request, user))
    }

    /// Adds a run. On a full disk it is forgotten at the next start.
    pub(crate) fn learn(&mut self, request: &JobRequest, user: UserId, run: Measured) {
        let signature = self.signature(request, user);
        self.history.record(signature, run);
        let mut one = History::default();
        one.record(signature, run);
        let mut lines = Vec::new();
        if one.write(&mut lines).is_ok() {
            let line = lines.splitn(2, |byte| *byte == b'\n').nth(1).unwrap_or_default().to_owned();
            let _ = File::options().append(true).open(&self.path).and_then(|mut file| file.write_all(&line));
        }
    }

    /// The identity of a job. Runs of one user are not used for others, unless history is shared.
    fn signature(&self, request: &JobRequest, user: UserId) -> Signature {
        let signature = signature(request);
        if self.shared { signature } else { signature.of_user(user.0) }
    }
}

/// The identity of a job of any user: command, folder, number of GPUs and hints about the model.
pub(super) fn signature(request: &JobRequest) -> Signature {
    Signature::of_command(&words(request), &request.directory).on_gpus(request.resources.gpus.into())
}

/// Everything of a request that tells a job from others in the same folder.
pub(super) fn words(request: &JobRequest) -> Vec<String> {
    let mut words = match &request.command {
        JobCommand::Program(words) => words.clone(),
        JobCommand::Script { text, arguments } => std::iter::once(text).chain(arguments).cloned().collect(),
    };
    words.extend(request.hints.model.as_ref().map(|model| model.display().to_string()));
    words.extend(request.hints.batch.map(|batch| batch.to_string()));
    words.extend(request.array.iter().flat_map(|element| element.parameters.values().cloned()));
    words
}

#[cfg(test)]
mod tests {
    use carma_core::{JobId, MemoryNeed};

    use super::*;

    fn raised(memory: MemoryNeed, earlier: EarlierRuns) -> (Option<u64>, Option<String>) {
        let mut spec = JobSpec { memory, ..JobSpec::new(JobId(1)) };
        let note = earlier.raise(&mut spec);
        let upper = spec.memory.estimated.as_ref().and_then(|all| all.get(0)).map(|estimate| estimate.upper.0);
        assert_eq!(spec.memory.known.is_none() && upper.is_some(), note.is_some(), "either the user's word counts or the estimate");
        (upper, note)
    }

    #[test]
    fn runs_of_one_user_are_used_for_others_only_if_history_is_shared() {
        let folder = tempfile::tempdir().unwrap();
        let request = JobRequest::new(JobCommand::Program(vec!["train".to_owned()]), "/project");
        for shared in [false, true] {
            let open = || Memory::open(folder.path().join(format!("{shared}.csv")), shared);
            open().learn(&request, UserId(1), Measured { memory: MiB(9_000), ..Measured::default() });
            let memory = open();
            assert!(memory.recall(&request, UserId(1)).is_some() && memory.earlier_runs(&request, UserId(1)).is_some());
            assert_eq!(memory.recall(&request, UserId(2)).is_some(), shared);
            assert_eq!(memory.earlier_runs(&request, UserId(2)).is_some(), shared);
        }
    }

    #[test]
    fn a_declaration_below_what_earlier_runs_used_is_raised() {
        let used = EarlierRuns::Used(MemoryEstimate { expected: MiB(30_000), upper: MiB(31_500) });
        let (upper, note) = raised(MemoryNeed::known(MiB(5120)), used);
        assert_eq!(upper, Some(31_500));
        assert_eq!(note.unwrap(), "it declares 5.0 GiB, but an earlier run of this command used 29.3 GiB: 30.8 GiB is reserved");
        assert_eq!(raised(MemoryNeed::known(MiB(30_000)), used), (None, None), "a declaration that was enough counts");
    }

    #[test]
    fn a_job_that_ran_out_of_memory_gets_more() {
        let ran_out = EarlierRuns::RanOutWith(MiB(20_000));
        assert_eq!(raised(MemoryNeed::known(MiB(20_000)), ran_out).0, Some(25_000));
        assert_eq!(raised(MemoryNeed::known(MiB(20_001)), ran_out), (None, None));
        let mut unknown = JobSpec::new(JobId(1));
        assert!(ran_out.raise(&mut unknown).unwrap().starts_with("an earlier run of this command ran out of memory"));
        let mut estimated = JobSpec { memory: MemoryNeed::estimated(MiB(9_000), MiB(10_000)), ..JobSpec::new(JobId(1)) };
        assert!(ran_out.raise(&mut estimated).unwrap().starts_with("it is estimated at 8.8 GiB"));
    }
}
