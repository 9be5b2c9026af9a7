//! Running jobs can be stopped while nothing can be written.

use carma_core::{AttemptId, Signal};
use tokio::sync::oneshot;

use super::lab::{Lab, action_on};
use crate::api::{ActionResult, JobAction, Problem};
use crate::engine::input::Input;
use crate::engine::state::Condition;
use crate::executor::Report;
use crate::executor::fake::Call;
use crate::store::WriteError;

fn running(lab: &mut Lab) -> AttemptId {
    let attempt = lab.submit(0);
    lab.report(Report::Started(attempt));
    lab.calls();
    attempt
}

fn ask_to_cancel(lab: &mut Lab, attempt: AttemptId) -> oneshot::Receiver<Result<ActionResult, Problem>> {
    let (reply, answer) = oneshot::channel();
    lab.take(action_on(vec![attempt.job], JobAction::Cancel, reply));
    answer
}

fn told(answer: &mut oneshot::Receiver<Result<ActionResult, Problem>>) -> String {
    let ActionResult { done, not_done, .. } = answer.try_recv().unwrap().unwrap();
    assert!(done.is_empty());
    not_done[0].reason.clone()
}

#[test]
fn a_cancelled_job_gets_its_signal_even_on_a_full_disk() {
    let mut lab = Lab::new();
    let attempt = running(&mut lab);
    let mut answer = ask_to_cancel(&mut lab, attempt);
    lab.engine.take(Input::Written(Err(WriteError::Full("/state/carma.db".into()))));
    assert_eq!(lab.calls(), [Call::Signal(attempt, Signal::Terminate)]);
    let told = told(&mut answer);
    assert!(told.starts_with("it was signalled, but the cancellation is not stored yet: the disk is full"), "{told}");
}

#[test]
fn a_second_cancellation_on_a_full_disk_kills() {
    let mut lab = Lab::new();
    let attempt = running(&mut lab);
    lab.engine.take(Input::Written(Err(WriteError::Full("/state/carma.db".into()))));
    for signal in [Signal::Terminate, Signal::Kill] {
        let mut answer = ask_to_cancel(&mut lab, attempt);
        assert!(told(&mut answer).contains("not stored yet"));
        assert_eq!(lab.calls(), [Call::Signal(attempt, signal)]);
    }
    lab.engine.condition = Condition::Working;
    lab.engine.record_cancellations();
    lab.settle();
    assert_eq!(lab.calls(), [Call::Signal(attempt, Signal::Terminate)], "it is recorded when there is room");
}

#[test]
fn a_manager_that_is_taken_over_signals_nothing_and_never_tries_again() {
    let mut lab = Lab::new();
    let attempt = running(&mut lab);
    let mut answer = ask_to_cancel(&mut lab, attempt);
    lab.engine.take(Input::Written(Err(WriteError::TakenOver { by: None })));
    assert_eq!(lab.engine.condition, Condition::TakenOver);
    lab.engine.take(Input::Written(Ok(())));
    assert_eq!(lab.calls(), []);
    assert!(told(&mut answer).contains("another manager has taken over"));
    assert_eq!(lab.engine.condition, Condition::TakenOver);
}
