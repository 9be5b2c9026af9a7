//! What users and operators do to jobs and devices.

use carma_core::{DeviceId, Event, JobId, State};

use super::batch::Effect;
use super::devices::SERVER;
use super::handle::Reply;
use super::run::{Condition, Running};
use super::submit::refused;
use crate::api::{Act, Acted, JobChange, NotDone, Notification, Problem, Shutdown};
use crate::event::{ByUser, JobEvent};
use crate::store::Change;

impl Running {
    pub(super) fn act(&mut self, jobs: Vec<JobId>, act: &Act, by: &str, reply: Reply<Acted>) {
        let mut acted = Acted::default();
        for job in jobs {
            match self.act_on_job(job, act, by) {
                Ok(()) => acted.done.push(job),
                Err(problem) => acted.not_done.push(NotDone { job, reason: problem.message }),
            }
        }
        let answer = move |written: Result<(), Problem>| drop(reply.send(written.map(|()| acted)));
        self.batch.effects.push(Effect::Answer(Box::new(answer)));
    }

    fn act_on_job(&mut self, job: JobId, act: &Act, by: &str) -> Result<(), Problem> {
        let user = ByUser { by: by.to_owned() };
        let (logged, event) = match act {
            Act::Cancel => (JobEvent::Cancelled(user), Event::JobCancelled { job }),
            // It is held already while it is estimated: now its user wants it so.
            Act::Hold if self.estimating.remove(&job) => (JobEvent::Held(user), Event::Tick),
            Act::Hold => (JobEvent::Held(user), Event::JobHeld { job }),
            Act::Release => {
                self.estimating.remove(&job);
                (JobEvent::Released(user), Event::JobReleased { job })
            }
            Act::Requeue => (JobEvent::RequeueAsked(user), Event::JobRequeued { job }),
            Act::Change(change) => {
                let JobChange { priority, time_limit } = *change;
                (JobEvent::Changed { by: user.by, change: change.clone() }, Event::JobChanged { job, priority, time_limit })
            }
        };
        let over = matches!(self.core.scheduler().job(job).map(|job| &job.state), Some(State::Done { .. }) | None);
        if over {
            return Err(crate::api::ProblemKind::Conflict.because(format!("{job} is over")));
        }
        let actions = self.core.handle(event, self.clock.now()).map_err(|error| refused(&error))?;
        let text = format!("{job} is {}", logged.kind().replace('_', " "));
        self.note(job, logged, text);
        self.act_on(actions);
        Ok(())
    }

    pub(super) fn drain_device(&mut self, device: DeviceId, drained: bool, by: &str, reply: Reply<()>) {
        let event = if drained { Event::GpuDrained { device } } else { Event::GpuResumed { device } };
        if let Err(error) = self.try_tell(event) {
            return drop(reply.send(Err(refused(&error))));
        }
        let at = self.clock.wall();
        if drained {
            self.drained.insert(device)
        } else {
            self.drained.remove(&device)
        };
        self.batch.changes.push(if drained { Change::GpuDrained { device, at } } else { Change::GpuResumed { device } });
        self.announce(format!("{device} is {} by {by}", if drained { "drained" } else { "back in use" }));
        self.batch.effects.push(Effect::Answer(Box::new(move |written| drop(reply.send(written)))));
    }

    pub(super) fn set_notifications(&mut self, uid: u32, notifications: Vec<Notification>, reply: Reply<()>) {
        self.batch.changes.push(Change::NotificationsSet { uid, notifications });
        let reload = self.notifier.reload();
        let answer = move |written: Result<(), Problem>| {
            reload();
            drop(reply.send(written));
        };
        self.batch.effects.push(Effect::Answer(Box::new(answer)));
    }

    pub(super) fn shut_down(&mut self, shutdown: Shutdown, reply: Reply<()>) {
        if shutdown.drain {
            self.draining = true;
            let _ = self.try_tell(Event::HostShort { server: SERVER });
            self.announce("draining: nothing more is launched".to_owned());
        } else {
            self.condition = Condition::Stopping;
        }
        let _ = reply.send(Ok(()));
    }

    pub(super) fn configure(&mut self, settings: carma_core::Settings, reply: Reply<()>) {
        let told = self.try_tell(Event::ConfigurationChanged(Box::new(settings.clone()))).map_err(|error| refused(&error));
        if told.is_ok() {
            self.setup.configuration.rules = settings;
            self.looks.as_ref().inspect(|looks| looks.ask_activity(self.activity_period()));
            self.announce("the rules have changed".to_owned());
        }
        let _ = reply.send(told);
    }
}
