//! The core with its clock and with all that follows from its decisions until it is on the disk.

use std::collections::VecDeque;

use carma_core::{Action, Event, EventError, Job, JobId, Scheduler, Time};

use super::batch::{Batch, Effect, Reply};
use super::clock::Clock;
use super::core::Core;
use crate::api::{Problem, Update};
use crate::event::JobEvent;
use crate::store::{Phase, UnixMillis};

/// What every part of the engine is given to decide with.
pub(crate) struct Decisions {
    core: Core,
    pub(crate) clock: Clock,
    pub(crate) batch: Batch,
    /// Actions of the core that are not acted on yet.
    actions: VecDeque<Action>,
}

impl Decisions {
    pub(crate) fn new(core: Core, clock: Clock) -> Self {
        Self { core, clock, batch: Batch::default(), actions: VecDeque::new() }
    }

    pub(crate) fn scheduler(&self) -> &Scheduler {
        self.core.scheduler()
    }

    /// A job that the core knows.
    pub(crate) fn job(&self, job: JobId) -> Option<&Job> {
        self.scheduler().job(job)
    }

    /// The manager's own time.
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// The time that people read.
    pub(crate) fn wall(&self) -> UnixMillis {
        self.clock.wall()
    }

    /// Tells the core. Its actions are acted on after the input that led to them.
    pub(crate) fn tell(&mut self, event: Event) -> Result<(), EventError> {
        let actions = self.core.handle(event, self.clock.now())?;
        self.actions.extend(actions);
        Ok(())
    }

    /// Tells the core something while it has no jobs yet: nothing follows from it.
    pub(crate) fn prepare(&mut self, event: Event) -> Result<(), EventError> {
        self.core.handle(event, self.clock.now()).map(drop)
    }

    /// Tells the core something that it has no reason to refuse.
    pub(crate) fn tell_or_log(&mut self, event: Event) {
        let result = self.tell(event);
        let _ = result.inspect_err(|error| tracing::error!("the core refuses an event: {error}"));
    }

    /// The next action to act on.
    pub(crate) fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Adds an event of a job to the log.
    pub(crate) fn log(&mut self, job: JobId, event: JobEvent) {
        self.batch.log(self.clock.wall(), job, event);
    }

    /// A job changed in the core: the change is stored, and listeners are notified.
    pub(crate) fn job_changed(&mut self, job: JobId, text: String) {
        self.batch.changed.insert(job);
        let Some(known) = self.core.scheduler().job(job) else { return };
        let (uid, attempt) = (known.spec.user.0, known.attempts);
        self.batch.effects.push(Effect::Publish(Update::Job { job, uid, state: Phase::from(&known.state), attempt, text }));
    }

    /// The same for what has a line in the job's timeline.
    pub(crate) fn note(&mut self, job: JobId, event: JobEvent, text: String) {
        self.log(job, event);
        self.job_changed(job, text);
    }

    /// Adds an event of the machine, which the log shows like every other event.
    pub(crate) fn announce(&mut self, text: String) {
        self.batch.log(self.clock.wall(), None, JobEvent::Machine { text: text.clone() });
        self.batch.effects.push(Effect::Publish(Update::Machine { text }));
    }

    /// Answers once all that led to the answer is on the disk.
    pub(crate) fn answer<T: Send + 'static>(&mut self, reply: Reply<T>, answer: T) {
        let answer = move |written: Result<(), Problem>| drop(reply.send(written.map(|()| answer)));
        self.batch.effects.push(Effect::Answer(Box::new(answer)));
    }
}
