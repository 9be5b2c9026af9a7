//! The engine's work for users: in turns, by what it costs the engine and the disk.
//!
//! A user who asks for much does not delay others: between two pieces, inputs are taken, and the user who was served least is next. A batch holds
//! only a limited number of changes of one user, because all answers wait for the batch.

use std::time::{Duration, Instant};

use super::jobs_action::JobsAction;
use super::refusal::TAKEN_OVER;
use super::state::{Condition, EngineState};
use super::task::Task;

/// The engine takes inputs at least this often, as far as pieces are short.
const BUDGET: Duration = Duration::from_millis(5);
/// A user with this many changes in a batch waits for the next one.
const MAX_CHANGES: usize = 400;
/// What a change costs: most of it is the time of the store.
const CHANGE_COST: Duration = Duration::from_micros(10);

impl EngineState {
    /// Adds a task of a user.
    pub(crate) fn add_task(&mut self, user: u32, task: Task) {
        self.tasks.add(user, task);
    }

    /// Whether a task can be worked on now.
    pub(super) fn has_work(&self) -> bool {
        self.tasks.can_start(|user| self.decisions.batch.changes_of(user) < MAX_CHANGES)
    }

    /// Works on the tasks of users for a short time.
    pub(crate) fn work(&mut self) {
        let begin = Instant::now();
        while self.condition == Condition::Working && begin.elapsed() < BUDGET && self.work_on_next() {}
        let reason = match &self.condition {
            Condition::Working => return,
            Condition::Stopping => "the manager is stopping".to_owned(),
            Condition::TakenOver => TAKEN_OVER.to_owned(),
            Condition::Unavailable { reason, .. } => reason.clone(),
        };
        for task in self.tasks.drain() {
            self.end_task(task, &reason);
        }
    }

    /// Works on a piece of the next task. False if there is none, or if it must wait for the next batch.
    fn work_on_next(&mut self) -> bool {
        let batch = &self.decisions.batch;
        let Some((user, task)) = self.tasks.next_of(|user| batch.changes_of(user) < MAX_CHANGES) else { return false };
        let (begin, before) = (Instant::now(), batch.size());
        let rest = self.work_on(task);
        self.act();
        let changes = self.decisions.batch.size().saturating_sub(before);
        self.decisions.batch.count_changes(user, changes);
        if let Some(rest) = rest {
            self.tasks.add_first(user, Task::Action(rest));
        }
        self.tasks.done(user, begin.elapsed() + CHANGE_COST.saturating_mul(u32::try_from(changes).unwrap_or(u32::MAX)));
        true
    }

    fn work_on(&mut self, task: Task) -> Option<Box<JobsAction>> {
        match task {
            Task::Question(question) => self.answer(question),
            Task::Action(action) => return self.act_on_some(action),
            Task::Forecast { owner, jobs, estimated, reply } => drop(reply.send(self.forecast(&owner, jobs, Some(&estimated)))),
        }
        None
    }

    /// Ends a task while nothing can be changed.
    fn end_task(&mut self, task: Task, reason: &str) {
        match task {
            Task::Action(action) => self.end_action(*action, reason),
            Task::Question(_) | Task::Forecast { .. } => drop(self.work_on(task)),
        }
    }
}
