//! Arrays and sweeps: their jobs are stored together, and each is there after a restart.

use carma_core::{Job, JobId, MiB, State};
use tokio::sync::oneshot;

use super::lab::Lab;
use crate::engine::input::Input;
use crate::engine::question::Question;
use crate::engine::task::Task;
use crate::request::{JobCommand, JobRequest, Owner, Parameter, Submission};

const JOBS: u64 = 6;

fn array() -> Submission {
    let mut job = JobRequest::new(JobCommand::Program(vec!["train".to_owned(), "{lr}".to_owned()]), "/");
    job.environment.insert("HOME".to_owned(), "/home/ada".to_owned());
    job.resources.exclusive = true;
    job.schedule.at_most = Some(3);
    Submission { array: Some((0..JOBS as u32).map(|place| 10 + place).collect()), ..job.into() }
}

fn sweep() -> Submission {
    let values = (0..JOBS).map(|value| value.to_string()).collect();
    Submission { array: None, parameters: vec![Parameter { name: "lr".to_owned(), values }], ..array() }
}

/// Submits on one GPU, so that the first job starts at once.
fn submit(submission: Submission) -> (Lab, Vec<JobId>) {
    let mut lab = Lab::new();
    lab.attach_gpu(MiB(40_000));
    let (reply, mut answer) = oneshot::channel();
    let (owner, jobs) = (Owner { uid: 1000, gid: 1000, name: "ada".to_owned() }, submission.validate().unwrap().into_jobs(usize::MAX));
    lab.take(Input::Task { user: 1000, task: Task::Question(Question::Submit { owner, jobs, key: None, reply }) });
    lab.settle();
    let jobs = answer.try_recv().unwrap().unwrap().jobs;
    (lab, jobs)
}

/// The jobs that the core knows, as a manager of after a restart knows them.
fn known(lab: &Lab) -> Vec<Job> {
    let stored = |job: &Job| serde_json::from_str(&serde_json::to_string(job).unwrap()).unwrap();
    lab.engine.decisions.scheduler().jobs().map(stored).collect()
}

#[test]
fn the_store_has_each_job_as_the_core_knows_it() {
    for submission in [array(), sweep()] {
        let (lab, jobs) = submit(submission);
        assert_eq!(jobs.len() as u64, JOBS);
        let mut stored: Vec<Job> = lab.engine.reader.load().unwrap().jobs.into_iter().map(|unfinished| unfinished.job).collect();
        stored.sort_by_key(Job::id);
        assert_eq!(stored, known(&lab));
        assert!(matches!(stored[0].state, State::Starting(_)) && matches!(stored[1].state, State::Queued { .. }));
    }
}

#[test]
fn each_job_has_the_request_of_its_place() {
    let (lab, jobs) = submit(sweep());
    for (place, job) in jobs.iter().enumerate() {
        let request = lab.engine.reader.request(*job).unwrap().unwrap();
        assert_eq!(request.command, JobCommand::Program(vec!["train".to_owned(), place.to_string()]));
        let expected = [("CARMA_ARRAY_INDEX", place.to_string()), ("CARMA_PARAM_LR", place.to_string()), ("HOME", "/home/ada".to_owned())];
        assert_eq!(request.environment, expected.map(|(name, value)| (name.to_owned(), value)).into());
        assert_eq!(request.array.unwrap().array.map(|array| array.0), Some(jobs[0].0));
    }
    let (lab, jobs) = submit(array());
    let request = lab.engine.reader.request(jobs[4]).unwrap().unwrap();
    assert_eq!((request.environment["CARMA_ARRAY_INDEX"].as_str(), request.array.unwrap().index), ("14", 14));
}
