//! Cores and memory of hosts: booked by running jobs, waited for, kept for the first job.

use carma_core::*;

use crate::lab::{A100, Lab, Launched, gpu, job, launches, secs};

/// A server with this many GPUs, 8 cores and 100,000 MiB of memory.
fn lab(config: Config, gpus: u16) -> Lab {
    let mut lab = Lab { scheduler: Scheduler::new(config), now: Time::from_secs(1000) };
    lab.event(Event::ServerAttached(host(0)));
    (0..gpus).for_each(|ordinal| lab.attach(DeviceSpec::new(gpu(ordinal), A100)));
    lab
}

fn host(server: u32) -> ServerSpec {
    ServerSpec { cores: Some(8), host_memory: Some(MiB(100_000)), ..ServerSpec::new(ServerId(server)) }
}

fn cores(id: u64, gpus: u32, cpus: u32) -> JobSpec {
    JobSpec { gpus, cpus: Some(cpus), exclusive: true, ..job(id) }
}

fn memory(id: u64, memory: u64) -> JobSpec {
    JobSpec { gpus: 0, host_memory: Some(MiB(memory)), ..job(id) }
}

fn available(lab: &mut Lab, memory: u64) -> Vec<Launched> {
    launches(&lab.event(Event::HostMemory { server: ServerId(0), available: MiB(memory) }))
}

fn done(lab: &mut Lab, id: u64) -> Vec<Launched> {
    launches(&lab.exit(id, Verdict::Succeeded))
}

fn why(lab: &Lab, id: u64) -> String {
    lab.scheduler.explain(JobId(id)).unwrap().to_string()
}

#[test]
fn a_job_waits_until_its_cores_are_free() {
    let mut lab = lab(Config::from(Preset::Standard), 3);
    assert_eq!(lab.submit(cores(1, 1, 6)), [(1, vec![0])]);
    assert_eq!(lab.submit(cores(2, 1, 3)), []);
    assert_eq!(lab.obstacles(2, 1), [Obstacle::HostCores { needed: 3, free: 2, all: 8 }]);
    assert_eq!(lab.submit(JobSpec { cpus: None, ..cores(3, 1, 0) }), [(3, vec![2])], "a GPU is kept for the head, and no core is claimed");
    assert_eq!(lab.submit(JobSpec { gpus: 0, ..job(4) }), [(4, vec![])], "jobs that claim nothing are not held up");
    assert_eq!(done(&mut lab, 1), [(2, vec![0])]);
    assert_eq!(lab.scheduler.fleet().servers()[0].host.booked, HostClaim { cores: 3, memory: MiB::ZERO });
}

#[test]
fn host_memory_in_use_is_not_available_and_counts_once() {
    let mut lab = lab(Config::from(Preset::Standard), 0);
    assert_eq!(available(&mut lab, 50_000), []);
    assert_eq!(lab.submit(memory(1, 30_000)), [(1, vec![])]);
    assert_eq!(lab.submit(memory(2, 30_000)), [], "the first has not taken its share yet");
    insta::assert_snapshot!(why(&lab, 2));
    assert_eq!(available(&mut lab, 29_999), [], "of 50,000 the first took 20,001 so far");
    assert_eq!(available(&mut lab, 30_000), [(2, vec![])]);
    assert_eq!(lab.submit(memory(3, 45_000)), []);
    insta::assert_snapshot!(why(&lab, 3));
    done(&mut lab, 1);
    assert_eq!(available(&mut lab, 60_000), [(3, vec![])]);
}

#[test]
fn an_attempt_that_ends_early_releases_its_claimed_host_memory() {
    let mut lab = lab(Config::from(Preset::Standard), 0);
    available(&mut lab, 50_000);
    lab.submit(memory(1, 30_000));
    lab.submit(memory(2, 30_000));
    assert_eq!(done(&mut lab, 1), [(2, vec![])]);
}

#[test]
fn a_claim_beyond_every_host_can_never_start_and_blocks_no_job() {
    let mut lab = lab(Config::from(Preset::Standard), 1);
    assert_eq!(lab.submit(cores(1, 0, 9)), []);
    assert_eq!(lab.submit(cores(2, 1, 9)), []);
    assert_eq!(lab.submit(cores(3, 0, 8)), [(3, vec![])]);
    insta::assert_snapshot!(format!("{}\n{}", why(&lab, 1), why(&lab, 2)));
    let larger = ServerSpec { cores: Some(16), ..host(1) };
    assert_eq!(launches(&lab.event(Event::ServerAttached(larger))), [(1, vec![])], "until there is a larger one");
}

#[test]
fn the_first_job_without_gpus_is_not_starved_by_those_with() {
    let mut lab = lab(Config::from(Preset::Standard), 3);
    assert_eq!(lab.submit(cores(1, 1, 4)), [(1, vec![0])]);
    assert_eq!(lab.submit(cores(2, 0, 6)), []);
    assert_eq!(lab.submit(cores(3, 1, 2)), [], "four cores are free, and job 2 is before it");
    assert_eq!(lab.obstacles(3, 1), [Obstacle::HostReservedForHead { head: JobId(2) }]);
    assert_eq!(lab.submit(cores(4, 0, 1)), [], "nor does it wait for those behind it");
    insta::assert_snapshot!(why(&lab, 4));
    assert_eq!(done(&mut lab, 1), [(3, vec![0]), (2, vec![])]);
}

#[test]
fn the_head_of_the_queue_is_not_starved_by_jobs_without_gpus() {
    for config in [Config::from(Preset::Standard), Config { queue: Config::from(Preset::Paper).queue, ..Config::from(Preset::Standard) }] {
        let mut lab = lab(config, 2);
        assert_eq!(lab.submit(cores(1, 1, 4)), [(1, vec![0])]);
        assert_eq!(lab.submit(cores(2, 1, 6)), []);
        assert_eq!(lab.submit(cores(3, 0, 3)), []);
        insta::allow_duplicates!(insta::assert_snapshot!(why(&lab, 3)));
        assert_eq!(lab.submit(memory(4, 1)), [], "in order among those that claim");
        assert_eq!(done(&mut lab, 1), [(2, vec![0])]);
        assert_eq!(done(&mut lab, 2), [(3, vec![]), (4, vec![])]);
    }
}

#[test]
fn a_job_that_ends_in_time_or_leaves_enough_may_pass_a_head_that_claims() {
    let mut lab = lab(Config::from(Preset::Standard), 2);
    lab.submit(JobSpec { time_limit: Some(secs(100)), ..cores(1, 1, 2) });
    assert_eq!(lab.submit(cores(2, 2, 4)), [], "it waits for a GPU until 1100");
    assert_eq!(lab.submit(cores(3, 0, 3)), [], "six cores are free, four are kept");
    lab.event(Event::JobCancelled { job: JobId(3) });
    assert_eq!(lab.submit(JobSpec { time_limit: Some(secs(100)), ..cores(4, 0, 3) }), [(4, vec![])]);
    assert_eq!(lab.submit(cores(5, 0, 3)), [], "three are free");
}

#[test]
fn claims_choose_the_server() {
    let mut lab = lab(Config::from(Preset::Standard), 1);
    lab.event(Event::ServerAttached(host(1)));
    let other = DeviceId::gpu(ServerId(1), 0);
    lab.attach(DeviceSpec::new(other, A100));
    lab.submit(cores(1, 0, 5));
    lab.submit(cores(2, 1, 5));
    let active = lab.state(2).active().unwrap();
    assert_eq!((active.placement.server, active.placement.devices[0].device), (ServerId(1), other));
    assert_eq!(lab.submit(JobSpec { may_span_servers: true, ..cores(3, 2, 4) }), []);
    assert_eq!(done(&mut lab, 2), [], "either server may become the one it is launched on");
    assert_eq!(done(&mut lab, 1), [(3, vec![0, 0])]);
}

#[test]
fn claims_are_booked_for_jobs_handed_back() {
    let mut before = lab(Config::from(Preset::Standard), 1);
    before.submit(cores(1, 1, 6));
    before.submit(cores(2, 0, 2));
    before.submit(cores(3, 0, 2));
    let mut after = lab(Config::from(Preset::Standard), 1);
    let jobs = before.scheduler.jobs().cloned().collect();
    assert_eq!(after.event(Event::JobsRestored { jobs }), []);
    let booked = |lab: &Lab| lab.scheduler.fleet().servers()[0].host.booked;
    assert_eq!(booked(&after), booked(&before));
    assert_eq!(done(&mut after, 2), [(3, vec![])]);
}

#[test]
fn a_host_reservation_survives_retries_of_jobs_that_are_too_large() {
    let mut lab = lab(Config::from(Preset::Standard), 1);
    assert_eq!(lab.submit(cores(1, 0, 4)), [(1, vec![])]);
    assert_eq!(lab.submit(cores(2, 0, 9)), []);
    assert!(matches!(lab.scheduler.explain(JobId(2)).unwrap().reason, WaitReason::TooLargeForHosts { .. }));
    assert_eq!(lab.submit(cores(3, 0, 6)), []);
    assert_eq!(lab.submit(cores(4, 1, 4)), [], "two of the four cores that are free are kept for job 3");
    let same = Settings::from(lab.scheduler.config());
    assert_eq!(launches(&lab.event(Event::ConfigurationChanged(Box::new(same)))), []);
    assert_eq!(done(&mut lab, 1), [(3, vec![])]);
}
