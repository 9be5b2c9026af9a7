//! The reasons of a job live as long as the job, even after its events are pruned.

use std::time::Duration;

use carma_core::*;
use carma_manager::event::{CancelCause, JobEvent};
use carma_manager::store::*;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::lab::*;

fn happened(job: JobId, kind: &str, body: Value) -> Change {
    Change::EventLogged(NewEvent { at: NOW, job: Some(job), array: None, event: JobEvent::read(kind, body) })
}

fn reasons(store: &Store, job: JobId) -> JobReasons {
    store.reader().unwrap().job(job).unwrap().unwrap().reasons
}

#[test]
fn the_reason_of_a_hold_does_not_need_events() {
    let lab = Lab::new();
    let store = lab.open();
    let (job, mut held) = (submit(&store), stored(store.next_jobs(1), bob(), None));
    held.request.schedule.hold = true;
    let from_start = held.job.id();
    store.write([Change::JobAccepted(Box::new(held)), happened(job, "held", json!({"by": "root"}))]).wait().unwrap();
    let held_by = || [job, from_start].map(|job| reasons(&store, job).held_by);
    assert_eq!(held_by(), [Some("root".to_owned()), Some("bob".to_owned())]);
    store.write([happened(job, "released", json!({"by": "root"})), happened(from_start, "released", json!({"by": "bob"}))]).wait().unwrap();
    assert_eq!(held_by(), [None, None]);
}

#[test]
fn reasons_outlive_events_and_end_with_the_job() {
    let lab = Lab::new();
    let store = lab.open();
    let job = submit(&store);
    let estimate = |source: &str| happened(job, "estimated", json!({ "source": source, "notes": ["a note"] }));
    let changes = [
        estimate("static"),
        estimate("dry-run"),
        started(job, 1),
        attempt_ended(job, 1, NOW, 1.0),
        happened(job, "cancelled", json!({"by": "root"})),
        finished(job, Outcome::Cancelled, NOW),
    ];
    store.write(changes).wait().unwrap();
    let keep = |age| KeepRule { age: Duration::from_secs(age), most: u64::MAX };
    let day = UnixMillis(NOW.0 + 86_400_000);
    let forgotten = store.prune(&Retention { jobs: keep(1_000_000), events: keep(60), samples: keep(60) }, day).unwrap();
    assert_eq!((forgotten.jobs, forgotten.events), (0, 3));
    let history = store.reader().unwrap().job(job).unwrap().unwrap();
    let end = history.attempts[0].end.as_ref().unwrap();
    assert_eq!((history.events.len(), end.reason.as_deref()), (0, Some("it exited with code 0")));
    let JobReasons { cancelled, estimate, .. } = history.reasons;
    assert_eq!(cancelled, Some(CancelCause::User("root".to_owned())));
    let estimate = estimate.unwrap();
    assert_eq!((estimate.source.as_deref(), estimate.notes), (Some("dry-run"), vec!["a note".to_owned()]));
    store.prune(&Retention { jobs: keep(60), events: keep(60), samples: keep(60) }, day).unwrap();
    drop(store);
    let left: u64 = Connection::open(lab.path()).unwrap().query_row("SELECT count(*) FROM estimates", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}

/// Events as the first version wrote them, in a store that has no columns for what they say.
#[test]
fn an_old_store_gets_its_reasons_from_its_events() {
    let lab = Lab::new();
    let fixture = Connection::open(lab.path()).unwrap();
    fixture.execute_batch(include_str!("first-schema.sql")).unwrap();
    let log = |job: u64, kind: &str, body: &str| {
        fixture.execute("INSERT INTO events (at, job, kind, body) VALUES (1, ?1, ?2, ?3)", rusqlite::params![job, kind, body]).unwrap();
    };
    log(1, "ended", r#"{"attempt": 1, "verdict": "succeeded", "because": "at first", "whose": null}"#);
    log(1, "ended", r#"{"attempt": 1, "verdict": "succeeded", "because": "it exited with code 0", "whose": "job"}"#);
    log(1, "over_limit", r#"{"text": "too much"}"#);
    log(1, "cancelled", r#"{"by": "bob"}"#);
    log(1, "cancelled", "nonsense");
    log(1, "estimated", r#"{"source": "static", "notes": [], "parts": []}"#);
    log(1, "estimated", "nonsense");
    log(99, "estimated", r#"{"source": "static"}"#);
    log(2, "held", r#"{"by": "root"}"#);
    fixture.execute("UPDATE jobs SET phase = 'held' WHERE id = 2", []).unwrap();
    drop(fixture);
    drop(lab.open());
    // Such an event hides its job from readers, as ever; the migration passes it over.
    Connection::open(lab.path()).unwrap().execute("DELETE FROM events WHERE body = 'nonsense'", []).unwrap();
    let store = lab.open();
    let over = store.reader().unwrap().job(JobId(1)).unwrap().unwrap();
    let end = over.attempts[0].end.as_ref().unwrap();
    assert_eq!((end.reason.as_deref(), end.blame), (Some("it exited with code 0"), Some(carma_manager::judge::Blame::Job)));
    assert_eq!(over.reasons.cancelled, Some(CancelCause::User("bob".to_owned())));
    assert_eq!(over.reasons.estimate.unwrap().source.as_deref(), Some("static"));
    assert_eq!(reasons(&store, JobId(2)).held_by.as_deref(), Some("root"));
}

/// A job of the first version that only the manager held, and one that its user holds.
#[test]
fn an_old_job_that_is_not_held_waits_for_its_estimate() {
    for (held_by, expected) in [(None, Phase::Estimating), (Some("held"), Phase::Held)] {
        let lab = Lab::new();
        let fixture = Connection::open(lab.path()).unwrap();
        fixture.execute_batch(include_str!("first-schema.sql")).unwrap();
        let held = r#"json_set(standing, '$.state', json('{"state":"held","since":7.0,"resumes":"queued"}'), '$.spec.hold', json('true'))"#;
        fixture.execute(&format!("UPDATE standings SET standing = {held} WHERE job = 2"), []).unwrap();
        fixture.execute("UPDATE jobs SET phase = 'held' WHERE id = 2", []).unwrap();
        if let Some(kind) = held_by {
            fixture.execute(r#"INSERT INTO events (at, job, kind, body) VALUES (1, 2, ?1, '{"by": "root"}')"#, [kind]).unwrap();
        }
        drop(fixture);
        let store = lab.open();
        let jobs = store.reader().unwrap().load().unwrap().jobs;
        let since = Time::from_secs(7);
        assert_eq!(Phase::from(&jobs[0].job.state), expected);
        if expected == Phase::Estimating {
            assert_eq!(jobs[0].job.state, State::Estimating { since });
            assert!(!jobs[0].job.spec.hold && jobs[0].job.spec.awaits_estimate);
        } else {
            assert_eq!(jobs[0].job.state, State::Held { since, resumes: Resumes::Queued });
        }
        assert_eq!(reasons(&store, JobId(2)).held_by.as_deref(), held_by.map(|_| "root"));
    }
}
