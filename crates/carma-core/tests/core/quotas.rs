//! Quotas: what a user may have at once, and that no other user waits for it.

use carma_core::*;

use crate::lab::{Lab, Launched, job, known, launches};

fn settings(json: &str) -> Settings {
    Settings { preset: Some(Preset::Standard), ..serde_json::from_str(json).unwrap() }
}

fn lab(json: &str, gpus: u16) -> Lab {
    Lab::new(settings(json).check().unwrap(), gpus)
}

fn of(user: u32, spec: JobSpec) -> JobSpec {
    JobSpec { user: UserId(user), exclusive: true, ..spec }
}

fn done(lab: &mut Lab, id: u64) -> Vec<Launched> {
    launches(&lab.exit(id, Verdict::Succeeded))
}

fn reason(lab: &Lab, id: u64) -> WaitReason {
    lab.scheduler.explain(JobId(id)).unwrap().reason
}

#[test]
fn a_user_over_quota_waits_and_others_pass_in_any_order() {
    for backfill in [0, 100] {
        let mut lab = lab(&format!(r#"{{"quotas":{{"jobs":1}},"queue":{{"backfill":{backfill}}}}}"#), 4);
        assert_eq!(lab.submit(of(1, job(1))), [(1, vec![0])]);
        assert_eq!(lab.submit(of(1, job(2))), []);
        assert_eq!(lab.submit(of(1, JobSpec { gpus: 0, ..job(3) })), [], "a job without GPUs is a job");
        assert_eq!(lab.submit(of(2, job(4))), [(4, vec![1])]);
        assert_eq!(lab.scheduler.queue().count(), 0, "it is not the head");
        assert_eq!(reason(&lab, 2), WaitReason::Quota { over: OverQuota::Jobs { limit: 1, used: 1 } });
        insta::allow_duplicates!(insta::assert_snapshot!(lab.scheduler.explain(JobId(3)).unwrap()));
        assert_eq!(done(&mut lab, 1), [(2, vec![0])]);
        assert_eq!(done(&mut lab, 2), [(3, vec![])]);
    }
}

#[test]
fn gpus_count_for_each_job_and_a_wide_job_is_not_starved_by_narrow_ones() {
    let mut lab = lab(r#"{"quotas":{"gpus":3}}"#, 4);
    assert_eq!(lab.submit(of(1, job(1))), [(1, vec![0])]);
    assert_eq!(lab.submit(of(1, JobSpec { gpus: 3, ..job(2) })), []);
    assert_eq!(lab.submit(of(1, job(3))), [], "turns go in order");
    assert_eq!(reason(&lab, 2), WaitReason::Quota { over: OverQuota::Gpus { needed: 3, limit: 3, used: 1 } });
    assert_eq!(reason(&lab, 3), WaitReason::Quota { over: OverQuota::Gpus { needed: 1, limit: 3, used: 4 } });
    assert_eq!(done(&mut lab, 1), [(2, vec![0, 1, 2])]);
    assert_eq!(done(&mut lab, 2), [(3, vec![0])]);
    let wide = Event::JobSubmitted(Box::new(of(1, JobSpec { gpus: 4, ..job(4) })));
    assert_eq!(lab.refused(wide), "job 4 can never start: its user's quota is 3 GPUs at once, 4 needed");
}

#[test]
fn jobs_submitted_together_are_accepted_together_or_not_at_all() {
    let mut lab = lab(r#"{"quotas":{"gpus":2}}"#, 4);
    let narrow = |id| of(1, job(id));
    let submitted = |jobs: &[JobSpec]| Event::JobsSubmitted { jobs: jobs.to_vec() };
    // Each of these would start at once if it were submitted alone.
    let over_quota = submitted(&[narrow(1), narrow(2), JobSpec { gpus: 3, ..narrow(3) }]);
    assert_eq!(lab.refused(over_quota), "job 3 can never start: its user's quota is 2 GPUs at once, 3 needed");
    assert!(lab.refused(submitted(&[narrow(1), narrow(1)])).contains("job 1"), "an id is used once");
    let after_unknown = Dependency { job: JobId(9), condition: Condition::Ok };
    lab.refused(submitted(&[narrow(1), JobSpec { dependencies: vec![after_unknown], ..narrow(2) }]));
    assert_eq!(launches(&lab.event(submitted(&[narrow(1), narrow(2), narrow(3)]))), [(1, vec![0]), (2, vec![1])]);
}

#[test]
fn reserved_memory_counts() {
    let mut lab = lab(r#"{"quotas":{"memory":50000}}"#, 3);
    let shared = |id, memory| JobSpec { exclusive: false, ..of(1, known(id, memory)) };
    lab.submit(shared(1, 30_000));
    assert_eq!(lab.submit(shared(2, 30_000)), []);
    assert_eq!(
        reason(&lab, 2),
        WaitReason::Quota { over: OverQuota::Memory { needed: MiB(30_000), limit: MiB(50_000), used: MiB(30_000) } }
    );
    assert_eq!(done(&mut lab, 1), [(2, vec![0])]);
    assert_eq!(lab.submit(of(1, job(3))), [], "it would get a whole GPU");
}

#[test]
fn a_job_that_climbs_beyond_its_quota_fails() {
    let mut lab = lab(r#"{"quotas":{"memory":20000},"recovery":{"ladder":[{"add":4096},"whole_gpu"]}}"#, 1);
    lab.submit(JobSpec { user: UserId(1), ..known(1, 10_000) });
    assert_eq!(launches(&lab.exit(1, Verdict::OutOfMemory)), [(1, vec![0])], "it had 11,024 and gets 15,120");
    lab.exit(1, Verdict::OutOfMemory);
    assert_eq!(lab.outcome(1), &Outcome::OutOfMemory);
}

#[test]
fn a_user_can_have_another_quota() {
    let mut lab = lab(r#"{"quotas":{"jobs":1,"gpus":2,"users":[{"uid":7,"jobs":2},{"uid":8,"jobs":0,"gpus":0}]}}"#, 4);
    let all = |lab: &mut Lab, user: u32| (0..3).filter(|n| !lab.submit(of(user, job(u64::from(user * 10 + n)))).is_empty()).count();
    assert_eq!(all(&mut lab, 6), 1);
    assert_eq!(all(&mut lab, 7), 2);
    let quota = |user| lab.scheduler.config().quotas.of(UserId(user));
    assert_eq!(quota(7), Quota { jobs: Some(2), gpus: Some(2), memory: None });
    assert_eq!(quota(8), Quota::default());
}

#[test]
fn a_lowered_quota_stops_no_job_and_a_raised_one_starts_waiting_jobs() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 4);
    let configure = |json: &str, lab: &mut Lab| launches(&lab.event(Event::ConfigurationChanged(Box::new(settings(json)))));
    for id in 1..=3 {
        lab.submit(of(1, job(id)));
    }
    assert_eq!(configure(r#"{"quotas":{"jobs":2}}"#, &mut lab), []);
    assert_eq!(lab.submit(of(1, job(4))), []);
    assert_eq!(done(&mut lab, 1), [], "two of two run");
    assert_eq!(configure(r#"{"quotas":{"jobs":3}}"#, &mut lab), [(4, vec![0])]);
    assert_eq!(lab.submit(of(1, JobSpec { gpus: 2, ..job(5) })), []);
    assert_eq!(configure(r#"{"quotas":{"gpus":1}}"#, &mut lab), []);
    assert_eq!(reason(&lab, 5), WaitReason::Quota { over: OverQuota::Gpus { needed: 2, limit: 1, used: 0 } }, "beyond it, and says so");
    assert_eq!(configure("{}", &mut lab), [], "one GPU is free");
    assert_eq!(done(&mut lab, 2), [(5, vec![1, 3])]);
}

#[test]
fn quotas_and_arrays_count_running_jobs_before_any_job_gets_a_turn_after_a_restart() {
    let config = || settings(r#"{"quotas":{"jobs":1}}"#).check().unwrap();
    let member = |id| JobSpec { array: Some(ArrayMember { array: ArrayId(1), index: 0, at_most: Some(1) }), ..of(1, job(id)) };
    let mut before = Lab::new(config(), 2);
    before.submit(JobSpec { hold: true, ..member(1) });
    before.submit(member(2));
    before.event(Event::JobReleased { job: JobId(1) });
    assert!(before.state(2).active().is_some() && before.state(1).waiting().is_some());
    let mut after = Lab::new(config(), 2);
    let jobs = before.scheduler.jobs().cloned().collect();
    assert_eq!(after.event(Event::JobsRestored { jobs }), []);
    assert_eq!(after.scheduler.queue().count(), 0, "job 1 was first, but job 2 runs");
    assert_eq!(done(&mut after, 2), [(1, vec![0])]);
}

#[test]
fn bad_quotas_are_refused() {
    let wrong = |json: &str| settings(json).check().unwrap_err().to_string();
    assert_eq!(wrong(r#"{"quotas":{"gpus":-1}}"#), "quotas.gpus = -1 is not allowed: give a whole number from 0 to 1000000");
    assert_eq!(
        wrong(r#"{"quotas":{"users":[{"uid":1,"jobs":0.5}]}}"#),
        "quotas.users[0].jobs = 0.5 is not allowed: give a whole number from 0 to 1000000"
    );
    assert_eq!(
        wrong(r#"{"quotas":{"users":[{"uid":1},{"uid":1}]}}"#),
        "quotas.users[1].uid = 1 is not allowed: give a list with each user at most once"
    );
}

#[test]
fn quotas_written_out_in_full_are_themselves() {
    let config = settings(r#"{"quotas":{"jobs":4,"users":[{"uid":7,"memory":9000}]}}"#).check().unwrap();
    let written = serde_json::to_string(&Settings::from(&config)).unwrap();
    assert_eq!(settings(&written).check().unwrap(), config);
}
