//! Server-sent events: live, and replayed.

use serde_json::{Value, json};

use super::lab::{Answer, Lab, job};

/// Reads events until one of this name that tells of this.
fn next(answer: &mut Answer, name: &str, tells: impl Fn(&Value) -> bool) -> (Option<u64>, Value) {
    let mut unread = String::new();
    loop {
        while let Some((event, rest)) = unread.split_once("\n\n") {
            let field = |field: &str| event.lines().find_map(|line| line.strip_prefix(field));
            if field("event: ") == Some(name) {
                let data: Value = serde_json::from_str(field("data: ").unwrap()).unwrap();
                if tells(&data) {
                    return (field("id: ").map(|id| id.parse().unwrap()), data);
                }
            }
            unread = rest.to_owned();
        }
        unread += &answer.piece().unwrap();
    }
}

#[test]
fn events_are_streamed_as_they_happen() {
    let lab = Lab::new();
    let mut live = lab.ask("GET", "/v1/events", "");
    let [job] = lab.submit(&job("told"), None)[..] else { panic!("one job") };
    let (id, told) = next(&mut live, "job", |told| told["job"] == job);
    assert_eq!((id, told["update"].as_str()), (None, Some("job")));
    assert!(told["at"].as_u64().unwrap() > 0 && told["state"].is_string());
}

#[test]
fn stored_events_are_replayed_then_followed() {
    let lab = Lab::new();
    let [first] = lab.submit(&job("first"), None)[..] else { panic!("one job") };
    let mut events = lab.ask("GET", "/v1/events?after=0", "");
    let of = |job: u64, kind: &'static str| move |kept: &Value| kept["event"]["job"] == job && kept["event"]["kind"] == kind;
    let (submitted, _) = next(&mut events, "kept", of(first, "submitted"));
    lab.post("/v1/jobs/last/cancel", &json!({}));
    let (cancelled, _) = next(&mut events, "kept", of(first, "cancelled"));
    assert!(cancelled.unwrap() > submitted.unwrap());
    // A client that reconnects gets the following events.
    let mut later = lab.ask("GET", &format!("/v1/events?after={}", submitted.unwrap()), "");
    let (next_id, _) = next(&mut later, "kept", |_| true);
    assert!(next_id.unwrap() > submitted.unwrap());
}
