//! A job from its submission to its outcome.

use carma_core::{Outcome, State, Verdict};
use carma_manager::api::{JobAction, QueueQuery};
use carma_manager::submission::ValidJobs;
use carma_manager::supervise::AttemptFolder;
use std::fs;
use std::path::Path;

use super::crash::supervisors;
use super::lab::{Lab, block_on, until};

#[test]
fn a_job_runs_and_its_result_is_found() {
    let lab = Lab::new("1xA100-40GB", 1.0, "");
    let job = lab.submit(lab.shell_job("echo hello; echo oh >&2"));
    assert_eq!(lab.outcome(job), Outcome::Succeeded);
    let history = lab.job(job);
    let attempt = history.attempts[0].attempt;
    let folder = AttemptFolder::of(lab.folder(), attempt);
    assert_eq!(fs::read_to_string(folder.output()).unwrap(), "hello\n");
    assert_eq!(fs::read_to_string(folder.errors()).unwrap(), "oh\n");
    let kinds: Vec<String> = history.events.iter().map(|stored| stored.event.event.kind()).collect();
    assert_eq!(kinds, ["submitted", "launched", "ended", "finished"]);
}

#[test]
fn every_end_has_a_reason() {
    let lab = Lab::new("1xA100-40GB", 1.0, "");
    let failed = lab.submit(lab.shell_job("exit 7"));
    let killed = lab.submit(lab.shell_job("kill -9 $$"));
    let mut nowhere = lab.shell_job("true");
    nowhere.directory = "/nonexistent".into();
    let nowhere = lab.submit(nowhere);
    let cancelled = lab.submit(lab.shell_job("sleep 1000"));
    until(|| matches!(lab.job(cancelled).job.job.state, State::Running(_)).then_some(()));
    assert_eq!(block_on(lab.handle().act(vec![cancelled], JobAction::Cancel, "me".to_owned())).unwrap().done, [cancelled]);
    let mut late = lab.shell_job("sleep 1000");
    late.resources.time_limit = Some(carma_core::Seconds::new(0.2).unwrap());
    let late = lab.submit(late);
    assert_eq!(lab.outcome(failed), Outcome::Failed { code: 7 });
    assert_eq!(lab.outcome(killed), Outcome::Failed { code: 137 });
    assert!(matches!(lab.outcome(nowhere), Outcome::CouldNotStart { .. }));
    assert_eq!(lab.outcome(cancelled), Outcome::Cancelled);
    assert_eq!(lab.outcome(late), Outcome::TimeLimit);
    assert_eq!(block_on(lab.handle().queue(QueueQuery::default())).unwrap().jobs, []);
}

#[test]
fn a_training_job_is_measured_and_remembered() {
    let lab = Lab::new("1xA100-40GB", 60.0, "");
    let request = lab.train("--workload efficientnet_cifar100_bs128_20e --memory 5GiB --seconds 60");
    let first = lab.submit(request.clone());
    assert_eq!(lab.outcome(first), Outcome::Succeeded);
    let end = lab.job(first).attempts[0].end.clone().unwrap();
    assert!(end.measured.peaks[0].0 >= 4 * 1024, "{end:?}");
    assert!(end.measured.energy.is_some_and(|energy| energy.0 > 100.0), "{end:?}");
    let second = lab.submit(request);
    let estimated = lab.job(second).job.job.spec.memory.estimated;
    assert!(estimated.is_some_and(|estimate| estimate.get(0).unwrap().expected.0 >= 4 * 1024));
}

#[test]
fn a_described_model_is_estimated_before_its_job_runs() {
    let lab = Lab::new("1xA100-40GB", 60.0, "");
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../carma-estimate/tests/fixtures/resnet50/torchsummary.txt");
    let mut request = lab.shell("true");
    (request.hints.model, request.hints.batch) = (Some(model.into()), Some(64));
    let forecast = block_on(lab.handle().forecast(super::lab::me(), ValidJobs::new(vec![request.clone()]).unwrap())).unwrap();
    let expected = forecast[0].estimate.expected.unwrap();
    assert!(expected.0 > 4000 && forecast[0].estimate.source.as_deref() == Some("static"), "{forecast:?}");
    let job = lab.submit(request.clone());
    assert_eq!(lab.outcome(job), Outcome::Succeeded);
    let history = lab.job(job);
    assert_eq!(history.job.job.spec.memory.estimated.unwrap().get(0).unwrap().expected, expected);
    assert!(history.attempts[0].placement.devices[0].reserved > expected);
    // A job without an estimate runs too.
    request.hints.model = Some("/nonexistent".into());
    let job = lab.submit(request);
    assert_eq!(lab.outcome(job), Outcome::Succeeded);
    let estimated = lab.job(job).events.into_iter().find(|stored| stored.event.event.kind() == "estimated").unwrap();
    assert!(estimated.event.event.parts().1["notes"][0].as_str().unwrap().contains("/nonexistent"), "{estimated:?}");
}

#[test]
fn an_out_of_memory_job_recovers_and_the_log_replays() {
    let mut lab = Lab::new("2xA100-40GB", 60.0, "");
    let large = lab.train("--workload efficientnet_cifar100_bs128_20e --memory 30GiB --seconds 120");
    let first = lab.submit(large.clone());
    let second = lab.submit(large.clone());
    let third = lab.submit(large);
    for job in [first, second, third] {
        assert_eq!(lab.outcome(job), Outcome::Succeeded, "{:?}", lab.job(job).events);
    }
    let verdicts: Vec<Verdict> =
        [first, second, third].iter().flat_map(|job| lab.job(*job).attempts).map(|attempt| attempt.end.unwrap().verdict).collect();
    assert!(verdicts.contains(&Verdict::OutOfMemory), "{verdicts:?}");
    lab.stop();
    let log = std::io::BufReader::new(fs::File::open(lab.record()).unwrap());
    let (events, _) = carma_core::replay(log).unwrap();
    assert!(events > 10);
}

#[test]
fn running_jobs_continue_without_a_manager() {
    let mut lab = Lab::new("1xA100-40GB", 1.0, "");
    let [gate, end] = ["gate", "end"].map(|name| lab.folder().join(name));
    let script = |file: &Path, then: &str| format!("while ! test -e {}; do sleep 0.01; done; {then}", file.display());
    let running = lab.submit(lab.shell_job(&script(&gate, "echo done")));
    let ends_meanwhile = lab.submit(lab.shell_job(&script(&end, "exit 3")));
    let waiting = lab.submit(lab.shell("true"));
    until(|| matches!(lab.job(ends_meanwhile).job.job.state, State::Running(_)).then_some(()));
    let folder = AttemptFolder::of(lab.folder(), lab.job(ends_meanwhile).attempts[0].attempt);
    // A job without GPUs counts as running before its supervisors exist, and a manager that stops does not start them.
    until(|| supervisors(&folder));
    lab.stop();
    fs::write(end, "").unwrap();
    until(|| folder.ended().unwrap());
    lab.start();
    assert_eq!(lab.outcome(ends_meanwhile), Outcome::Failed { code: 3 });
    assert_eq!(lab.outcome(waiting), Outcome::Succeeded);
    assert!(matches!(lab.job(running).job.job.state, State::Running(_)));
    fs::write(gate, "").unwrap();
    assert_eq!(lab.outcome(running), Outcome::Succeeded);
    assert_eq!(lab.job(running).attempts.len(), 1);
}

#[test]
fn a_job_that_its_user_holds_stays_held_when_it_is_estimated() {
    let lab = Lab::new("1xA100-40GB", 1.0, "");
    let model = lab.folder().join("net.model");
    fs::write(&model, "").unwrap();
    let mut request = lab.shell("true");
    (request.hints.model, request.schedule.hold) = (Some(model), true);
    let job = lab.submit(request);
    until(|| lab.job(job).events.iter().any(|stored| stored.event.event.kind() == "estimated").then_some(()));
    assert!(matches!(lab.job(job).job.job.state, State::Held { .. }));
    assert_eq!(block_on(lab.handle().act(vec![job], JobAction::Release, "me".to_owned())).unwrap().done, [job]);
    assert_eq!(lab.outcome(job), Outcome::Succeeded);
}
