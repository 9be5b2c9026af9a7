//! Tasks of users: in turns, and piece by piece.

use carma_core::{AttemptId, JobId, MiB, Outcome, Signal, State};
use tokio::sync::oneshot;

use super::lab::{Lab, action_on, another_users_job, ended, many_jobs};
use crate::api::{ActionResult, JobAction, Problem};
use crate::attempt::Exit;
use crate::engine::input::Input;
use crate::executor::Report;
use crate::executor::fake::Call;
use crate::store::WriteError;

type Answer = oneshot::Receiver<Result<ActionResult, Problem>>;

/// Jobs that wait; the first of them runs if there is a GPU.
fn waiting(lab: &mut Lab, jobs: usize) -> Vec<JobId> {
    let (input, mut answer) = many_jobs(jobs);
    lab.take(input);
    lab.settle();
    answer.try_recv().unwrap().unwrap().jobs
}

fn ask(lab: &mut Lab, jobs: &[JobId], action: JobAction) -> Answer {
    let (reply, answer) = oneshot::channel();
    lab.engine.take(action_on(jobs.to_vec(), action, reply));
    answer
}

#[test]
fn another_user_is_answered_before_a_change_of_many_jobs_is_done() {
    let mut lab = Lab::new();
    let jobs = waiting(&mut lab, 5000);
    let mut changed = ask(&mut lab, &jobs, JobAction::Hold);
    let (input, mut submitted) = another_users_job();
    lab.engine.take(input);
    let mut turns = 0;
    while submitted.try_recv().is_err() {
        lab.turn();
        turns += 1;
        assert!(turns < 10, "a few pieces and two commits");
    }
    assert!(changed.try_recv().is_err(), "most of that is not done yet");
    lab.settle();
    assert_eq!(changed.try_recv().unwrap().unwrap(), ActionResult { done: jobs, ..ActionResult::default() });
}

#[test]
fn a_batch_holds_only_so_many_changes_of_one_user() {
    let mut lab = Lab::new();
    let jobs = waiting(&mut lab, 5000);
    let _answer = ask(&mut lab, &jobs, JobAction::Hold);
    while lab.engine.has_work() {
        lab.engine.work();
    }
    let changes = lab.engine.decisions.batch.size();
    assert!((400..800).contains(&changes), "{changes}");
    lab.settle();
}

#[test]
fn cancelling_an_array_starts_none_of_its_jobs() {
    let mut lab = Lab::new();
    lab.attach_gpu(MiB(40_000));
    let jobs = waiting(&mut lab, 1200);
    let first = AttemptId { job: jobs[0], number: 1 };
    assert!(lab.calls().contains(&Call::Start(first)));
    lab.report(Report::Started(first));
    let mut cancelled = ask(&mut lab, &jobs, JobAction::Cancel);
    lab.settle();
    assert_eq!(lab.calls(), [Call::Signal(first, Signal::Terminate)]);
    assert_eq!(cancelled.try_recv().unwrap().unwrap(), ActionResult { done: jobs, ..ActionResult::default() });
    lab.report(ended(first, Exit::Signal(15), ""));
    assert_eq!(lab.calls(), [Call::Acknowledge(first)]);
}

#[test]
fn jobs_that_start_and_end_between_the_pieces_are_cancelled_or_over() {
    let mut lab = Lab::new();
    lab.attach_gpu(MiB(40_000));
    let jobs = waiting(&mut lab, 1200);
    let attempt = |place: usize| AttemptId { job: jobs[place], number: 1 };
    lab.report(Report::Started(attempt(0)));
    // In reverse, so that the next job to start is cancelled late.
    let reversed: Vec<JobId> = jobs.iter().rev().copied().collect();
    let mut cancelled = ask(&mut lab, &reversed, JobAction::Cancel);
    lab.turn();
    assert!(lab.engine.has_work() && cancelled.try_recv().is_err());
    lab.engine.take(Input::Attempt(ended(attempt(0), Exit::Code(0), "")));
    lab.settle();
    assert!(lab.calls().contains(&Call::Signal(attempt(1), Signal::Terminate)), "it started between two pieces");
    let ActionResult { done, not_done, .. } = cancelled.try_recv().unwrap().unwrap();
    assert_eq!((done, not_done.len(), not_done[0].job), (jobs[1..].to_vec(), 1, jobs[0]));
    lab.report(ended(attempt(1), Exit::Signal(15), ""));
    assert_eq!((lab.outcome(jobs[0]), lab.outcome(jobs[1])), (Some(Outcome::Succeeded), Some(Outcome::Cancelled)));
    assert!(jobs.iter().all(|job| lab.state(*job).is_none()));
}

#[test]
fn a_partly_stored_change_reports_the_changed_jobs() {
    let mut lab = Lab::new();
    let jobs = waiting(&mut lab, 5000);
    let mut changed = ask(&mut lab, &jobs, JobAction::Hold);
    lab.turn();
    lab.turn();
    lab.take(Input::Written(Err(WriteError::Full("/state/carma.db".into()))));
    let ActionResult { done, not_done, .. } = changed.try_recv().unwrap().unwrap();
    assert!(!done.is_empty() && done.len() + not_done.len() == jobs.len(), "{} and {}", done.len(), not_done.len());
    assert!(not_done[0].reason.starts_with("nothing was changed: "), "{}", not_done[0].reason);
    let lab = lab.restart(|_| {});
    let is_held = |job: &&JobId| matches!(lab.state(**job), Some(State::Held { .. }));
    assert_eq!(jobs.iter().filter(is_held).copied().collect::<Vec<_>>(), done);
}

#[test]
fn a_task_that_waits_while_the_manager_stops_is_refused() {
    let mut lab = Lab::new();
    let jobs = waiting(&mut lab, 5);
    let mut changed = ask(&mut lab, &jobs, JobAction::Hold);
    lab.engine.condition = crate::engine::state::Condition::Stopping;
    lab.engine.work();
    assert!(changed.try_recv().unwrap().unwrap_err().message.contains("the manager is stopping"));
}
