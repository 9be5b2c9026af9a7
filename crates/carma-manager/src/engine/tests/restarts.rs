//! A manager that restarts: attempts are adopted, and not started twice.

use carma_core::{Outcome, Seconds, Signal, State};

use super::lab::{Lab, ended};
use crate::api::JobAction;
use crate::attempt::Exit;
use crate::executor::fake::Call;
use crate::executor::{Adopted, Report};
use crate::units::UnixMillis;

#[test]
fn an_attempt_that_runs_is_adopted_and_its_end_counts() {
    let mut lab = Lab::new();
    let attempt = lab.submit(0);
    lab.report(Report::Started(attempt));
    let ran = Some(Seconds::from_secs(100));
    let mut lab = lab.restart(|executor| executor.adopt_as(attempt, Adopted::Running { ran }));
    lab.settle();
    let calls = lab.calls();
    assert_eq!(calls.last(), Some(&Call::Adopt(vec![attempt])), "it is not started again: {calls:?}");
    let Some(State::Starting(active) | State::Running(active)) = lab.state(attempt.job) else { panic!("it runs") };
    assert!(lab.engine.decisions.now() - active.launched_at >= Seconds::from_secs(100), "its time has gone on");
    lab.report(Report::Started(attempt));
    lab.report(ended(attempt, Exit::Code(0), ""));
    assert_eq!(lab.outcome(attempt.job), Some(Outcome::Succeeded));
}

#[test]
fn the_time_of_an_attempt_continues_when_its_agent_returns() {
    let mut lab = Lab::new();
    let attempt = lab.submit(0);
    lab.report(Report::Started(attempt));
    let later = lab.submit_later(UnixMillis::now().0 / 1000 + 5000);
    // Nothing is known before the agent connects.
    let mut lab = lab.restart(|executor| executor.adopt_as(attempt, Adopted::Starting));
    let ran = |lab: &Lab| {
        let Some(State::Starting(active) | State::Running(active)) = lab.state(attempt.job) else { panic!("it runs") };
        (lab.engine.decisions.now() - active.launched_at).get()
    };
    let begins_in = |lab: &Lab| (lab.engine.decisions.job(later).unwrap().spec.begin.unwrap() - lab.engine.decisions.now()).get();
    assert!(ran(&lab) < 100.0);
    lab.report(Report::Ran { attempt, ran: Seconds::from_secs(500) });
    assert!((500.0..600.0).contains(&ran(&lab)), "{}", ran(&lab));
    assert!((4900.0..5001.0).contains(&begins_in(&lab)), "begin times follow the wall clock: {}", begins_in(&lab));
    // The same agent, after it lost its connection.
    lab.report(Report::Started(attempt));
    lab.report(Report::Ran { attempt, ran: Seconds::from_secs(2000) });
    assert!(ran(&lab) < 600.0);
}

#[test]
fn an_attempt_that_was_never_started_is_started_by_the_next_manager() {
    let mut lab = Lab::new();
    let attempt = lab.submit(0);
    lab.calls();
    let mut lab = lab.restart(|executor| executor.adopt_as(attempt, Adopted::NeverStarted));
    lab.settle();
    assert_eq!(lab.calls(), [Call::Adopt(vec![attempt]), Call::Start(attempt)]);
}

#[test]
fn an_attempt_that_was_to_end_gets_its_signal_again() {
    let mut lab = Lab::new();
    let attempt = lab.submit(0);
    lab.report(Report::Started(attempt));
    lab.act(attempt.job, JobAction::Cancel);
    lab.calls();
    let mut lab = lab.restart(|_| {});
    lab.settle();
    assert_eq!(lab.calls(), [Call::Adopt(vec![attempt]), Call::Signal(attempt, Signal::Terminate)]);
}

#[test]
fn an_end_that_was_acknowledged_is_not_adopted() {
    let mut lab = Lab::new();
    let attempt = lab.submit(0);
    lab.report(ended(attempt, Exit::Code(3), ""));
    assert_eq!(lab.outcome(attempt.job), Some(Outcome::Failed { code: 3 }));
    lab.calls();
    let lab = lab.restart(|_| {});
    assert_eq!(lab.calls(), [Call::Adopt(Vec::new())]);
}
