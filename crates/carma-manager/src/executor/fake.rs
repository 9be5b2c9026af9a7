//! An executor for tests: it starts nothing, and records its calls.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use carma_core::{AttemptId, JobId, ServerId, Signal};

use super::{Adopted, CheckpointTimes, Executor, StartOrder};
use crate::supervise::FolderError;
use crate::watch::OutputMark;

/// A recorded call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    Start(AttemptId),
    Signal(AttemptId, Signal),
    Adopt(Vec<AttemptId>),
    Acknowledge(AttemptId),
}

/// Records all calls that change something.
#[derive(Debug, Default)]
pub(crate) struct FakeExecutor {
    calls: Mutex<Vec<Call>>,
    /// States of attempts of an earlier manager; those not listed run.
    adopted: Mutex<BTreeMap<AttemptId, Adopted>>,
    /// Starts do not return.
    hangs: AtomicBool,
}

impl FakeExecutor {
    /// The calls since the last call of this.
    pub(crate) fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the state in which an attempt is adopted.
    pub(crate) fn adopt_as(&self, attempt: AttemptId, adopted: Adopted) {
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner).insert(attempt, adopted);
    }

    /// Whether starts do not return.
    pub(crate) fn hang(&self, hangs: bool) {
        self.hangs.store(hangs, Ordering::Relaxed);
    }

    fn record(&self, call: Call) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }
}

impl Executor for FakeExecutor {
    fn start(&self, order: Box<StartOrder>) {
        self.record(Call::Start(order.attempt));
        while self.hangs.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn signal(&self, attempt: AttemptId, signal: Signal) {
        self.record(Call::Signal(attempt, signal));
    }

    fn adopt(&self, attempts: &[(AttemptId, ServerId)]) -> Vec<Adopted> {
        let attempts: Vec<AttemptId> = attempts.iter().map(|(attempt, _)| *attempt).collect();
        self.record(Call::Adopt(attempts.clone()));
        let known = self.adopted.lock().unwrap_or_else(PoisonError::into_inner);
        attempts.iter().map(|attempt| known.get(attempt).copied().unwrap_or(Adopted::Running { ran: None })).collect()
    }

    fn acknowledge(&self, attempt: AttemptId) {
        self.record(Call::Acknowledge(attempt));
    }

    fn progress(&self, _: AttemptId) -> Option<f64> {
        None
    }

    fn output(&self, _: AttemptId) -> OutputMark {
        OutputMark::default()
    }

    fn checkpoint(&self, _: AttemptId) -> Option<CheckpointTimes> {
        Some(CheckpointTimes::default())
    }

    fn owners(&self, _: &[u32]) -> HashMap<u32, AttemptId> {
        HashMap::new()
    }

    fn group(&self, _: AttemptId) -> Option<PathBuf> {
        None
    }

    fn highest_job(&self) -> Option<JobId> {
        None
    }

    fn hide_secrets(&self, _: JobId) -> Result<(), FolderError> {
        Ok(())
    }

    fn remove_logs(&self, _: AttemptId) {}

    fn remove_unknown(&self, _: &dyn Fn(JobId) -> bool) {}
}
