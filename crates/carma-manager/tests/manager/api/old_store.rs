//! A store of version 0.1.0 opens and gives the same answers.
//!
//! `v0.1.0.sql` is a store that version 0.1.0 wrote on two emulated GPUs: jobs that succeeded, failed, recovered from too little memory, ran too
//! long, could not start, were cancelled, requeued, over a limit or never ran for a failed dependency; an array and a sweep; jobs with a declared,
//! static and remembered estimate; and jobs that wait, are held, wait for a held job, for a time, or for their estimate. `v0.1.0.json` has the
//! answers of version 0.1.0 on that store, by path.

use rusqlite::Connection;
use serde_json::{Value, json};

use super::lab::Lab;

const STORE: &str = include_str!("../store/v0.1.0.sql");
const ANSWERS: &str = include_str!("../store/v0.1.0.json");

/// The job whose estimate was not ready: it is estimated again, and its state depends on how long that takes.
const BEING_ESTIMATED: u64 = 30;
/// Fields that time changes.
const TIMES: [&str; 1] = ["for_seconds"];

/// Names and words of version 0.1.0, and those of version 0.2.0.
const RENAMED: [(&str, &str); 12] = [
    ("promised", "reserved"),
    ("because", "reason"),
    ("whose", "blame"),
    ("way", "kind"),
    ("requeue_asked", "requeue_requested"),
    ("requeue asked", "requeue requested"),
    ("neighbours", "other_processes"),
    ("machine", "hardware"),
    ("orders", "stopped"),
    ("slot_over", "time_slice_over"),
    ("not run, because", "not started, because"),
    ("a manager that launches: this one observes", "a manager that starts jobs: this one only observes"),
];

/// The present form of a name or a text.
fn present(text: &str) -> String {
    RENAMED.iter().fold(text.to_owned(), |text, (old, new)| if text == *old || old.contains(' ') { text.replace(old, new) } else { text })
}

/// Lists each part of an old answer that the new one lacks or has otherwise. New fields are welcome.
fn differences(path: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old.iter().filter(|(key, _)| !TIMES.contains(&key.as_str())) {
                differences(&format!("{path}.{key}"), value, new.get(&present(key)).unwrap_or(&Value::Null), found);
            }
        }
        // Version 0.2.0 has one form for a place in an array.
        (Value::Array(place), Value::Object(_)) if path.rsplit('.').next() == Some("array") => {
            differences(path, &json!({ "array": place[0], "index": place[1] }), new, found);
        }
        // And it names the parts of a sum's user.
        (Value::Array(user), Value::Object(_)) if path.ends_with(".of.user") => {
            differences(path, &json!({ "uid": user[0], "name": user[1] }), new, found);
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            old.iter().zip(new).enumerate().for_each(|(place, (old, new))| differences(&format!("{path}[{place}]"), old, new, found));
        }
        (Value::String(old), Value::String(new)) if present(old) == *new => {}
        _ if old == new => {}
        _ => found.push(format!("{path}: {old} is now {new}")),
    }
}

/// An answer without the job whose state depends on time.
fn settled(mut answer: Value) -> Value {
    let jobs = if answer["jobs"].is_array() { &mut answer["jobs"] } else { &mut answer };
    if let Some(jobs) = jobs.as_array_mut() {
        jobs.retain(|job| job["id"] != BEING_ESTIMATED);
    }
    answer
}

#[test]
fn a_store_of_version_0_1_0_gives_the_same_answers() {
    let lab = Lab::on(|path| Connection::open(path).unwrap().execute_batch(STORE).unwrap());
    let answers: serde_json::Map<String, Value> = serde_json::from_str(ANSWERS).unwrap();
    let mut found = Vec::new();
    for (path, old) in answers.into_iter().filter(|(path, _)| *path != format!("/v1/jobs/{BEING_ESTIMATED}")) {
        let new = lab.get(&path);
        differences(&path, &settled(old), &settled(new), &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_reasons_of_an_old_store_survive_its_events() {
    let lab = Lab::on(|path| Connection::open(path).unwrap().execute_batch(STORE).unwrap());
    let cancelled = |job: u64| lab.get(&format!("/v1/jobs/{job}"))["cancelled"].clone();
    assert_eq!(cancelled(4), json!({ "by": "ada" }));
    assert!(cancelled(18)["over_limit"].as_str().is_some_and(|limit| limit.contains("30000 MiB")));
    let held_by = [22, 23, 29].map(|job| lab.get(&format!("/v1/jobs/{job}"))["held_by"].clone());
    assert_eq!(held_by, [json!("ada"), json!("ada"), json!("ada")], "from the start, later, and while it was estimated");
    let phase = lab.get(&format!("/v1/jobs/{BEING_ESTIMATED}"))["phase"].clone();
    assert!(["held", "estimating", "queued"].iter().any(|expected| phase == *expected), "{phase}");
}
