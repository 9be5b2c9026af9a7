//! Attempts, from the decision to launch them to the verdict.

use carma_core::{AttemptId, MiB, Outcome, Signal, State};

use super::lab::{Lab, ended};
use crate::api::JobAction;
use crate::attempt::Exit;
use crate::executor::Report;
use crate::executor::fake::Call;

/// The one after it.
fn next(attempt: AttemptId) -> AttemptId {
    AttemptId { number: attempt.number + 1, ..attempt }
}

#[test]
fn nothing_is_started_or_answered_before_it_is_on_the_disk() {
    let mut lab = Lab::new();
    let mut answer = lab.ask_for_job(0);
    lab.engine.flush();
    assert!(answer.try_recv().is_err(), "it is not answered");
    assert_eq!(lab.calls(), [Call::Adopt(Vec::new())], "and not started");
    lab.settle();
    let job = answer.try_recv().unwrap().unwrap().jobs[0];
    assert_eq!(lab.calls(), [Call::Start(AttemptId { job, number: 1 })]);
}

#[test]
fn an_attempt_that_succeeds_ends_its_job_and_is_acknowledged() {
    let mut lab = Lab::new();
    let attempt = lab.submit(0);
    lab.report(Report::Started(attempt));
    assert!(matches!(lab.state(attempt.job), Some(State::Starting(_) | State::Running(_))));
    lab.calls();
    lab.report(ended(attempt, Exit::Code(0), ""));
    assert_eq!(lab.calls(), [Call::Acknowledge(attempt)]);
    assert_eq!(lab.outcome(attempt.job), Some(Outcome::Succeeded));
    assert_eq!(lab.state(attempt.job), None, "the core has forgotten it");
    lab.report(ended(attempt, Exit::Code(1), ""));
    assert_eq!(lab.outcome(attempt.job), Some(Outcome::Succeeded), "an end that is reported again changes nothing");
}

#[test]
fn a_job_that_runs_out_of_gpu_memory_is_started_again_with_more() {
    let mut lab = Lab::new();
    lab.attach_gpu(MiB(40_000));
    let attempt = lab.submit(1);
    assert!(lab.calls().contains(&Call::Start(attempt)), "{:?}", lab.engine.view().why(attempt.job).map(|why| why.text));
    lab.report(Report::Started(attempt));
    let error = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 39.06 GiB";
    lab.report(ended(attempt, Exit::Code(1), error));
    assert_eq!(lab.calls(), [Call::Acknowledge(attempt), Call::Start(next(attempt))]);
    let Some(State::Starting(active)) = lab.state(attempt.job) else { panic!("it starts again") };
    let before = &lab.engine.decisions.job(attempt.job).unwrap().climb;
    assert!(before.floor > MiB::ZERO && active.attempt == next(attempt));
}

#[test]
fn an_attempt_that_cannot_be_started_is_judged_without_having_run() {
    let mut lab = Lab::new();
    let attempt = lab.submit(0);
    lab.calls();
    let reason = "user ada is no longer known here".to_owned();
    lab.report(Report::NotStarted { attempt, reason: reason.clone() });
    assert_eq!(lab.calls(), [Call::Acknowledge(attempt)]);
    assert_eq!(lab.outcome(attempt.job), Some(Outcome::CouldNotStart { reason }));
}

#[test]
fn a_delayed_attempt_keeps_its_place_and_is_reported() {
    let mut lab = Lab::new();
    let attempt = lab.submit(0);
    lab.report(Report::Delayed { attempt, reason: "the disk is full".to_owned() });
    assert!(lab.state(attempt.job).is_some_and(|state| state.active().is_some()));
    let delayed = |lab: &Lab| lab.engine.view().status().problems.iter().any(|problem| problem.contains("the disk is full"));
    assert!(delayed(&lab));
    lab.report(Report::Started(attempt));
    assert!(!delayed(&lab));
}

#[test]
fn a_cancelled_attempt_gets_a_signal_once_that_is_on_the_disk() {
    let mut lab = Lab::new();
    let attempt = lab.submit(0);
    lab.report(Report::Started(attempt));
    lab.calls();
    lab.act(attempt.job, JobAction::Cancel);
    assert_eq!(lab.calls(), [Call::Signal(attempt, Signal::Terminate)]);
    lab.report(ended(attempt, Exit::Signal(15), ""));
    assert_eq!(lab.outcome(attempt.job), Some(Outcome::Cancelled));
}

#[test]
fn an_attempt_without_an_order_is_killed() {
    let mut lab = Lab::new();
    lab.calls();
    let attempt = AttemptId { job: carma_core::JobId(77), number: 1 };
    lab.report(Report::Started(attempt));
    assert_eq!(lab.calls(), [Call::Signal(attempt, Signal::Kill)]);
}
