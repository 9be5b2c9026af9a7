//! Inputs other than questions, passed to the parts of the engine.

use carma_core::{AttemptId, Event, Verdict};

use super::accounting::{ToldEnd, measured, tallies};
use super::attempts;
use super::decide::Effect;
use super::estimates::{LearnedRun, Purpose};
use super::gpus::GpuReport;
use super::gpus::memory_limits::not_limited;
use super::input::Input;
use super::state::EngineState;
use super::task::Task;
use crate::attempt::Ended;
use crate::event::JobEvent;
use crate::executor::{Leftovers, Report};
use crate::host_gpus::LOCAL_SERVER;
use crate::judge::Judgement;
use crate::store::{AttemptEnd, Change};

impl EngineState {
    pub(super) fn react(&mut self, input: Input) {
        match input {
            Input::Attempt(report) => self.attempt_reported(report),
            Input::Gpus(GpuReport::Sampled(samples)) => {
                self.accounting.sampled(&mut self.decisions, &mut self.gpus, &mut self.attempts, samples);
                self.check_attempts(LOCAL_SERVER);
                self.gpus.follow_reservations(&self.decisions, |attempt| self.attempts.group(attempt));
                self.listeners.sampled(self.decisions.wall());
            }
            Input::Gpus(GpuReport::Changed(change)) => self.gpus.take(&mut self.decisions, change),
            Input::Agent(report) => self.agent_reported(report),
            Input::Batch(report) => self.batch_reported(report),
            Input::Host(reading) => {
                let launches = !self.setup.observes && !self.draining;
                self.host.take(&mut self.decisions, *reading, launches);
            }
            Input::Estimated(order, mut estimated) => {
                self.estimates.correct(&mut estimated, &self.gpus.kinds());
                match order.purpose {
                    Purpose::Job(job) => self.estimated(job, &order.request.request(), *estimated),
                    Purpose::Forecast { jobs, reply } => {
                        self.add_task(order.owner.uid, Task::Forecast { owner: order.owner, jobs, estimated, reply });
                    }
                }
            }
            Input::Predicted(predicted) => self.predictions.take(predicted),
            Input::Task { .. } | Input::Written(_) => {}
        }
    }

    fn attempt_reported(&mut self, report: Report) {
        match report {
            Report::NotLimited { attempt, devices, reason } => {
                for device in &devices {
                    not_limited(&mut self.decisions, attempt, *device, &reason);
                }
            }
            Report::Started(attempt) => self.attempts.started(attempt),
            Report::Ran { attempt, ran } => self.ran_without_manager(attempt, ran),
            Report::Delayed { attempt, reason } => self.attempts.delay(&mut self.decisions, attempt, reason),
            Report::NotStarted { attempt, reason } => self.not_started(attempt, &reason),
            Report::Ended(leftovers) => self.ended(&leftovers),
        }
    }

    /// An attempt did not run, and will not.
    pub(super) fn not_started(&mut self, attempt: AttemptId, reason: &str) {
        let event = Event::LaunchFailed { attempt, reason: reason.to_owned() };
        self.conclude(attempt, None, &attempts::not_started(reason), event);
    }

    /// An attempt is over: it is judged, and the core decides what follows.
    pub(super) fn ended(&mut self, leftovers: &Leftovers) {
        let attempt = leftovers.attempt;
        let Some(mut judgement) = attempts::judge(&self.decisions, &self.gpus, &self.attempts, leftovers) else { return };
        self.excuse_if_server_ends(attempt, &mut judgement);
        self.note_named_fault(attempt, &judgement);
        if let Some(needed) = judgement.needed {
            self.decisions.tell_or_log(Event::MemoryNeeded { attempt, needed });
        }
        let launched = self.decisions.job(attempt.job).and_then(|job| job.state.active()).map(|active| active.launched_at);
        if let Some(at) = launched.and_then(|launched| self.told_end(Some(leftovers)).at(launched, self.decisions.now())) {
            self.decisions.tell_or_log(Event::EndedAt { attempt, at });
        }
        self.attempts.poll_last(&mut self.decisions, attempt);
        let verdict = judgement.verdict.clone();
        self.conclude(attempt, Some(leftovers), &judgement, Event::JobExited { attempt, verdict });
        // Its memory is free now, and the GPU says so in the next sample.
        self.gpus.sample_now();
    }

    /// A job that failed with words about broken hardware shows a fault of its GPU, if it had only one and the driver said nothing.
    fn note_named_fault(&mut self, attempt: AttemptId, judgement: &Judgement) {
        let active = self.decisions.job(attempt.job).and_then(|job| job.state.active());
        let Some(active) = active.filter(|active| judgement.verdict == Verdict::GpuLost && active.stopping.is_none()) else { return };
        if let [granted] = active.placement.devices[..] {
            let since = active.launched_at;
            self.gpus.fault_named(&mut self.decisions, granted.device, since);
        }
    }

    /// A batch system that ends a server also ends what runs there: that is not the job's fault.
    fn excuse_if_server_ends(&self, attempt: AttemptId, judgement: &mut Judgement) {
        let server = self.attempts.get(attempt).and_then(|active| self.servers.get(active.server));
        let stopped = self.decisions.job(attempt.job).and_then(|job| job.state.active()).is_some_and(|active| active.stopping.is_some());
        if server.is_some_and(|server| server.ends_now) && judgement.verdict != Verdict::Succeeded && !stopped {
            let reason = format!("its server ended: {}", judgement.reason);
            *judgement = Judgement { verdict: Verdict::ServerLost, reason, blame: None, needed: None };
        }
    }

    fn told_end(&self, leftovers: Option<&Leftovers>) -> ToldEnd {
        let past = leftovers.and_then(|leftovers| leftovers.ended.as_ref()).map(Ended::past);
        ToldEnd { past, speed: self.decisions.clock.speed() }
    }

    /// Stores the end of an attempt, learns from it, and tells the core.
    pub(super) fn conclude(&mut self, attempt: AttemptId, leftovers: Option<&Leftovers>, judgement: &Judgement, event: Event) {
        let used = self.accounting.finish(attempt);
        let job = self.decisions.job(attempt.job);
        let placement = job.and_then(|job| job.state.active()).map(|active| active.placement.clone());
        let Some((placement, known)) = placement.and_then(|placement| Some((placement, self.attempts.remove(attempt)?))) else { return };
        let (now, ended) = (self.decisions.wall(), self.told_end(leftovers).wall(known.launched, self.decisions.wall()));
        if now < known.launched {
            let early = (known.launched.0 - now.0) / 1000;
            tracing::warn!(
                job = attempt.job.0,
                attempt = attempt.number,
                "the clock is {early} s before the launch of the attempt: only its length counts"
            );
        }
        self.decisions.batch.effects.push(Effect::Acknowledge(attempt));
        let gpu = placement.devices.first().and_then(|granted| self.gpus.device(granted.device)).map(|device| device.name.as_str());
        let alone = self.predictions.time_alone(&self.decisions, attempt);
        let lesson = LearnedRun { attempt, measurement: &used.measurement, judgement, gpu, alone };
        self.estimates.learn(&self.decisions, &self.reader, &lesson);
        let owner = self.jobs.owner(attempt.job).map(|owner| owner.name.as_str());
        tallies::count_end(&mut self.decisions, owner, attempt, &used.measurement, &judgement.verdict);
        let over_time = used.over_time(attempt, self.decisions.now(), self.decisions.wall());
        let end = AttemptEnd {
            at: ended,
            exit: leftovers.and_then(|leftovers| Some(leftovers.ended.as_ref()?.exit.clone())),
            verdict: judgement.verdict.clone(),
            reason: Some(judgement.reason.clone()),
            blame: judgement.blame,
            measured: measured(&used.measurement, &placement),
            log_bytes: leftovers.map_or(0, |leftovers| leftovers.log_bytes),
        };
        self.log_space.ended(attempt, end.log_bytes);
        self.decisions.batch.changes.extend(used.last_steps(attempt).chain(over_time));
        self.decisions.batch.changes.push(Change::AttemptEnded { attempt, end: Box::new(end) });
        let Judgement { verdict, reason, blame, .. } = judgement.clone();
        let text = format!("attempt {} ended: {reason}", attempt.number);
        self.decisions.note(attempt.job, JobEvent::Ended { attempt: attempt.number, verdict, reason, blame }, text);
        self.decisions.tell_or_log(event);
        self.gpus.forget_gone_instances(&mut self.decisions, &placement);
        drop(self.gpus.stop_unwanted_mps(&self.decisions));
    }
}
