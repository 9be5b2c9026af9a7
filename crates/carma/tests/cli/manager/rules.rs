//! Queue rules: holds, dependencies, arrays, drained GPUs, MPS, observing.

use std::fs;

use carma_core::{Condition, DeviceId, JobId, Limits, Outcome, ServerId, State};
use carma_manager::api::{JobAction, QueueQuery};
use carma_manager::request::{After, ArrayElement, JobRequest};
use carma_manager::store::{JobFilter, Phase};
use carma_manager::submission::ValidJobs;
use carma_manager::supervise::AttemptFolder;

use super::lab::{Lab, block_on, me, until};

impl Lab {
    fn act(&self, job: JobId, act: JobAction) -> bool {
        block_on(self.handle().act(vec![job], act, "me".to_owned())).unwrap().done == [job]
    }

    fn reason(&self, job: JobId) -> String {
        let queue = block_on(self.handle().queue(QueueQuery::default())).unwrap();
        queue.jobs.into_iter().find(|row| row.id == job).and_then(|row| row.reason).unwrap_or_default()
    }

    pub(crate) fn printed(&self, job: JobId) -> String {
        let attempt = self.job(job).attempts[0].attempt;
        fs::read_to_string(AttemptFolder::of(self.folder(), attempt).output()).unwrap()
    }
}

#[test]
fn held_jobs_wait_for_release_and_dependents_for_their_dependencies() {
    let lab = Lab::new("1xA100-40GB", 1.0, "");
    let mut held = lab.shell_job("true");
    held.schedule.hold = true;
    let held = lab.submit(held);
    let after = |job: JobId, condition| {
        let mut request = lab.shell_job("true");
        request.schedule.after = vec![After { job: job.0.to_string(), condition }];
        request
    };
    let dependent = lab.submit(after(held, Condition::Ok));
    assert_eq!(lab.reason(held), "is held until it is released");
    assert_eq!(lab.reason(dependent), format!("waits for {held}"));
    assert!(lab.act(held, JobAction::Release));
    assert_eq!(lab.outcome(dependent), Outcome::Succeeded);
    assert!(!lab.act(held, JobAction::Hold), "it is over");
    // Finished jobs are known by their outcome.
    assert_eq!(lab.outcome(lab.submit(after(held, Condition::Ok))), Outcome::Succeeded);
    let failed = lab.submit(lab.shell_job("false"));
    let never = lab.submit(after(failed, Condition::Ok));
    assert_eq!(lab.outcome(never), Outcome::DependencyFailed { on: failed, member: None });
    until(|| {
        lab.try_submit(vec![after(failed, Condition::Ok)]).err().filter(|problem| problem.message.contains("failed with exit code 1"))
    });
    assert_eq!(lab.outcome(lab.submit(after(failed, Condition::Any))), Outcome::Succeeded);
    let unknown = lab.try_submit(vec![after(JobId(999), Condition::Any)]).unwrap_err();
    assert_eq!(unknown.message, "it depends on the unknown job 999");
}

#[test]
fn arrays_run_as_many_at_once_as_they_may() {
    let lab = Lab::new("1xA100-40GB", 1.0, "");
    let running = lab.folder().join("running");
    fs::create_dir(&running).unwrap();
    let script = format!("cd {}; touch $$; ls | wc -l; sleep 0.05; rm $$", running.display());
    let member = |index| -> JobRequest {
        let mut request = lab.shell_job(&script);
        request.schedule.at_most = Some(2);
        request.array = Some(ArrayElement { index, array: None, parameters: std::collections::BTreeMap::default() });
        request
    };
    let jobs = lab.try_submit((0..8).map(member).collect()).unwrap();
    for job in &jobs {
        assert_eq!(lab.outcome(*job), Outcome::Succeeded);
        assert!(lab.printed(*job).trim().parse::<u32>().unwrap() <= 2);
    }
    assert_eq!(lab.job(jobs[3]).job.job.spec.array.map(|member| (member.array.0, member.index)), Some((jobs[0].0, 3)));
}

#[test]
fn a_refused_array_has_run_nothing() {
    let lab = Lab::new("2xA100-40GB", 60.0, "[quotas]\ngpus = 1\n");
    let marker = lab.folder().join("ran");
    let member = |gpus| {
        let mut request = lab.shell(&format!("touch {}", marker.display()));
        request.resources.gpus = gpus;
        request
    };
    let refusal = lab.try_submit(vec![member(1), member(1), member(2)]).unwrap_err();
    assert!(refusal.message.contains("quota"), "{refusal:?}");
    // Jobs are launched in order: when this one has run, the first of the array would have run too.
    let next = lab.submit(lab.shell("true"));
    assert_eq!(lab.outcome(next), Outcome::Succeeded);
    assert!(!marker.exists());
    assert_eq!(lab.reader().history(&JobFilter::default(), None, 10).unwrap().len(), 1);
}

#[test]
fn drained_gpus_take_nothing_new_also_after_a_restart() {
    let mut lab = Lab::new("1xA100-40GB", 60.0, "");
    let gpu = DeviceId::gpu(ServerId(0), 0);
    block_on(lab.handle().drain(gpu, true, "me".to_owned())).unwrap();
    lab.stop();
    lab.start();
    let job = lab.submit(lab.shell("true"));
    let why = block_on(lab.handle().why(job)).unwrap();
    assert!(why.text.contains("drained"), "{}", why.text);
    assert!(block_on(lab.handle().gpus()).unwrap()[0].drained);
    block_on(lab.handle().drain(gpu, false, "me".to_owned())).unwrap();
    assert_eq!(lab.outcome(job), Outcome::Succeeded);
    let nowhere = block_on(lab.handle().drain(DeviceId::gpu(ServerId(0), 7), true, "me".to_owned()));
    assert!(nowhere.is_err());
}

#[test]
fn an_observing_manager_only_reports_decisions() {
    let lab = Lab::new("2xA100-40GB", 60.0, "").observing();
    let job = lab.submit(lab.train("--workload efficientnet_cifar100_bs128_20e --seconds 60"));
    let why = until(|| block_on(lab.handle().why(job)).ok().filter(|why| why.text.contains("would start now on s0/gpu")));
    assert!(why.text.ends_with("the manager is observing and starts no jobs"), "{}", why.text);
    assert_eq!(Phase::from(&lab.job(job).job.job.state), Phase::Queued);
    let forecast = block_on(lab.handle().forecast(me(), ValidJobs::new(vec![lab.shell("true")]).unwrap())).unwrap();
    assert!(forecast[0].placement.is_some() || forecast[0].why.is_some());
    assert!(lab.act(job, JobAction::Cancel));
    assert_eq!(lab.outcome(job), Outcome::Cancelled);
}

#[test]
fn jobs_on_gpus_with_mps_are_its_clients() {
    let lab = Lab::new("1xA100-40GB", 60.0, "[manager.gpus]\nmps = [\"all\"]\n");
    let job = lab.submit(lab.shell("echo \"$CUDA_MPS_PIPE_DIRECTORY\""));
    assert_eq!(lab.outcome(job), Outcome::Succeeded);
    let placement = &lab.job(job).attempts[0].placement;
    assert!(matches!(placement.devices[0].limits, Limits::Mps { .. }), "{placement:?}");
    assert!(lab.printed(job).contains("/mps/"), "{}", lab.printed(job));
}

#[test]
fn jobs_of_a_lost_gpu_are_requeued() {
    let lab = Lab::new("2xA100-40GB", 60.0, "");
    let job = lab.submit(lab.train("--workload efficientnet_cifar100_bs128_20e --seconds 600"));
    let first = until(|| match lab.job(job).job.job.state {
        State::Running(active) => Some(active.placement.devices[0].device),
        _ => None,
    });
    let number = u32::from(first.gpu.ordinal);
    let fault = std::process::Command::new(super::lab::program())
        .args(["emu", "fault", "lost", "--gpu", &number.to_string()])
        .env(carma_emu::VARIABLE, lab.machine.folder())
        .output()
        .unwrap();
    assert!(fault.status.success(), "{fault:?}");
    assert_eq!(lab.outcome(job), Outcome::Succeeded, "{:#?}", lab.job(job).events);
    let attempts = lab.job(job).attempts;
    assert!(attempts.len() == 2 && attempts[1].placement.devices[0].device != first, "{attempts:?}");
    assert!(block_on(lab.handle().status()).unwrap().problems.iter().any(|problem| problem.contains("is lost")));
}

#[test]
fn more_than_is_allowed_is_refused() {
    let lab = Lab::new("1xA100-40GB", 1.0, "[manager.limits]\njobs_per_user = 2\ngpus_per_job = 1\nseconds_per_job = 60\n");
    let held = || {
        let mut request = lab.shell_job("true");
        request.schedule.hold = true;
        request
    };
    let refusal = |request: JobRequest| lab.try_submit(vec![request]).unwrap_err().message;
    let mut wide = held();
    wide.resources.gpus = 2;
    assert_eq!(refusal(wide), "the limit is 1 GPUs per job; the job requests 2");
    let mut long = held();
    long.resources.time_limit = Some(carma_core::Seconds::from_secs(61));
    assert_eq!(refusal(long), "the time limit here is at most 60 s; the job requests 61 s");
    lab.submit(held());
    let second = lab.submit(held());
    assert!(refusal(held()).ends_with("has 2 unfinished jobs; the limit is 2"));
    assert!(lab.act(second, JobAction::Cancel));
    until(|| lab.try_submit(vec![held()]).ok());
}
