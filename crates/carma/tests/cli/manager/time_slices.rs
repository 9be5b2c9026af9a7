//! Time slices: a preempted job resumes from its checkpoint. Corrections: a job with too much interference is moved.

use std::fs;

use carma_core::{Fraction, JobId, Outcome, RequeueReason, StopReason, Verdict};
use carma_manager::api::JobAction;
use carma_manager::request::{JobCommand, JobRequest};

use super::lab::{Lab, block_on, until};

/// The script that the documentation shows.
fn documented() -> String {
    let text = include_str!("../../../../../docs/time-slices.md");
    let (_, rest) = text.split_once("```python\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

fn file(lab: &Lab, job: JobId, attempt: u32, name: &str) -> String {
    fs::read_to_string(lab.folder().join(format!("attempts/{}/{attempt}/{name}", job.0))).unwrap_or_default()
}

/// Waits until the first attempt of a job is further than this.
fn until_further(lab: &Lab, job: JobId, than: f64) {
    until(|| file(lab, job, 1, "progress").parse::<f64>().ok().filter(|done| *done > than));
}

/// Why the job was put back, each time.
fn put_back(lab: &Lab, job: JobId) -> Vec<RequeueReason> {
    let requeued = lab.job(job).events.into_iter().filter(|stored| stored.event.event.kind() == "requeued");
    requeued.map(|stored| serde_json::from_value(stored.event.event.parts().1["reason"].clone()).unwrap()).collect()
}

#[test]
fn a_time_slice_ends_and_the_documented_script_resumes_from_its_checkpoint() {
    let rules = "policy = \"exclusive\"\n[time_slices]\nlength = 1\n[queue]\ngrace = 1200\n";
    let lab = Lab::new("1xA100-40GB", 60.0, rules);
    let words = ["python3", "-c", &documented()].map(str::to_owned).to_vec();
    let mut long = JobRequest { command: JobCommand::Program(words), may_checkpoint: true, ..lab.shell("") };
    long.environment.insert("STEPS".to_owned(), "400".to_owned());
    let long = lab.submit(long);
    // Its time slice ends at once, and it keeps running while no job waits.
    until_further(&lab, long, 0.01);
    let short = lab.submit(lab.shell("true"));
    assert_eq!(lab.outcome(short), Outcome::Succeeded);
    assert_eq!(lab.outcome(long), Outcome::Succeeded);
    let history = lab.job(long);
    assert_eq!(put_back(&lab, long), [RequeueReason::TimeSliceOver]);
    let verdicts: Vec<Verdict> = history.attempts.into_iter().map(|attempt| attempt.end.unwrap().verdict).collect();
    assert_eq!(verdicts, [Verdict::Failed { code: 143 }, Verdict::Succeeded]);
    let message = file(&lab, long, 2, "stdout.log");
    let begun: u32 = message.strip_prefix("begins after ").and_then(|rest| rest.split(' ').next()).unwrap().parse().unwrap();
    assert!(begun > 0 && begun < 400, "{message}");
    let saved = history.job.job.saved_progress.unwrap().get();
    assert!(saved > 0.0 && saved <= f64::from(begun) / 400.0, "{saved} of what {message}");
    assert!(message.ends_with("done after 400 steps\n"), "{message}");
}

#[test]
fn after_a_crash_a_job_resumes_from_a_checkpoint_of_its_own() {
    let lab = Lab::new("1xA100-40GB", 60.0, "");
    let crash = lab.folder().join("crash");
    let script = format!(
        "test -n \"$CARMA_RESUME\" && exec cat $CARMA_CHECKPOINT_DIR/state; echo 0.5 > $CARMA_PROGRESS; sleep 0.2; \
         echo half > $CARMA_CHECKPOINT_DIR/state; while ! test -e {}; do sleep 0.02; done; echo 0.75 > $CARMA_PROGRESS; sleep 0.2; exit 1",
        crash.display()
    );
    let mut request = lab.shell_job(&script);
    request.may_checkpoint = true;
    request.retries.failure = 1;
    let job = lab.submit(request);
    // The checkpoint is recorded while it runs, and once.
    let saved = until(|| lab.job(job).job.job.checkpointed_at);
    fs::write(&crash, "").unwrap();
    assert_eq!(lab.outcome(job), Outcome::Succeeded);
    assert_eq!(file(&lab, job, 2, "stdout.log"), "half\n");
    let known = lab.job(job).job.job;
    assert_eq!((known.checkpointed_at, known.saved_progress), (Some(saved), Some(Fraction::clamped(0.5))));
}

#[test]
fn a_job_slowed_beyond_the_forecast_is_moved_and_the_pair_remembered() {
    let rules = "[correction]\nslowdown = 1.5\n[queue]\ngrace = 1200\n[gate]\nobserve = 1\n[screen]\nenabled = false\n[window]\nperiod = 5\n[manager.gpus]\nperiod = 5\n";
    let lab = Lab::new("1xA100-40GB", 60.0, rules);
    let train = "emu train --workload efficientnet_cifar100_bs128_20e --memory 4GiB --seconds 100000";
    // It is fast until the file `slow` exists, and ends when `end` exists.
    let (slow, end) = (lab.folder().join("slow"), lab.folder().join("end"));
    let script = format!(
        "{carma} {train} & n=0; while ! test -e {end}; do test -e {slow} && n=$((n+1)) || n=$((n+200)); \
         printf '0.%06d' $n > $CARMA_PROGRESS; sleep 0.05; done; kill $!; wait; exit 0",
        carma = super::lab::program().display(),
        slow = slow.display(),
        end = end.display()
    );
    let victim = lab.submit(lab.shell(&script));
    // More than a minute of its own, by the emulated clock.
    until_further(&lab, victim, 0.016);
    let checkpoint = lab.folder().join("checkpoint.json");
    let mut guest = lab
        .train(&format!("--workload efficientnet_cifar100_bs128_20e --memory 4GiB --seconds 20000 --checkpoint {}", checkpoint.display()));
    guest.may_checkpoint = true;
    let guest = lab.submit(guest);
    until(|| lab.job(guest).job.job.state.active().map(|_| ()));
    fs::write(&slow, "").unwrap();
    until(|| (put_back(&lab, guest) == [RequeueReason::Moved]).then_some(()));
    assert!(checkpoint.exists(), "it has written how far it was");
    let signalled = lab.job(guest).events.into_iter().find(|stored| stored.event.event.kind() == "signalled").unwrap();
    assert_eq!(serde_json::from_value::<StopReason>(signalled.event.event.parts().1["reason"].clone()).unwrap(), StopReason::Moved);
    assert!(lab.job(guest).job.job.apart_from.contains(&victim), "and is not put beside it again");
    fs::write(&end, "").unwrap();
    assert_eq!(lab.outcome(victim), Outcome::Succeeded);
    until(|| (lab.job(guest).attempts.len() == 2).then_some(()));
    let sensitivity = |job| lab.job(job).job.job.spec.interference.sensitivity;
    assert!(sensitivity(victim) > 1.2, "{}", sensitivity(victim));
    let again = lab.submit(lab.shell(&script));
    assert!((sensitivity(again) / sensitivity(victim) - 1.0).abs() < 1e-6, "the next run of the same job comes with it");
    block_on(lab.handle().act(vec![guest, again], JobAction::Cancel, "me".to_owned())).unwrap();
    assert_eq!(lab.outcome(guest), Outcome::Cancelled);
}
