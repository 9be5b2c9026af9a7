//! An action on jobs, as far as it is done. An array may have 100,000 jobs, so it is done piece by piece.
//!
//! The answer comes when all of it is written. If the manager ends before, some jobs are changed and others are not, and the client has no answer:
//! it asks again. A client that goes away does not stop the action.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use carma_core::JobId;

use super::cancellations::Cancellations;
use super::decide::{Batch, Effect, Reply};
use super::refusal::cause;
use crate::api::{ActionFailure, ActionResult, JobAction, Problem};

/// An action on jobs for an authorised user.
#[derive(Debug)]
pub(crate) struct JobsAction {
    pub(crate) action: JobAction,
    pub(crate) by: String,
    /// Those that are not done yet.
    jobs: VecDeque<JobId>,
    /// Running jobs to cancel, after all that wait: otherwise waiting jobs of an array would start in the place of cancelled ones.
    running: VecDeque<JobId>,
    /// In the order in which they were done.
    acted: ActionResult,
    /// Cancelled jobs that get a signal, whether or not it is written.
    signalled: BTreeSet<JobId>,
    /// How many are on the disk.
    written: Arc<AtomicUsize>,
    reply: Reply<ActionResult>,
}

impl JobsAction {
    pub(crate) fn new(jobs: Vec<JobId>, action: JobAction, by: String, reply: Reply<ActionResult>) -> Self {
        let (running, acted, signalled, written) = (VecDeque::new(), ActionResult::default(), BTreeSet::new(), Arc::default());
        Self { action, by, jobs: jobs.into(), running, acted, signalled, written, reply }
    }

    /// The next job, and whether all waiting ones are done.
    pub(crate) fn next(&mut self) -> Option<(JobId, bool)> {
        self.jobs.pop_front().map(|job| (job, false)).or_else(|| Some((self.running.pop_front()?, true)))
    }

    /// Leaves a running job for the end.
    pub(crate) fn postpone(&mut self, job: JobId) {
        self.running.push_back(job);
    }

    /// A job is changed, or was refused.
    pub(crate) fn acted_on(&mut self, job: JobId, result: Result<(), Problem>) {
        match result {
            Ok(()) => self.acted.done.push(job),
            Err(problem) => self.acted.not_done.push(ActionFailure { job, reason: problem.message }),
        }
    }

    /// A job gets a signal, also when nothing can be written.
    pub(crate) fn signalled(&mut self, job: JobId) {
        self.signalled.insert(job);
    }

    pub(crate) fn is_done(&self) -> bool {
        self.jobs.is_empty() && self.running.is_empty()
    }

    /// The jobs that are not done yet.
    pub(crate) fn rest(&self) -> impl Iterator<Item = JobId> {
        self.jobs.iter().chain(&self.running).copied()
    }

    /// Counts the jobs of this piece when its batch is written.
    pub(crate) fn count_written(&self, batch: &mut Batch) {
        let (counter, done) = (Arc::clone(&self.written), self.acted.done.len());
        batch.effects.push(Effect::Answer(Box::new(move |written: Result<(), Problem>| {
            if written.is_ok() {
                counter.store(done, Ordering::Relaxed);
            }
        })));
    }

    /// Answers after the commit of this batch.
    pub(crate) fn answer(self, batch: &mut Batch) {
        let answer = move |written: Result<(), Problem>| match written {
            Ok(()) => {
                let ActionResult { mut done, mut not_done, arrays } = self.acted;
                done.sort_unstable();
                not_done.sort_unstable_by_key(|failure| failure.job);
                drop(self.reply.send(Ok(ActionResult { done, not_done, arrays })));
            }
            Err(problem) => self.answer_unwritten(problem),
        };
        batch.effects.push(Effect::Answer(Box::new(answer)));
    }

    /// Answers that the rest could not be written.
    pub(crate) fn answer_unwritten(self, problem: Problem) {
        let rest: Vec<JobId> = self.rest().collect();
        let Self { mut acted, signalled, written, reply, .. } = self;
        let written = written.load(Ordering::Relaxed);
        if written == 0 && signalled.is_empty() {
            return drop(reply.send(Err(problem)));
        }
        let unwritten = acted.done.split_off(written.min(acted.done.len())).into_iter().chain(rest).collect();
        let unwritten = ActionResult { done: unwritten, not_done: acted.not_done, ..ActionResult::default() };
        let failed = Cancellations::not_recorded(unwritten, |job| signalled.contains(&job), cause(&problem));
        drop(reply.send(Ok(ActionResult { done: acted.done, ..failed })));
    }
}
