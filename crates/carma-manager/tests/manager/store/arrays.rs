//! Arrays and sweeps, which are stored as one: each job reads back as if it had been stored alone.

use std::sync::Arc;

use carma_core::*;
use carma_manager::request::{HIDDEN, JobRequest, Parameter};
use carma_manager::store::*;
use carma_manager::submission::Template;

use super::lab::*;

const TOKEN: &str = "API_TOKEN";

pub(super) fn sweep() -> Template {
    let StoredJob { mut request, .. } = stored(JobId(1), alice(), Some("sweep"));
    request.environment.insert(TOKEN.to_owned(), "s3cret-value".to_owned());
    let values = ["0.1", "0.2", "0.3", "0.4"].map(str::to_owned).to_vec();
    Template { request, parameters: vec![Parameter { name: "lr".to_owned(), values }] }
}

/// An array of four jobs.
pub(super) fn array(store: &Store, template: Template) -> StoredArray {
    let first = store.next_jobs(4);
    let indices = (0..4).map(|place| if template.parameters.is_empty() { 10 * place } else { place }).collect();
    let array = ArrayId(first.0);
    let last = core_job(JobId(first.0 + 3), |spec| spec.array = Some(ArrayMember { array, index: 3, at_most: Some(2) }));
    let stored = StoredArray { array, indices, template: Arc::new(template), owner: alice(), state: last, submitted: NOW, ended: None };
    store.write([Change::ArrayAccepted(Box::new(stored.clone()))]).wait().unwrap();
    stored
}

/// Its jobs, each by itself.
fn alone(of: &StoredArray) -> Vec<StoredJob> {
    let member = |(place, index): (usize, &u32)| StoredJob {
        request: of.template.request(place, *index, Some(of.array)),
        owner: of.owner.clone(),
        job: of.state.as_member(JobId(of.array.0 + place as u64), *index),
        submitted: of.submitted,
        ended: of.ended,
    };
    of.indices.iter().enumerate().map(member).collect()
}

fn request(store: &Store, job: JobId) -> JobRequest {
    store.reader().unwrap().request(job).unwrap().unwrap()
}

#[test]
fn each_job_reads_back_as_if_it_were_alone() {
    for template in [sweep(), Template { parameters: Vec::new(), ..sweep() }] {
        let lab = Lab::new();
        let (store, reference_lab) = (lab.open(), Lab::new());
        let reference = reference_lab.open();
        let jobs = alone(&array(&store, template));
        reference.next_jobs(jobs.len() as u64);
        reference.write(jobs.iter().map(|job| Change::JobAccepted(Box::new(job.clone()))).collect::<Vec<_>>()).wait().unwrap();
        let (reader, other) = (store.reader().unwrap(), reference.reader().unwrap());
        for job in &jobs {
            let read = reader.job(job.job.id()).unwrap().unwrap();
            assert_eq!(read.job, *job);
            assert_eq!(Some(&read.job), other.job(job.job.id()).unwrap().map(|read| read.job).as_ref());
            assert_eq!(read.events.iter().map(|event| event.event.event.kind()).collect::<Vec<_>>(), ["submitted"]);
            assert_eq!(request(&store, job.job.id()), job.request);
        }
        let everything = |reader: &Reader| (reader.history(&JobFilter::default(), None, 100).unwrap(), reader.load().unwrap());
        assert_eq!(everything(&reader), everything(&other));
        drop(store);
        assert_eq!(everything(&lab.open().reader().unwrap()), everything(&other), "and again by the next manager");
        assert_eq!(lab.open().next_jobs(1), JobId(5), "their numbers are used");
    }
}

#[test]
fn a_job_that_changes_has_a_state_of_its_own() {
    let lab = Lab::new();
    let store = lab.open();
    let mut jobs = alone(&array(&store, sweep()));
    jobs[1].job.attempts = 2;
    store.write([Change::JobChanged { job: Box::new(jobs[1].job.clone()), at: NOW }]).wait().unwrap();
    let loaded = store.reader().unwrap().load().unwrap();
    assert_eq!(loaded.jobs, jobs.iter().map(unfinished).collect::<Vec<_>>());
}

#[test]
fn array_data_is_deleted_with_its_last_job() {
    let lab = Lab::new();
    let store = lab.open();
    let jobs = alone(&array(&store, sweep()));
    let templates = || -> u32 {
        let connection = rusqlite::Connection::open(lab.path()).unwrap();
        connection.query_row("SELECT count(*) FROM arrays", [], |row| row.get(0)).unwrap()
    };
    for (number, StoredJob { job, .. }) in jobs.iter().enumerate() {
        assert_eq!((templates(), request(&store, job.id()).array.unwrap().index), (1, number as u32));
        store.write([Change::JobChanged { job: Box::new(ended(job.clone(), Outcome::Succeeded)), at: NOW }]).wait().unwrap();
        store.write([Change::JobsDeleted(vec![job.id()])]).wait().unwrap();
    }
    assert_eq!(templates(), 0);
}

#[test]
fn secrets_of_an_array_are_hidden_once_all_its_jobs_are_over() {
    let lab = Lab::new();
    let store = lab.open();
    let jobs = alone(&array(&store, sweep()));
    let later = alone(&array(&store, sweep()));
    for StoredJob { job, .. } in &jobs {
        assert_eq!(request(&store, job.id()).environment[TOKEN], "s3cret-value", "another job may need it");
        store.write([Change::JobChanged { job: Box::new(ended(job.clone(), Outcome::Succeeded)), at: NOW }]).wait().unwrap();
        let listed = store.reader().unwrap().finished_with_secrets(JobId(0), 10).unwrap();
        assert_eq!(listed, [job.id()]);
        store.write([Change::SecretsHidden(listed)]).wait().unwrap();
    }
    assert!(jobs.iter().all(|job| request(&store, job.job.id()).environment[TOKEN] == HIDDEN));
    assert_eq!(request(&store, later[0].job.id()).environment[TOKEN], "s3cret-value");
}
