//! Estimates that the manager asks for. They are done as on its own host.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;

use super::run::AgentInput;
use crate::estimator::Estimator;
use crate::link::{EstimateAnswer, EstimateMessage, FromAgent};

/// A longer answer is an error.
const MAX_ANSWER: usize = 256 << 10;

/// Estimates that the manager has not acknowledged.
#[derive(Debug)]
pub(super) struct AgentEstimates {
    estimator: Arc<Estimator>,
    known: HashMap<String, KnownEstimate>,
}

#[derive(Debug)]
struct KnownEstimate {
    stopped: Arc<AtomicBool>,
    /// Unset while it runs.
    answer: Option<EstimateAnswer>,
}

impl AgentEstimates {
    pub(super) fn new(estimator: Estimator) -> Self {
        Self { estimator: Arc::new(estimator), known: HashMap::new() }
    }

    /// Starts an estimate. One that is done is answered again: the manager may not have heard it.
    pub(super) fn start(&mut self, message: EstimateMessage, inbox: &Sender<AgentInput>) -> Option<FromAgent> {
        if let Some(known) = self.known.get(&message.id) {
            return known.answer.clone().map(FromAgent::Estimated);
        }
        let EstimateMessage { id, task } = message;
        let stopped = Arc::new(AtomicBool::new(false));
        self.known.insert(id.clone(), KnownEstimate { stopped: Arc::clone(&stopped), answer: None });
        let (estimator, inbox, name) = (Arc::clone(&self.estimator), inbox.clone(), id.clone());
        let run = move || {
            let result = estimator.estimate(&task, || !stopped.load(Ordering::Relaxed)).map(Box::new);
            let _ = inbox.send(AgentInput::Estimated(EstimateAnswer { id: name, result }));
        };
        let spawned = thread::Builder::new().name("estimate".to_owned()).spawn(run);
        spawned.err().and_then(|error| self.done(EstimateAnswer { id, result: Err(format!("no estimate: {error}")) }))
    }

    /// An estimate is done. Returns the answer for the manager, unless it has stopped the estimate.
    pub(super) fn done(&mut self, answer: EstimateAnswer) -> Option<FromAgent> {
        let known = self.known.get_mut(&answer.id)?;
        let is_short = serde_json::to_vec(&answer).is_ok_and(|text| text.len() <= MAX_ANSWER);
        let result = if is_short { answer.result } else { Err("no estimate: the answer of the estimator is too long".to_owned()) };
        let answer = EstimateAnswer { id: answer.id, result };
        known.answer = Some(answer.clone());
        Some(FromAgent::Estimated(answer))
    }

    /// The manager has the answer, or needs none.
    pub(super) fn stop(&mut self, id: &str) {
        if let Some(known) = self.known.remove(id) {
            known.stopped.store(true, Ordering::Relaxed);
        }
    }

    /// Whether one runs, or is being stopped.
    pub(super) fn any_runs(&self) -> bool {
        // Each thread has its own reference.
        Arc::strong_count(&self.estimator) > 1
    }

    /// Stops all but these. A new manager does not know those of an earlier one.
    pub(super) fn keep(&mut self, wanted: &[String]) {
        self.known.retain(|id, known| {
            let stays = wanted.contains(id);
            known.stopped.fetch_or(!stays, Ordering::Relaxed);
            stays
        });
    }
}
