//! Arrays and sweeps: their jobs are stored together, and each is there after a restart.

use carma_core::{AttemptId, Condition, Job, JobId, MiB, Outcome, State};
use tokio::sync::oneshot;

use super::lab::{Lab, ended};
use crate::api::JobAction;
use crate::attempt::Exit;
use crate::engine::input::Input;
use crate::engine::question::Question;
use crate::engine::task::Task;
use crate::executor::fake::Call;
use crate::executor::{Adopted, Report};
use crate::request::{After, JobCommand, JobRequest, Owner, Parameter, Submission};

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
    let jobs = submit_in(&mut lab, submission);
    (lab, jobs)
}

fn submit_in(lab: &mut Lab, submission: Submission) -> Vec<JobId> {
    let (reply, mut answer) = oneshot::channel();
    let (owner, jobs) = (Owner { uid: 1000, gid: 1000, name: "ada".to_owned() }, submission.validate().unwrap().into_jobs(usize::MAX));
    lab.take(Input::Task { user: 1000, task: Task::Question(Question::Submit { owner, jobs, key: None, reply }) });
    lab.settle();
    answer.try_recv().unwrap().unwrap().jobs
}

/// Jobs without GPUs, two at once.
fn two_at_once(mut submission: Submission) -> Submission {
    submission.job.resources.exclusive = false;
    (submission.job.resources.gpus, submission.job.schedule.at_most) = (0, Some(2));
    submission
}

const fn first(job: JobId) -> AttemptId {
    AttemptId { job, number: 1 }
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

#[test]
fn after_a_restart_each_job_goes_on_from_where_it_was() {
    for submission in [array(), sweep()].map(two_at_once) {
        let mut lab = Lab::new();
        let jobs = submit_in(&mut lab, submission);
        lab.report(Report::Started(first(jobs[0])));
        lab.report(ended(first(jobs[0]), Exit::Code(0), ""));
        lab.act(jobs[3], JobAction::Cancel);
        lab.act(jobs[4], JobAction::Hold);
        // A job that depends on all of them.
        let after = |job: &JobId| After { job: job.0.to_string(), condition: Condition::Any };
        let mut last = two_at_once(array());
        (last.array, last.job.schedule.at_most, last.job.schedule.after) = (None, None, jobs.iter().map(after).collect());
        let last = submit_in(&mut lab, last)[0];
        let before: Vec<_> = known(&lab).into_iter().filter(|job| job.state.outcome().is_none()).collect();
        lab.calls();
        let mut lab = lab.restart(|executor| {
            executor.adopt_as(first(jobs[1]), Adopted::NeverStarted);
            executor.adopt_as(first(jobs[2]), Adopted::Running { ran: None });
        });
        lab.settle();
        let place = |job: &Job| (job.id(), job.spec.array, job.state.name(), job.attempts, job.spec.dependencies.clone());
        assert_eq!(known(&lab).iter().map(place).collect::<Vec<_>>(), before.iter().map(place).collect::<Vec<_>>());
        assert_eq!(lab.calls(), [Call::Adopt(vec![first(jobs[1]), first(jobs[2])]), Call::Start(first(jobs[1]))]);
        assert_eq!([0, 3].map(|place| lab.outcome(jobs[place])), [Some(Outcome::Succeeded), Some(Outcome::Cancelled)]);
        // As many go on at once as before.
        lab.report(Report::Started(first(jobs[2])));
        lab.report(ended(first(jobs[2]), Exit::Code(1), ""));
        assert_eq!(lab.calls().last(), Some(&Call::Start(first(jobs[5]))));
        lab.act(jobs[4], JobAction::Release);
        for job in [jobs[1], jobs[5], jobs[4]] {
            assert_eq!(lab.state(last).unwrap().name(), "queued");
            assert_eq!(lab.calls().iter().filter(|call| **call == Call::Start(first(last))).count(), 0);
            lab.report(Report::Started(first(job)));
            lab.report(ended(first(job), Exit::Code(0), ""));
        }
        assert!(lab.calls().contains(&Call::Start(first(last))), "nothing is left to wait for");
    }
}

#[test]
fn each_job_counts_for_the_quota_of_its_user() {
    let mut lab = Lab::new();
    let jobs = submit_in(&mut lab, two_at_once(sweep()));
    assert_eq!(lab.engine.jobs.count_of(1000), JOBS);
    lab.act(jobs[4], JobAction::Cancel);
    assert_eq!(lab.engine.jobs.count_of(1000), JOBS - 1);
    let lab = lab.restart(|executor| [0, 1].iter().for_each(|place| executor.adopt_as(first(jobs[*place]), Adopted::NeverStarted)));
    assert_eq!(lab.engine.jobs.count_of(1000), JOBS - 1);
}
