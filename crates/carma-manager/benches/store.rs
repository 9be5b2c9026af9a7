//! What a durable submit costs alone and with others, and how long a hundred thousand queued jobs take to list.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on has failed")]

use std::hint::black_box;
use std::thread;

use carma_bench::{Calls, Case, Suite};
use carma_core::{Job, JobId, JobSpec, LadderPosition};
use carma_manager::request::Owner;
use carma_manager::request::{JobCommand, JobRequest};
use carma_manager::store::{Change, JobFilter, Reader, Store, StoredJob, UnixMillis};
use tempfile::TempDir;

const QUEUED: u64 = 100_000;
/// Submits of each thread in one call.
const EACH: usize = 20;

/// Something that is read.
type Read<'a> = (&'a str, &'a dyn Fn(&mut Site));

/// A store in a folder of its own.
struct Site {
    store: Store,
    reader: Reader,
    /// Dropped last.
    _folder: TempDir,
}

impl Site {
    fn new(queued: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("carma.db")).unwrap();
        let site = Self { reader: store.reader().unwrap(), store, _folder: folder };
        for _ in 0..queued / 1_000 {
            site.store.write((0..1_000).map(|_| job(&site.store)).collect::<Vec<_>>()).wait().unwrap();
        }
        site
    }
}

/// A job with an environment of ordinary size.
fn job(store: &Store) -> Change {
    let id = store.next_jobs(1);
    let command = JobCommand::Program(["python", "train.py", "--epochs", "90"].map(str::to_owned).to_vec());
    let environment = (0..60).map(|number| (format!("VARIABLE_{number}"), "a value of some length".repeat(2))).collect();
    let request = JobRequest { name: Some(format!("train-{}", id.0)), environment, ..JobRequest::new(command, "/home/alice/project") };
    let owner = Owner { uid: 1000, gid: 1000, name: "alice".to_owned() };
    Change::JobAccepted(Box::new(StoredJob { request, owner, job: core_job(id), submitted: UnixMillis::now(), ended: None }))
}

fn submit_from(store: &Store, threads: usize) {
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| (0..EACH).for_each(|_| store.write([job(store)]).wait().unwrap()));
        }
    });
}

fn core_job(id: JobId) -> Job {
    let job = serde_json::json!({
        "spec": JobSpec::new(id), "state": {"state": "queued", "since": 0.0}, "submitted_at": 0.0, "sequence": id.0, "attempts": 0,
        "climb": LadderPosition::default(), "failures": 0, "displacements": 0, "progress": null, "checkpointed_at": null,
    });
    serde_json::from_value(job).unwrap()
}

fn main() {
    let mut suite = Suite::with_calls("The store (each submit on the disk before it returns)", Calls { timed: 10, counted: 0 });
    let alone = "submit from 1 thread";
    for threads in [1, 8, 64] {
        let name = if threads == 1 { alone.to_owned() } else { format!("submit from {threads} threads") };
        suite.run(&Case {
            name: &name,
            units: threads * EACH,
            reference: alone,
            setup: &|| Site::new(0),
            prepare: &|_| {},
            call: &|site| submit_from(&site.store, threads),
        });
    }
    let reads: [Read<'_>; 3] = [
        ("list 100,000 queued jobs", &|site| drop(black_box(site.reader.queue().unwrap()))),
        ("a page of 50 jobs by name, of 100,000", &|site| {
            let filter = JobFilter { name: Some("TRAIN-77".to_owned()), ..JobFilter::default() };
            drop(black_box(site.reader.history(&filter, None, 50).unwrap()));
        }),
        ("load 100,000 jobs for a restart", &|site| drop(black_box(site.reader.load().unwrap()))),
    ];
    for (name, call) in reads {
        suite.run(&Case { name, units: 1, reference: reads[0].0, setup: &|| Site::new(QUEUED), prepare: &|_| {}, call });
    }
}
