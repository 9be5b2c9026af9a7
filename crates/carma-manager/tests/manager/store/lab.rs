//! A store in a folder of its own, and jobs to put into it.

use std::fs;
use std::path::PathBuf;

use carma_core::*;
use carma_manager::event::JobEvent;
use carma_manager::request::Owner;
use carma_manager::request::{JobCommand, JobRequest};
use carma_manager::store::*;
use tempfile::TempDir;

pub(crate) const NOW: UnixMillis = UnixMillis(1_700_000_000_000);
pub(crate) const GPU: DeviceId = DeviceId::gpu(ServerId(0), 0);

pub(crate) struct Lab {
    folder: TempDir,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("carma.db")
    }

    pub(crate) fn open(&self) -> Store {
        Store::open(self.path()).unwrap()
    }

    /// The names of all files beside the store.
    pub(crate) fn files(&self) -> Vec<String> {
        fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// What the core makes of a request for a job of this number.
pub(crate) fn core_job(id: JobId, change: impl FnOnce(&mut JobSpec)) -> Job {
    let mut spec = JobSpec::new(id);
    change(&mut spec);
    let mut job = serde_json::json!({
        "spec": spec, "state": {"state": "queued", "since": 0.0}, "submitted_at": 0.0, "sequence": id.0, "attempts": 0,
        "climb": LadderPosition::default(), "failures": 0, "displacements": 0, "progress": null, "checkpointed_at": null,
    });
    job["spec"]["id"] = id.0.into();
    serde_json::from_value(job).unwrap()
}

pub(crate) fn ended(mut job: Job, outcome: Outcome) -> Job {
    job.state = State::Done { at: Time::from_secs(9), outcome };
    job
}

pub(crate) fn alice() -> Owner {
    Owner { uid: 1000, gid: 100, name: "alice".to_owned() }
}

pub(crate) fn bob() -> Owner {
    Owner { uid: 1001, gid: 100, name: "bob".to_owned() }
}

pub(crate) fn stored(id: JobId, owner: Owner, name: Option<&str>) -> StoredJob {
    let command = JobCommand::Program(vec!["python".to_owned(), "train.py".to_owned()]);
    let request = JobRequest { name: name.map(str::to_owned), ..JobRequest::new(command, "/home/alice") };
    StoredJob { request, owner, job: core_job(id, |_| {}), submitted: NOW, ended: None }
}

/// The same as a restarted manager gets it.
pub(crate) fn unfinished(stored: &StoredJob) -> UnfinishedJob {
    let StoredJob { request, owner, job, submitted, .. } = stored.clone();
    UnfinishedJob { job, meta: JobMeta { name: request.name, owner, submitted } }
}

pub(crate) fn accepted(id: JobId) -> Change {
    Change::JobAccepted(Box::new(stored(id, alice(), None)))
}

pub(crate) fn finished(id: JobId, outcome: Outcome, at: UnixMillis) -> Change {
    Change::JobChanged { job: Box::new(ended(core_job(id, |_| {}), outcome)), at }
}

/// A new job, acknowledged.
pub(crate) fn submit(store: &Store) -> JobId {
    let id = store.next_jobs(1);
    store.write([accepted(id)]).wait().unwrap();
    id
}

pub(crate) fn placement() -> Placement {
    Placement { server: ServerId(0), devices: vec![Granted { device: GPU, reserved: MiB(4_000), limits: Limits::Streams }] }
}

pub(crate) fn started(job: JobId, number: u32) -> Change {
    Change::AttemptStarted { attempt: AttemptId { job, number }, placement: placement(), at: NOW }
}

pub(crate) fn attempt_ended(job: JobId, number: u32, at: UnixMillis, joules: f64) -> Change {
    let utilisation = Utilisation::of([(Metric::Smact, 0.5)]);
    let measured = Measured { peaks: vec![MiB(3_900)], utilisation, energy: Some(Joules(joules)) };
    let exit = Some(carma_manager::attempt::Exit::Code(0));
    Change::AttemptEnded {
        attempt: AttemptId { job, number },
        end: Box::new(AttemptEnd {
            at,
            exit,
            verdict: Verdict::Succeeded,
            reason: Some("it exited with code 0".to_owned()),
            blame: None,
            measured,
            log_bytes: 1000 * job.0,
        }),
    }
}

pub(crate) fn event(job: Option<JobId>, kind: &str, at: UnixMillis) -> Change {
    let event = JobEvent::read(kind, serde_json::json!({ "what": kind }));
    Change::EventLogged(NewEvent { at, job, array: None, event })
}

pub(crate) fn sample(device: DeviceId, minute: u64, readings: u32, smact: f64) -> MinuteMean {
    let utilisation = Utilisation::of([(Metric::Smact, smact)]);
    MinuteMean { device, minute: UnixMinute(minute), readings, memory_used: MiB(100), utilisation, power: Some(Watts(61.5)) }
}

/// The numbers of all jobs in the store, the first first.
pub(crate) fn all_jobs(store: &Store) -> Vec<JobId> {
    let page = store.reader().unwrap().history(&JobFilter::default(), None, u32::MAX).unwrap();
    page.iter().rev().map(|job| job.id).collect()
}
