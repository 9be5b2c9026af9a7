//! Secrets of jobs: kept until the job is over, then hidden.

use std::fs;

use carma_core::*;
use carma_manager::request::HIDDEN;
use carma_manager::store::*;
use rusqlite::Connection;

use super::lab::*;

const SECRET: &str = "s3cret-value";

fn with_secret(store: &Store) -> JobId {
    let id = store.next_jobs(1);
    let mut job = stored(id, alice(), None);
    // As long as real environments, which do not fit into one page.
    job.request.environment.insert("LS_COLORS".to_owned(), "x".repeat(9_000));
    job.request.environment.insert("API_TOKEN".to_owned(), SECRET.to_owned());
    store.write([Change::JobAccepted(Box::new(job))]).wait().unwrap();
    id
}

fn token(store: &Store, job: JobId) -> String {
    store.reader().unwrap().request(job).unwrap().unwrap().environment["API_TOKEN"].clone()
}

#[test]
fn secrets_are_hidden_once_their_job_is_over_and_not_before() {
    let lab = Lab::new();
    let store = lab.open();
    let (plain, waits, over) = (submit(&store), with_secret(&store), with_secret(&store));
    for job in [plain, over] {
        store.write([finished(job, Outcome::Succeeded, NOW)]).wait().unwrap();
    }
    let listed = || store.reader().unwrap().finished_with_secrets(JobId(0), 10).unwrap();
    assert_eq!(listed(), [over]);
    store.write([Change::SecretsHidden(vec![plain, waits, over])]).wait().unwrap();
    assert_eq!((listed(), token(&store, over).as_str(), token(&store, waits).as_str()), (Vec::new(), HIDDEN, SECRET));
    store.write([finished(waits, Outcome::Cancelled, NOW)]).wait().unwrap();
    assert_eq!(listed(), [waits]);
    store.write([Change::SecretsHidden(vec![waits])]).wait().unwrap();
    drop(store);
    let bytes = fs::read(lab.path()).unwrap();
    assert!(!bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()), "its old bytes are overwritten too");
}

#[test]
fn jobs_of_an_older_store_are_looked_at_once() {
    let lab = Lab::new();
    let fixture = Connection::open(lab.path()).unwrap();
    fixture.execute_batch(include_str!("first-schema.sql")).unwrap();
    drop(fixture);
    let store = lab.open();
    let listed = || store.reader().unwrap().finished_with_secrets(JobId(0), 10).unwrap();
    assert_eq!(listed(), [JobId(1)], "job 2 is not over");
    store.write([Change::SecretsHidden(listed())]).wait().unwrap();
    assert_eq!(listed(), []);
}
