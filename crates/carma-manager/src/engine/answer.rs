//! Questions of users and operators, each to the part that answers it.

use carma_core::{Event, Settings};

use super::accounting::over_time;
use super::decide::{Effect, Reply};
use super::question::{ClusterQuestion, Question, Unfinished};
use super::refusal::{TAKEN_OVER, refused, unavailable};
use super::state::{Condition, EngineState};
use super::views::View;
use crate::api::{Notification, Problem, QuotaDetail, Shutdown};
use crate::configuration::{Configuration, Sources};
use crate::host_gpus::LOCAL_SERVER;
use crate::store::Change;

impl EngineState {
    pub(super) fn answer(&mut self, question: Question) {
        match &self.condition {
            Condition::Working => self.answer_with(question),
            Condition::Stopping => self.answer_without_change(question, "the manager is stopping"),
            Condition::TakenOver => self.answer_without_change(question, TAKEN_OVER),
            Condition::Unavailable { reason, .. } => {
                let reason = reason.clone();
                self.answer_without_change(question, &reason);
            }
        }
    }

    fn answer_with(&mut self, question: Question) {
        match question {
            Question::Submit { owner, jobs, key, reply } => self.submit(&owner, jobs, key, reply),
            Question::Forecast { owner, jobs, reply } => self.forecast_requested(owner, jobs, reply),
            Question::Drain { device, drained, by, reply } => match self.gpus.drain(&mut self.decisions, device, drained, &by) {
                Ok(result) => self.decisions.answer(reply, result),
                Err(error) => drop(reply.send(Err(refused(&error)))),
            },
            Question::Why { job, reply } => {
                let pools = self.why_no_pilot(job);
                drop(reply.send(self.view().why(job).map(|why| why.with_pools(pools))));
            }
            Question::NeverRuns { owner, request, reply } => drop(reply.send(self.never_runs(&owner, &request))),
            Question::Cluster(question) => self.answer_about_cluster(question),
            Question::Queue { query, reply } => drop(reply.send(Ok(self.view().queue(&query)))),
            Question::Gpus { reply } => drop(reply.send(Ok(self.view().gpus()))),
            Question::Shares { reply } => {
                let shares = self.decisions.scheduler().shares(self.decisions.now());
                drop(reply.send(Ok(shares.into_iter().map(Into::into).collect())));
            }
            Question::Quota { user, reply } => {
                let (quota, used) = self.decisions.scheduler().quota(user);
                drop(reply.send(Ok(QuotaDetail::new(quota, used))));
            }
            Question::Unfinished { job, reply } => {
                let attempt = self.decisions.job(job).and_then(|job| job.state.active()).map(|active| active.attempt);
                let so_far = attempt.map(|attempt| self.accounting.so_far(attempt));
                let (now, wall) = (self.decisions.now(), self.decisions.wall());
                let over_time =
                    attempt.zip(so_far.as_ref()).map(|(attempt, so_far)| over_time(attempt, so_far, now, wall)).unwrap_or_default();
                let reserved = self.decisions.job(job).map(|job| self.view().reserved_now(job)).unwrap_or_default();
                drop(reply.send(Ok(Unfinished { so_far, over_time, prediction: self.view().prediction_for(job), reserved })));
            }
            Question::Status { reply } => drop(reply.send(Ok(self.view().status()))),
            Question::Facts { reply } => drop(reply.send(Ok(self.view().facts()))),
            Question::Settings { reply } => {
                let Configuration { rules, given, .. } = &self.setup.configuration;
                drop(reply.send(Ok((rules.clone(), given.clone()))));
            }
            Question::Configure { settings, given, reply } => self.configure(*settings, given, reply),
            Question::Notify { uid, notifications, reply } => self.set_notifications(uid, notifications, reply),
            Question::TryNotifications { owner, reply } => self.listeners.notifier.send_test(owner, reply),
            Question::Shutdown { shutdown, reply } => self.shut_down(shutdown, reply),
        }
    }

    /// While nothing can be changed, only questions that change nothing are answered.
    fn answer_without_change(&mut self, question: Question, reason: &str) {
        let problem = || unavailable(reason);
        match question {
            Question::Submit { reply, .. } => drop(reply.send(Err(problem()))),
            Question::Drain { reply, .. } => drop(reply.send(Err(problem()))),
            Question::Configure { reply, .. }
            | Question::Notify { reply, .. }
            | Question::Cluster(ClusterQuestion::Add { reply, .. } | ClusterQuestion::Change { reply, .. }) => {
                drop(reply.send(Err(problem())));
            }
            Question::Shutdown { reply, .. } if self.condition == Condition::Stopping => drop(reply.send(Ok(()))),
            Question::Status { reply } => drop(reply.send(Ok(View { unavailable: Some(reason), ..self.view() }.status()))),
            other => self.answer_with(other),
        }
    }

    fn set_notifications(&mut self, uid: u32, notifications: Vec<Notification>, reply: Reply<()>) {
        self.decisions.batch.changes.push(Change::NotificationsSet { uid, notifications });
        let reload = self.listeners.notifier.reload();
        let answer = move |written: Result<(), Problem>| {
            reload();
            drop(reply.send(written));
        };
        self.decisions.batch.effects.push(Effect::Answer(Box::new(answer)));
    }

    fn shut_down(&mut self, shutdown: Shutdown, reply: Reply<()>) {
        if shutdown.drain {
            self.draining = true;
            let servers = self.servers.iter().map(|server| server.stored.id);
            for server in [LOCAL_SERVER].into_iter().chain(servers) {
                let _ = self.decisions.tell(Event::HostShort { server });
            }
            self.decisions.announce("draining: no more jobs start".to_owned());
        } else {
            self.condition = Condition::Stopping;
        }
        let _ = reply.send(Ok(()));
    }

    fn configure(&mut self, settings: Settings, given: Sources, reply: Reply<()>) {
        let result = self.decisions.tell(Event::ConfigurationChanged(Box::new(settings.clone()))).map_err(|error| refused(&error));
        if result.is_ok() {
            self.setup.configuration.replace_rules(settings, given);
            self.gpus.rules_changed(&self.decisions);
            self.decisions.announce("the rules have changed".to_owned());
        }
        let _ = reply.send(result);
    }
}
