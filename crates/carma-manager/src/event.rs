//! Events of jobs and of the machine, as they are stored, sent and shown. All writers and readers use [`JobEvent`].

use carma_core::{
    Estimate, Granted, Idle, JobId, JobLabel, LaunchReason, LimitChange, MiB, Outcome, Placement, RequeueReason, Signal, Stall, StopReason,
    Verdict,
};
use carma_format::duration;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::judge::Blame;
use crate::request::{ArrayPlace, JobChange};
use crate::units::UnixMillis;

/// An event of a job's timeline, or of the machine. On the wire it is `kind` and `body`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", content = "body", rename_all = "snake_case")]
pub enum JobEvent {
    /// The job is accepted.
    Submitted {
        /// The user's name.
        user: String,
    },
    /// The job waits for its estimate.
    Estimating {},
    /// The job's estimate is ready, or could not be made.
    Estimated(Box<JobEstimate>),
    /// The job is cancelled because its estimate is above a limit.
    OverLimit {
        /// The limit.
        text: String,
    },
    /// A user cancels the job.
    Cancelled(ByUser),
    /// A user holds the job.
    Held(ByUser),
    /// A user releases the job.
    Released(ByUser),
    /// A user requeues the job.
    #[serde(alias = "requeue_asked")]
    RequeueRequested(ByUser),
    /// A user changes the job.
    Changed {
        /// The user's name.
        by: String,
        /// What is changed.
        change: JobChange,
    },
    /// An attempt is launched.
    Launched {
        /// Its number.
        attempt: u32,
        /// Where it runs.
        placement: Placement,
        /// Why it is launched there and now.
        reason: LaunchReason,
    },
    /// An attempt is signalled.
    Signalled {
        /// Its number.
        attempt: u32,
        /// The signal.
        signal: Signal,
        /// Why.
        reason: StopReason,
    },
    /// An attempt is over.
    Ended {
        /// Its number.
        attempt: u32,
        /// How it ended.
        verdict: Verdict,
        /// What the verdict is based on.
        #[serde(alias = "because")]
        reason: String,
        /// Who is to blame.
        #[serde(alias = "whose", default)]
        blame: Option<Blame>,
    },
    /// The job waits again.
    Requeued {
        /// Its next attempt has at least this much memory on each GPU.
        #[serde(default)]
        floor: Option<MiB>,
        /// Its next attempt gets idle GPUs only.
        #[serde(default)]
        whole_gpu: bool,
        /// Why.
        reason: RequeueReason,
    },
    /// The job does not use its GPUs, or uses them again.
    Idle {
        /// Since when it does not; unset: it uses them again.
        idle: Option<Idle>,
        /// The same as text.
        #[serde(default)]
        text: String,
    },
    /// The job hangs or is slow, or makes progress again.
    Stall {
        /// How; unset: it makes progress.
        stall: Option<Stall>,
        /// The same as text.
        #[serde(default)]
        text: String,
    },
    /// The job is over.
    Finished {
        /// How it ended.
        outcome: Outcome,
        /// The same as text.
        #[serde(default)]
        text: String,
    },
    /// A notification about the job could not be sent.
    #[serde(alias = "not_told")]
    NotificationFailed {
        /// The channel, and the error.
        text: String,
    },
    /// Something happened to the machine.
    Machine {
        /// What.
        text: String,
        /// An administrator should look at it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        warning: bool,
    },
    /// An event of another version, or of another user's job: those have no body.
    #[serde(untagged)]
    Other {
        /// Its kind.
        kind: String,
        /// Its content.
        #[serde(default)]
        body: Value,
    },
}

/// An event, for a job's timeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NewEvent {
    /// When.
    pub at: UnixMillis,
    /// The job; unset: the machine.
    pub job: Option<JobId>,
    /// The place of the job in an array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayPlace>,
    /// The event.
    #[serde(flatten)]
    pub event: JobEvent,
}

impl NewEvent {
    /// An event of a job, or of the machine.
    pub fn of(at: UnixMillis, job: Option<JobLabel>, event: JobEvent) -> Self {
        let array = job.and_then(|job| job.member).map(|(array, index)| ArrayPlace { array, index });
        Self { at, job: job.map(|label| label.job), array, event }
    }
}

/// An event with its number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StoredEvent {
    /// Its number. Later events have higher numbers, whatever the clock shows.
    pub sequence: u64,
    /// The event.
    pub event: NewEvent,
    /// The text that users read.
    #[serde(default)]
    pub text: String,
}

impl StoredEvent {
    /// An event with its number and text.
    pub fn new(sequence: u64, event: NewEvent) -> Self {
        Self { sequence, text: event.event.text(), event }
    }
}

/// An action of a user on a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ByUser {
    /// The user's name.
    pub by: String,
}

/// Why a job was cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CancelCause {
    /// This user cancelled it.
    #[serde(rename = "by")]
    User(String),
    /// Its estimate is above this limit.
    OverLimit(String),
}

/// The estimate of a job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct JobEstimate {
    /// The part that the core uses.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// The estimator: `history`, `static`, `dry-run`; unset: none has an estimate.
    #[serde(default)]
    pub source: Option<String>,
    /// Notes for the user.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The parts of the expected memory, where they are known.
    #[serde(default)]
    pub parts: Vec<MemoryPart>,
}

/// A part of a job's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MemoryPart {
    /// Its kind: weights, gradients, optimizer, activations, workspace, fragmentation, context, correction.
    pub name: String,
    /// Its size.
    pub memory: MiB,
}

/// The part that measurements on this server add to an estimate.
pub(crate) const CORRECTION: &str = "correction";

/// An estimate by its parts, before its correction, and the convolution workspace in it; none without parts.
pub fn uncorrected(parts: &[MemoryPart]) -> Option<(MiB, MiB)> {
    let sum: MiB = parts.iter().filter(|part| part.name != CORRECTION).map(|part| part.memory).sum();
    let workspace = parts.iter().find(|part| part.name == "workspace").map(|part| part.memory).unwrap_or_default();
    (sum > MiB::ZERO).then_some((sum, workspace))
}

impl JobEvent {
    /// The event of a kind with a body. An unknown event is kept unchanged.
    pub fn read(kind: &str, body: Value) -> Self {
        let known = serde_json::from_value(serde_json::json!({ "kind": kind, "body": body.clone() }));
        known.unwrap_or_else(|_| Self::Other { kind: kind.to_owned(), body })
    }

    /// Its kind and its body.
    pub fn parts(&self) -> (String, Value) {
        let mut all = serde_json::to_value(self).unwrap_or_default();
        let kind = all["kind"].as_str().unwrap_or_default().to_owned();
        (kind, all["body"].take())
    }

    /// Its kind, as in `requeue_requested`.
    pub fn kind(&self) -> String {
        self.parts().0
    }

    /// The event without what only the job's user may see.
    #[must_use]
    pub fn without_body(&self) -> Self {
        Self::Other { kind: self.kind(), body: Value::Null }
    }

    /// The text that users read.
    ///
    /// ```
    /// use carma_core::Outcome;
    /// use carma_manager::event::JobEvent;
    /// let outcome = Outcome::Failed { code: 1 };
    /// let event = JobEvent::Finished { text: outcome.to_string(), outcome };
    /// assert_eq!(event.text(), "finished: failed with exit code 1");
    /// ```
    pub fn text(&self) -> String {
        let kind = self.kind().replace('_', " ");
        match self {
            Self::Submitted { .. } | Self::Estimating {} => kind,
            Self::Estimated(estimate) => match &estimate.source {
                Some(source) => format!("{kind}: by {source}"),
                None => kind,
            },
            Self::Cancelled(user) | Self::Held(user) | Self::Released(user) => format!("{kind} by {}", user.by),
            Self::RequeueRequested(user) => format!("requeue requested by {}", user.by),
            Self::Changed { by, change } => format!("{kind} by {by}{}", changes(change)),
            Self::Launched { attempt, placement, .. } => {
                let reserved = |granted: &Granted| format!("{} with {} reserved", granted.device.label(), granted.reserved);
                let devices: Vec<String> = placement.devices.iter().map(reserved).collect();
                let on = if devices.is_empty() { String::new() } else { format!(" on {}", devices.join(", ")) };
                format!("{kind} (attempt {attempt}){on}")
            }
            Self::Signalled { attempt, reason: StopReason::Borrows(borrowing), .. } => {
                format!("{kind} (attempt {attempt}): it {borrowing}")
            }
            Self::Signalled { attempt, reason, .. } => format!("{kind} (attempt {attempt}): {}", snake(reason)),
            Self::Ended { attempt, reason, .. } => format!("{kind} (attempt {attempt}): {reason}"),
            Self::Requeued { floor, whole_gpu, reason } => {
                let more = match floor.filter(|floor| *floor > MiB::ZERO) {
                    _ if *whole_gpu => ", for an exclusive GPU".to_owned(),
                    Some(floor) => format!(", to have {floor} or more"),
                    None => String::new(),
                };
                match reason {
                    RequeueReason::After(_) => format!("{kind}{more}"),
                    RequeueReason::Requested => format!("{kind}{more}: requested"),
                    RequeueReason::TimeSliceOver => format!("{kind}{more}: its time slice is over, and other jobs wait"),
                    RequeueReason::Moved => format!("{kind}{more}: it moves to another GPU"),
                    RequeueReason::ServerEnding => format!("{kind}{more}: its server ends soon"),
                    RequeueReason::Borrowed => format!("{kind}{more}: it used memory that is reserved for other jobs"),
                    RequeueReason::Hung => format!("{kind}{more}: it hung"),
                }
            }
            Self::Stall { text, .. } => text.clone(),
            Self::OverLimit { text }
            | Self::Idle { text, .. }
            | Self::Finished { text, .. }
            | Self::NotificationFailed { text }
            | Self::Machine { text, .. } => {
                format!("{kind}: {text}")
            }
            Self::Other { body, .. } => match body["text"].as_str() {
                Some(text) => format!("{kind}: {text}"),
                None => kind,
            },
        }
    }
}

/// What a user changed of a job.
fn changes(JobChange { priority, time_limit }: &JobChange) -> String {
    let limit = match time_limit {
        LimitChange::Keep => None,
        LimitChange::Remove => Some("no time limit".to_owned()),
        LimitChange::Set(limit) => Some(format!("time limit {}", duration(limit.get()))),
    };
    let changes: Vec<String> = priority.map(|priority| format!("priority {}", priority.0)).into_iter().chain(limit).collect();
    if changes.is_empty() { String::new() } else { format!(": {}", changes.join(", ")) }
}

/// The serialised name of an enum's value, with spaces.
fn snake(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(name)) => name.replace('_', " "),
        Ok(Value::Object(fields)) => fields.keys().next().map(|name| name.replace('_', " ")).unwrap_or_default(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Bodies as version 0.1.0 wrote them.
    #[test]
    fn events_of_version_0_1_0_are_read() {
        let placement = json!({"server": 0, "devices": [{"device": "s0/gpu3", "promised": 2048, "limits": "streams"}]});
        for (kind, body, text) in [
            ("submitted", json!({"user": "ada"}), "submitted"),
            ("estimating", json!({}), "estimating"),
            ("estimated", json!({"memory": {"expected": 1, "upper": 2}, "source": "static", "notes": []}), "estimated: by static"),
            ("launched", json!({"attempt": 1, "placement": placement, "reason": {}}), "launched (attempt 1) on gpu3 with 2.0 GiB reserved"),
            ("signalled", json!({"attempt": 1, "signal": "terminate", "reason": "cancelled"}), "signalled (attempt 1): cancelled"),
            (
                "ended",
                json!({"attempt": 1, "verdict": "out_of_memory", "because": "it said so", "whose": null}),
                "ended (attempt 1): it said so",
            ),
            (
                "requeued",
                json!({"floor": 29_011, "reason": {"after": "out_of_memory"}, "whole_gpu": false}),
                "requeued, to have 28.3 GiB or more",
            ),
            ("requeued", json!({"floor": 0, "reason": "slot_over"}), "requeued: its time slice is over, and other jobs wait"),
            ("idle", json!({"idle": null, "text": "works again"}), "idle: works again"),
            ("held", json!({"by": "ada"}), "held by ada"),
            ("changed", json!({"by": "ada", "change": {"priority": -1}}), "changed by ada: priority -1"),
            ("finished", json!({"outcome": "succeeded", "text": "succeeded"}), "finished: succeeded"),
            ("over_limit", json!({"text": "too much"}), "over limit: too much"),
            ("machine", json!({"text": "GPU 3 is lost"}), "machine: GPU 3 is lost"),
        ] {
            let event = JobEvent::read(kind, body);
            assert!(!matches!(event, JobEvent::Other { .. }), "{kind}: {event:?}");
            assert_eq!((event.kind().as_str(), event.text().as_str()), (kind, text));
            let (kind, body) = event.parts();
            assert_eq!(JobEvent::read(&kind, body), event, "it reads back");
        }
    }

    #[test]
    fn other_events_keep_their_kind_and_hidden_ones_only_that() {
        let unknown = JobEvent::read("beamed_up", json!({"text": "by whom"}));
        assert_eq!((unknown.kind().as_str(), unknown.text().as_str()), ("beamed_up", "beamed up: by whom"));
        let hidden = JobEvent::read("finished", json!({"outcome": "succeeded", "text": "secret"})).without_body();
        assert_eq!(
            (hidden.text().as_str(), serde_json::to_value(&hidden).unwrap()),
            ("finished", json!({"kind": "finished", "body": null}))
        );
        assert_eq!(serde_json::from_value::<JobEvent>(json!({"kind": "finished", "body": null})).unwrap(), hidden);
    }
}
