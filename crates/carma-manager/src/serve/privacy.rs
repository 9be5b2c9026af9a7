//! Redaction: other users see that a job exists, its user, its resources and its state, but not what it runs.

use std::path::PathBuf;

use carma_core::{Outcome, State, Verdict};

use super::caller::Caller;
use crate::api::{AttemptDetail, Ending, JobDetail, JobSummary, Update, Why};
use crate::attempt::Exit;
use crate::event::StoredEvent;
use crate::request::{HIDDEN, JobCommand, JobRequest};

/// How much a caller may see of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// Their own job: everything except secrets.
    Own,
    /// As an operator: everything except the values of its environment.
    Operator,
    /// Another user's job.
    Other,
}

impl Caller {
    /// Their view of a job of this user.
    pub(super) fn view(&self, uid: u32) -> View {
        match () {
            () if self.uid == uid => View::Own,
            () if self.is_operator() => View::Operator,
            () => View::Other,
        }
    }
}

/// Something that is redacted for some callers.
pub(super) trait Redact: Sized {
    /// Removes what other users may not see.
    fn redact(&mut self);

    /// The part that is visible in this view.
    fn visible_to(mut self, view: View) -> Self {
        if view == View::Other {
            self.redact();
        }
        self
    }
}

impl Redact for JobDetail {
    fn redact(&mut self) {
        self.request.redact();
        self.state.redact();
        self.outcome = self.state.outcome().map(ToString::to_string);
        self.ending = self.state.outcome().map(Ending::from);
        self.estimate.notes.clear();
        self.prediction.basis = None;
        (self.cancelled, self.last_output) = (None, None);
        self.attempts.iter_mut().for_each(Redact::redact);
        self.events.iter_mut().for_each(Redact::redact);
    }

    fn visible_to(mut self, view: View) -> Self {
        match view {
            View::Own => self.request = self.request.without_secrets(),
            View::Operator => self.request.environment.values_mut().for_each(|value| HIDDEN.clone_into(value)),
            View::Other => self.redact(),
        }
        self
    }
}

impl Redact for JobRequest {
    fn redact(&mut self) {
        self.command = JobCommand::Program(Vec::new());
        self.directory = PathBuf::new();
        self.environment.clear();
        (self.activation, self.image, self.output, self.error, self.hints.model) = (None, None, None, None, None);
        self.schedule.after.clear();
        if let Some(element) = &mut self.array {
            element.parameters.clear();
        }
    }
}

/// The reason of a failed start names files.
impl Redact for Outcome {
    fn redact(&mut self) {
        if let Self::CouldNotStart { reason } = self {
            HIDDEN.clone_into(reason);
        }
    }
}

impl Redact for State {
    fn redact(&mut self) {
        if let Self::Done { outcome, .. } = self {
            outcome.redact();
        }
    }
}

impl Redact for AttemptDetail {
    fn redact(&mut self) {
        // It may quote the log.
        self.reason = None;
        if let Some(Verdict::CouldNotStart { reason }) = &mut self.verdict {
            HIDDEN.clone_into(reason);
        }
        self.ending = self.verdict.as_ref().map(Ending::from);
        if let Some(Exit::NotStarted(reason)) = &mut self.exit {
            HIDDEN.clone_into(reason);
        }
    }
}

impl Redact for JobSummary {
    fn redact(&mut self) {
        self.outcome.iter_mut().for_each(Redact::redact);
        self.ending = self.outcome.as_ref().map(Ending::from);
    }
}

impl Redact for StoredEvent {
    fn redact(&mut self) {
        self.event.event = self.event.event.without_body();
        self.text = self.event.event.text();
    }
}

impl Redact for Why {
    fn redact(&mut self) {
        self.state.redact();
        if self.state.outcome().is_some() {
            let label = self.summary.split(':').next().unwrap_or_default().to_owned();
            self.summary = format!("{label}: {}", self.state);
            self.text.clone_from(&self.summary);
        }
    }
}

impl Redact for Update {
    fn redact(&mut self) {
        if let Self::Job { text, .. } = self {
            text.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use carma_core::{JobId, Time};

    use super::super::caller::Role;
    use super::*;
    use crate::api::{EstimateDetail, JobPrediction, LastOutput, LogStream};
    use crate::event::{CancelCause, JobEvent};
    use crate::request::Owner;
    use crate::store::{NewEvent, Phase, UnixMillis};

    fn detail() -> JobDetail {
        let command = JobCommand::Program(vec!["python".to_owned(), "private.py".to_owned()]);
        let mut request = JobRequest::new(command, "/home/alice/private");
        request.environment = BTreeMap::from([("private_name".to_owned(), "1".to_owned()), ("HF_TOKEN".to_owned(), "hf_x".to_owned())]);
        (request.output, request.hints.model) = (Some("/home/alice/private.log".into()), Some("private.onnx".into()));
        let outcome = Outcome::CouldNotStart { reason: "/home/alice/private is not a folder".to_owned() };
        let event = JobEvent::read("ended", serde_json::json!({ "text": "private" }));
        let event = NewEvent { at: UnixMillis(1), job: Some(JobId(1)), array: None, event };
        JobDetail {
            id: JobId(1),
            owner: Owner { uid: 1000, gid: 1000, name: "alice".to_owned() },
            request,
            phase: Phase::Done,
            outcome: Some(outcome.to_string()),
            ending: Some(Ending::from(&outcome)),
            state: State::Done { at: Time::ZERO, outcome },
            submitted: UnixMillis(1),
            held_by: None,
            cancelled: Some(CancelCause::OverLimit("private.onnx needs too much".to_owned())),
            ended: None,
            estimate: EstimateDetail { notes: vec!["private.onnx was read".to_owned()], ..EstimateDetail::default() },
            array: None,
            attempts: Vec::new(),
            events: vec![StoredEvent::new(1, event)],
            energy: None,
            prediction: JobPrediction { basis: Some("private".to_owned()), ..JobPrediction::default() },
            declaration: None,
            last_output: Some(LastOutput { stream: LogStream::Stderr, lines: vec!["private".to_owned()] }),
        }
    }

    fn seen_as(uid: u32, role: Role) -> String {
        let caller = Caller { uid, gid: uid, name: String::new(), role };
        serde_json::to_string(&detail().visible_to(caller.view(1000))).unwrap()
    }

    #[test]
    fn other_users_do_not_see_what_a_job_does() {
        let seen = seen_as(1001, Role::Owner);
        assert!(!seen.contains("private") && !seen.contains("hf_x"), "{seen}");
        assert!(seen.contains("\"ended\"") && seen.contains("alice"));
    }

    #[test]
    fn its_user_sees_all_but_secrets_and_operators_all_but_the_environment() {
        let own = seen_as(1000, Role::Owner);
        assert!(own.contains("private.py") && own.contains(r#""private_name":"1""#) && !own.contains("hf_x"), "{own}");
        let operator = seen_as(0, Role::Operator);
        assert!(
            operator.contains("private.py") && operator.contains(r#""private_name":"(hidden)""#) && !operator.contains("hf_x"),
            "{operator}"
        );
    }
}
