//! Which events of a job are sent to its user, and their text.

use std::path::Path;

use carma_core::{Idle, MiB, Outcome, RequeueReason, Verdict};

use super::message::one_line;
use crate::api::{NotifiedEvent, Occasion};
use crate::declaration::far_off;
use crate::event::{CancelCause, JobEvent};
use crate::last_output::last_output;
use crate::request::ArrayPlace;
use crate::store::{JobHistory, StoredAttempt, StoredEvent};
use crate::supervise::AttemptFolder;
use carma_format::{duration, memory};

/// The longest name or reason in a text, in characters.
const MAX_LENGTH: usize = 200;

/// The notification for an event of a job, if there is one. Logs are below the manager's state.
pub(super) fn describe(history: &JobHistory, stored: &StoredEvent, state: &Path) -> Option<NotifiedEvent> {
    let attempt = last_attempt(history, stored);
    let (occasion, words, next_step) = match &stored.event.event {
        JobEvent::Finished { outcome, .. } => {
            let (occasion, words) = ended(history, outcome)?;
            (occasion, words, String::new())
        }
        JobEvent::Requeued { floor, whole_gpu, reason } => (Occasion::Recovered, recovered_from(reason)?, next_step(*floor, *whole_gpu)),
        JobEvent::Stall { stall: Some(stall), .. } => (Occasion::Stalled, stall.to_string(), String::new()),
        JobEvent::Idle { idle: Some(idle), text } => {
            // It is sent once, not again when the GPU is lent or when the job works again.
            let earlier = history.events.iter().filter(|other| other.sequence < stored.sequence);
            let first = earlier.filter_map(idle_of).all(|other| other.since != idle.since);
            (Occasion::Idle, first.then(|| idle_words(text).to_owned())?, String::new())
        }
        _ => return None,
    };
    let job = &history.job;
    let name = job.request.name.clone();
    let called = name.as_ref().map_or(String::new(), |name| format!(" {:?}", one_line(name, MAX_LENGTH)));
    // The last attempt that ended says nothing about the one that runs.
    let attempt = attempt.filter(|_| !matches!(occasion, Occasion::Idle | Occasion::Stalled));
    let ran = attempt.map_or_else(String::new, ran);
    let reason = attempt.filter(|_| occasion != Occasion::Done).and_then(|attempt| attempt.end.as_ref()?.reason.as_ref());
    let reason =
        reason.map(|reason| reason.strip_prefix("it was stopped: it hung: ").unwrap_or(reason)).filter(|reason| !words.contains(reason));
    let reason = reason.map_or(String::new(), |reason| format!(": {}", one_line(reason, MAX_LENGTH)));
    // The files may belong to the manager, and there is none without output.
    let log = attempt.map(|attempt| format!("carma logs {}", attempt.attempt.job.0));
    let failed = attempt.filter(|_| occasion == Occasion::Failed);
    let last_lines = failed.and_then(|attempt| last_output(&AttemptFolder::of(state, attempt.attempt))).map(|last| last.lines);
    let label = job.job.spec.label();
    let declaration = declaration(history, occasion).map_or_else(String::new, |text| format!("; {text}"));
    Some(NotifiedEvent {
        occasion,
        job: label.job.0,
        array: job.job.spec.array.map(ArrayPlace::from),
        name,
        text: format!("{label}{called} {words}{ran}{reason}{next_step}{declaration}"),
        at: stored.event.at,
        last_lines: last_lines.unwrap_or_default(),
        log,
    })
}

/// That the declaration of a finished job was far off.
fn declaration(history: &JobHistory, occasion: Occasion) -> Option<String> {
    let declared = history.job.request.resources.memory?;
    let ends = history.attempts.iter().filter_map(|attempt| attempt.end.as_ref());
    let peak = ends.flat_map(|end| &end.measured.peaks).max()?;
    matches!(occasion, Occasion::Done | Occasion::Failed).then(|| far_off(declared, *peak, occasion == Occasion::Done))?
}

/// What the event of an idle job says; events of earlier managers may say nothing.
fn idle_words(text: &str) -> &str {
    let words = text.split(':').next().unwrap_or_default();
    if words.is_empty() { "holds its GPUs without using them" } else { words }
}

/// Since when a job is idle, if the event says so.
const fn idle_of(stored: &StoredEvent) -> Option<Idle> {
    match stored.event.event {
        JobEvent::Idle { idle, .. } => idle,
        _ => None,
    }
}

/// The last attempt that had ended at the time of the event. Later ones may have started since.
fn last_attempt<'a>(history: &'a JobHistory, stored: &StoredEvent) -> Option<&'a StoredAttempt> {
    history.attempts.iter().rfind(|attempt| attempt.end.as_ref().is_some_and(|end| end.at <= stored.event.at))
}

/// How a job ended. A user's own cancellation is not sent.
fn ended(history: &JobHistory, outcome: &Outcome) -> Option<(Occasion, String)> {
    match outcome {
        Outcome::Succeeded => Some((Occasion::Done, outcome.to_string())),
        Outcome::Cancelled => {
            let by = match &history.reasons.cancelled {
                Some(CancelCause::User(by)) if *by == history.job.owner.name => return None,
                Some(CancelCause::User(by)) => format!(" by {by}"),
                Some(CancelCause::OverLimit(limit)) => format!(": {limit}"),
                None => String::new(),
            };
            Some((Occasion::Failed, format!("was cancelled{by}")))
        }
        Outcome::DependencyFailed { .. } => Some((Occasion::Failed, format!("was {outcome}"))),
        _ => Some((Occasion::Failed, outcome.to_string())),
    }
}

/// What a requeued job recovers from. Its own failures, requests and time slices are not sent.
fn recovered_from(reason: &RequeueReason) -> Option<String> {
    let verdict = match reason {
        RequeueReason::After(verdict) => verdict,
        RequeueReason::Borrowed => return Some("used memory that is reserved for other jobs".to_owned()),
        RequeueReason::Hung => &Verdict::Hung,
        // It continues from its checkpoint.
        RequeueReason::Requested | RequeueReason::TimeSliceOver | RequeueReason::Moved | RequeueReason::ServerEnding => return None,
    };
    match verdict {
        Verdict::Succeeded | Verdict::Failed { .. } | Verdict::CouldNotStart { .. } => None,
        verdict => Some(verdict.to_string()),
    }
}

fn next_step(floor: Option<MiB>, whole_gpu: bool) -> String {
    let wants = match floor {
        _ if whole_gpu => " for an exclusive GPU".to_owned(),
        Some(floor) if floor > MiB::ZERO => format!(" for {} at least", memory(floor)),
        _ => String::new(),
    };
    format!("; it waits again{wants}")
}

/// How long an attempt ran, where, and its peak memory.
fn ran(attempt: &StoredAttempt) -> String {
    let Some(end) = &attempt.end else { return String::new() };
    let took = duration(end.at.0.saturating_sub(attempt.launched.0) as f64 / 1000.0);
    let devices: Vec<String> = attempt.placement.devices.iter().map(|granted| granted.device.to_string()).collect();
    let place = if devices.is_empty() { String::new() } else { format!(" on {}", devices.join(", ")) };
    let peak = end.measured.peaks.iter().max().filter(|peak| peak.0 > 0);
    format!(" after {took}{place}{}", peak.map_or(String::new(), |peak| format!(", with {} at most", memory(*peak))))
}

#[cfg(test)]
mod tests {
    use carma_core::{AttemptId, DeviceId, Granted, JobId, JobSpec, Limits, Placement, ServerId};
    use serde_json::{Value, json};

    use super::*;
    use crate::request::{JobCommand, JobRequest, Owner};
    use crate::store::{AttemptEnd, JobReasons, Measured, NewEvent, StoredJob, UnixMillis};

    const START: u64 = 1_800_000_000_000;

    fn event(kind: &str, after: u64, body: Value) -> StoredEvent {
        StoredEvent::new(
            after,
            NewEvent { at: UnixMillis(START + after), job: Some(JobId(12)), array: None, event: JobEvent::read(kind, body) },
        )
    }

    /// A job of Ada's whose first attempt took four minutes, and its second one more.
    fn history(name: Option<&str>, cancelled: Option<CancelCause>, events: Vec<StoredEvent>) -> JobHistory {
        let job = json!({
            "spec": JobSpec::new(JobId(12)), "state": {"state": "queued", "since": 0.0}, "submitted_at": 0.0, "sequence": 1, "attempts": 0,
            "climb": carma_core::LadderPosition::default(), "failures": 0, "displacements": 0, "progress": null, "checkpointed_at": null,
        });
        let request = JobRequest { name: name.map(str::to_owned), ..JobRequest::new(JobCommand::Program(vec!["x".to_owned()]), "/") };
        let owner = Owner { uid: 7, gid: 7, name: "ada".to_owned() };
        let granted = Granted { device: DeviceId::gpu(ServerId(0), 3), reserved: MiB(1), limits: Limits::Streams };
        let attempt = |number: u32, launched: u64, ended: u64, reason: &str| StoredAttempt {
            attempt: AttemptId { job: JobId(12), number },
            placement: Placement { server: ServerId(0), devices: vec![granted] },
            launched: UnixMillis(START + launched),
            end: Some(AttemptEnd {
                at: UnixMillis(START + ended),
                exit: None,
                verdict: Verdict::OutOfMemory,
                reason: Some(reason.to_owned()),
                blame: None,
                measured: Measured { peaks: vec![MiB(17_408 * u64::from(number))], ..Measured::default() },
                log_bytes: 0,
            }),
        };
        JobHistory {
            job: StoredJob { request, owner, job: serde_json::from_value(job).unwrap(), submitted: UnixMillis(START), ended: None },
            reasons: JobReasons { cancelled, ..JobReasons::default() },
            attempts: vec![
                attempt(1, 0, 240_000, "its log says: CUDA out of memory"),
                attempt(2, 300_000, 360_000, "it exited with\ncode 1"),
            ],
            events,
        }
    }

    fn described(history: &JobHistory, event: &StoredEvent) -> Option<(Occasion, String)> {
        describe(history, event, "/state".as_ref()).map(|happened| (happened.occasion, happened.text))
    }

    #[test]
    fn an_end_is_described_with_place_duration_and_reason() {
        let history = history(Some("resnet"), None, Vec::new());
        let finished = |outcome: Value| event("finished", 360_000, json!({ "outcome": outcome, "text": "" }));
        let (done, failed) = (finished(json!("succeeded")), finished(json!({"failed": {"code": 1}})));
        let after = "after 1 min on s0/gpu3, with 34.0 GiB at most";
        assert_eq!(described(&history, &done), Some((Occasion::Done, format!("job 12 \"resnet\" succeeded {after}"))));
        let words = format!("job 12 \"resnet\" failed with exit code 1 {after}: it exited with code 1");
        assert_eq!(described(&history, &failed), Some((Occasion::Failed, words)));
        let back = event("requeued", 240_001, json!({"floor": 20_480, "whole_gpu": false, "reason": {"after": "out_of_memory"}}));
        let words = "job 12 \"resnet\" ran out of GPU memory after 4 min on s0/gpu3, with 17.0 GiB at most: \
                     its log says: CUDA out of memory; it waits again for 20.0 GiB at least";
        assert_eq!(described(&history, &back), Some((Occasion::Recovered, words.to_owned())));
        for event in [&back, &done] {
            assert_eq!(describe(&history, event, "/state".as_ref()).unwrap().log.as_deref(), Some("carma logs 12"));
        }
        let not_started = finished(json!({"could_not_start": {"reason": "it exited with\ncode 1"}}));
        let (_, text) = described(&history, &not_started).unwrap();
        assert_eq!(text.matches("it exited with").count(), 1, "{text}");
    }

    #[test]
    fn a_wrong_declaration_is_reported_at_the_end() {
        let mut history = history(None, None, Vec::new());
        history.job.request.resources.memory = Some(MiB(80 << 10));
        let done = event("finished", 360_000, json!({ "outcome": "succeeded", "text": "" }));
        let text = described(&history, &done).unwrap().1;
        assert!(text.ends_with("; declared 80.0 GiB, used 34.0 GiB: with less, it may start sooner and share a GPU"), "{text}");
    }

    #[test]
    fn users_get_no_message_about_their_own_actions() {
        let cancelled = event("finished", 1, json!({"outcome": "cancelled"}));
        let text_of = |cause: CancelCause| described(&history(None, Some(cause), Vec::new()), &cancelled).map(|(_, text)| text);
        assert_eq!(text_of(CancelCause::User("ada".to_owned())), None);
        assert_eq!(text_of(CancelCause::User("root".to_owned())).unwrap(), "job 12 was cancelled by root");
        assert_eq!(text_of(CancelCause::OverLimit("it needs 90 GiB".to_owned())).unwrap(), "job 12 was cancelled: it needs 90 GiB");
        let requeued =
            |reason: Value| described(&history(None, None, Vec::new()), &event("requeued", 1, json!({ "floor": null, "reason": reason })));
        assert_eq!(["requested", "time_slice_over", "moved"].map(|reason| requeued(json!(reason))), [None, None, None]);
        assert_eq!(requeued(json!({"after": {"failed": {"code": 1}}})), None, "a retry that was asked for");
        assert_eq!(requeued(json!({"after": "gpu_lost"})), Some((Occasion::Recovered, "job 12 lost its GPU; it waits again".to_owned())));
    }

    #[test]
    fn an_idle_job_is_reported_once_until_it_works() {
        let idle = |after: u64, since: f64, lent: bool| event("idle", after, json!({"idle": {"since": since, "lent": lent}}));
        let events = [idle(1, 5.0, false), idle(2, 5.0, true), event("idle", 3, json!({"idle": null})), idle(4, 9.0, true)];
        let history = history(None, None, events.to_vec());
        let described = events.each_ref().map(|event| described(&history, event));
        let words = || Some((Occasion::Idle, "job 12 holds its GPUs without using them".to_owned()));
        assert_eq!(described, [words(), None, None, words()], "the last is lent at once, where the rules say so");
    }
}
