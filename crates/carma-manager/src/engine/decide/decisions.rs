//! The core with its clock, and the batch that follows from its decisions.

use std::collections::VecDeque;
use std::fmt::Display;

use carma_core::{Action, Event, EventError, Job, JobId, JobLabel, Scheduler, Time};

use super::batch::{Batch, Effect, Reply};
use super::core::Core;
use crate::api::{ArrayPlace, Problem, Update};
use crate::clock::Clock;
use crate::event::JobEvent;
use crate::store::{Phase, UnixMillis};

/// The core, as every part of the engine uses it.
pub(crate) struct Decisions {
    core: Core,
    pub(crate) clock: Clock,
    pub(crate) batch: Batch,
    /// Actions of the core that are not acted on yet.
    actions: VecDeque<Action>,
    /// Counts changes of jobs.
    changes: u64,
}

impl Decisions {
    pub(crate) fn new(core: Core, clock: Clock) -> Self {
        Self { core, clock, batch: Batch::default(), actions: VecDeque::new(), changes: 0 }
    }

    pub(crate) fn scheduler(&self) -> &Scheduler {
        self.core.scheduler()
    }

    /// A job that the core knows.
    pub(crate) fn job(&self, job: JobId) -> Option<&Job> {
        self.scheduler().job(job)
    }

    /// Increases with each change of a job.
    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }

    /// The name of a job for users.
    pub(crate) fn label(&self, job: JobId) -> JobLabel {
        self.scheduler().label(job)
    }

    /// The manager's own time.
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// The wall clock.
    pub(crate) fn wall(&self) -> UnixMillis {
        self.clock.wall()
    }

    /// Tells the core an event. Its actions are acted on after the present input.
    pub(crate) fn tell(&mut self, event: Event) -> Result<(), EventError> {
        let actions = self.core.handle(event, self.clock.now())?;
        self.actions.extend(actions);
        Ok(())
    }

    /// Tells the core an event while it has no jobs. There are no actions.
    pub(crate) fn prepare(&mut self, event: Event) -> Result<(), EventError> {
        self.core.handle(event, self.clock.now()).map(drop)
    }

    /// Tells the core an event that it should accept.
    pub(crate) fn tell_or_log(&mut self, event: Event) {
        let result = self.tell(event);
        let _ = result.inspect_err(|error| tracing::error!("the scheduler does not accept an event: {error}"));
    }

    /// The next action to act on.
    pub(crate) fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Adds an event of a job to the log.
    pub(crate) fn log(&mut self, job: JobId, event: JobEvent) {
        self.batch.log(self.clock.wall(), self.label(job), event);
    }

    /// A job changed in the core: the change is stored, and listeners are notified.
    pub(crate) fn job_changed(&mut self, job: JobId, text: String) {
        self.batch.changed.insert(job);
        self.publish(job, text);
    }

    /// Notifies listeners of a change that is stored otherwise.
    pub(crate) fn publish(&mut self, job: JobId, text: String) {
        self.changes += 1;
        let Some(known) = self.core.scheduler().job(job) else { return };
        let (uid, attempt, array) = (known.spec.user.0, known.attempts, known.spec.array.map(ArrayPlace::from));
        self.batch.effects.push(Effect::Publish(Update::Job { job, array, uid, state: Phase::from(&known.state), attempt, text }));
    }

    /// The same, with an event in the job's timeline. `what` continues a sentence that begins with the job.
    pub(crate) fn note(&mut self, job: JobId, event: JobEvent, what: impl Display) {
        self.log(job, event);
        self.job_changed(job, format!("{} {what}", self.label(job)));
    }

    /// Adds an event of the machine, which the log shows like every other event.
    pub(crate) fn announce(&mut self, text: String) {
        self.machine_event(text, false);
    }

    /// The same for what an administrator should look at: the log shows it as a warning.
    pub(crate) fn warn(&mut self, text: String) {
        self.machine_event(text, true);
    }

    fn machine_event(&mut self, text: String, warning: bool) {
        self.batch.log(self.clock.wall(), None, JobEvent::Machine { text: text.clone(), warning });
        self.batch.effects.push(Effect::Publish(Update::Machine { text }));
    }

    /// Answers after the commit of this batch.
    pub(crate) fn answer<T: Send + 'static>(&mut self, reply: Reply<T>, answer: T) {
        let answer = move |written: Result<(), Problem>| drop(reply.send(written.map(|()| answer)));
        self.batch.effects.push(Effect::Answer(Box::new(answer)));
    }
}
