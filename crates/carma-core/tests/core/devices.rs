//! Admission to devices: gates, reservations, foreign processes, modes, drained and lost GPUs.

use carma_core::*;

use crate::lab::{A100, Lab, gpu, job, known, launches, secs};

fn foreign(lab: &mut Lab, ordinal: u16, memory: Option<u64>) -> Vec<Action> {
    let process = ProcessUse { owner: Owner::Foreign { pid: 4242 }, memory: memory.map(MiB) };
    lab.event(Event::ProcessesSeen { device: gpu(ordinal), processes: vec![process] })
}

#[test]
fn the_gate_opens_after_30_seconds_of_observation() {
    let mut lab = Lab::with_policy(Preset::Paper, "magm", 1);
    lab.submit(known(1, 1_000));
    assert_eq!(lab.submit(known(2, 1_000)), []);
    assert_eq!(lab.wait(600), [], "never seen, never open: the published gate has no end");
    assert_eq!(lab.obstacles(2, 0), [Obstacle::GateClosed { behind: lab.attempt(1), until: None }]);
    lab.seen(1, 1_000);
    assert_eq!(lab.wait(30), [], "seen for 30 s exactly");
    assert_eq!(lab.scheduler.next_wakeup(), Some(lab.now + Seconds::TICK));
    assert_eq!(lab.wait(1), [(2, vec![0])]);
}

#[test]
fn the_gate_opens_when_the_new_job_ends() {
    let mut lab = Lab::with_policy(Preset::Paper, "magm", 1);
    lab.submit(known(1, 1_000));
    lab.submit(known(2, 1_000));
    assert_eq!(launches(&lab.exit(1, Verdict::Failed { code: 1 })), [(2, vec![0])]);
}

#[test]
fn the_gate_opens_after_a_timeout_if_the_new_job_is_never_seen() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(known(1, 1_000));
    lab.submit(known(2, 1_000));
    assert_eq!(lab.wait(119), []);
    assert_eq!(lab.wait(1), [(2, vec![0])]);
}

#[test]
fn reserved_memory_counts_before_it_is_used() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(known(1, 30_000));
    lab.settle(1, 500);
    // 40,960 - 512 - 30,000 = 10,448 available, although the GPU is all but empty.
    assert_eq!(lab.submit(known(2, 9_425)), [], "9,425 + 1,024 is 1 MiB too much");
    assert_eq!(lab.obstacles(2, 0), [Obstacle::Memory { needed: MiB(10_449), available: MiB(10_448) }]);
    lab.event(Event::JobCancelled { job: JobId(2) });
    assert_eq!(lab.submit(known(3, 9_424)), [(3, vec![0])]);
}

#[test]
fn published_presets_reserve_nothing() {
    let mut lab = Lab::with_policy(Preset::Paper, "magm", 1);
    lab.submit(known(1, 30_000));
    lab.settle(1, 500);
    lab.load(0, 500, 0.1);
    assert_eq!(lab.submit(known(2, 30_000)), [(2, vec![0])], "as published: only readings count, and this will end badly");
}

#[test]
fn a_job_that_uses_more_than_reserved_counts_with_what_it_uses() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(known(1, 10_000));
    lab.settle(1, 25_000);
    lab.load(0, 25_300, 0.1);
    let device = lab.scheduler.fleet().device(gpu(0)).unwrap();
    assert_eq!(device.counted_as_used(true), MiB(25_300), "25,000 of ours and 300 without an owner");
}

#[test]
fn memory_of_a_job_of_unknown_need_is_its_floor() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(job(1));
    assert_eq!(lab.scheduler.fleet().device(gpu(0)).unwrap().reserved(), MiB(5_120));
}

#[test]
fn memory_that_the_driver_hides_is_not_counted_twice() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(known(1, 10_000));
    let attempt = lab.attempt(1);
    lab.event(Event::ProcessesSeen { device: gpu(0), processes: vec![ProcessUse { owner: Owner::Attempt(attempt), memory: None }] });
    lab.load(0, 9_000, 0.1);
    assert_eq!(lab.scheduler.fleet().device(gpu(0)).unwrap().counted_as_used(true), MiB(10_000));
    lab.load(0, 12_500, 0.1);
    assert_eq!(lab.scheduler.fleet().device(gpu(0)).unwrap().counted_as_used(true), MiB(12_500));
}

#[test]
fn the_next_job_starts_at_a_jobs_exit_not_at_the_next_reading() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(JobSpec { exclusive: true, ..known(1, 10_000) });
    lab.settle(1, 12_000);
    lab.load(0, 12_400, 0.9);
    assert_eq!(lab.submit(known(2, 35_000)), []);
    assert_eq!(lab.obstacles(2, 0)[0], Obstacle::HeldExclusively { by: JobId(1) });
    assert_eq!(launches(&lab.exit(1, Verdict::Succeeded)), [(2, vec![0])], "the old reading of 12,400 less the 12,000 that went");
}

#[test]
fn foreign_processes_count_and_can_be_avoided() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    foreign(&mut lab, 0, Some(8_000));
    lab.load(0, 8_000, 0.1);
    assert_eq!(lab.submit(JobSpec { exclusive: true, ..job(1) }), []);
    let not_idle = Obstacle::NotIdle { jobs: 0, foreign: 1, occupied: MiB(8_000) };
    assert_eq!(lab.obstacles(1, 0), [not_idle]);
    lab.event(Event::JobCancelled { job: JobId(1) });
    assert_eq!(lab.submit(known(2, 31_425)), [], "31,425 + 1,024 + 8,000 + 512 is 1 MiB too much");
    lab.event(Event::JobCancelled { job: JobId(2) });

    let avoid = AdmissionSettings { foreign: Some(Foreign::Avoid), ..AdmissionSettings::default() };
    lab.event(Event::ConfigurationChanged(Box::new(Settings { admission: Some(avoid), ..Settings::default() })));
    assert_eq!(lab.submit(known(3, 1_000)), []);
    assert_eq!(lab.obstacles(3, 0), [Obstacle::ForeignProcesses { count: 1 }]);
    lab.event(Event::ProcessesSeen { device: gpu(0), processes: Vec::new() });
    assert_eq!(lab.load(0, 4, 0.0), [], "already launched when the outsider left");
    assert!(matches!(lab.state(3), State::Starting(_)));
}

#[test]
fn a_job_process_on_another_gpu_is_foreign_there() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 2);
    lab.submit(known(1, 1_000));
    let attempt = lab.attempt(1);
    let stray = ProcessUse { owner: Owner::Attempt(attempt), memory: Some(MiB(500)) };
    lab.event(Event::ProcessesSeen { device: gpu(1), processes: vec![stray] });
    assert!(matches!(lab.state(1), State::Starting(_)), "it has not been seen where it belongs");
    assert_eq!(lab.submit(JobSpec { exclusive: true, ..job(2) }), []);
}

#[test]
fn a_process_of_a_deleted_job_is_foreign() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    let ghost = ProcessUse { owner: Owner::Attempt(AttemptId { job: JobId(77), number: 1 }), memory: Some(MiB(9_000)) };
    lab.event(Event::ProcessesSeen { device: gpu(0), processes: vec![ghost] });
    assert_eq!(lab.submit(JobSpec { exclusive: true, ..job(1) }), []);
}

#[test]
fn foreign_memory_counts_before_the_next_reading() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    foreign(&mut lab, 0, Some(30_000));
    assert_eq!(lab.submit(known(1, 20_000)), []);
    assert_eq!(lab.obstacles(1, 0), [Obstacle::Memory { needed: MiB(21_024), available: MiB(10_448) }]);
}

#[test]
fn foreign_memory_is_found_beside_hidden_memory() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(known(1, 15_000));
    let ours = ProcessUse { owner: Owner::Attempt(lab.attempt(1)), memory: None };
    let theirs = ProcessUse { owner: Owner::Foreign { pid: 5 }, memory: Some(MiB(14_000)) };
    lab.event(Event::ProcessesSeen { device: gpu(0), processes: vec![ours, theirs] });
    lab.load(0, 15_000, 0.1);
    assert_eq!(lab.scheduler.fleet().device(gpu(0)).unwrap().counted_as_used(true), MiB(29_000), "1,000 used so far, 15,000 reserved");
}

#[test]
fn enabled_reservations_count_for_running_jobs() {
    let mut lab = Lab::with_policy(Preset::Paper, "magm", 1);
    lab.submit(known(1, 30_000));
    lab.settle(1, 500);
    lab.load(0, 500, 0.1);
    let admission = AdmissionSettings { reservations: Some(true), ..AdmissionSettings::default() };
    let settings = Settings { preset: Some(Preset::Paper), admission: Some(admission), ..Settings::default() };
    lab.event(Event::ConfigurationChanged(Box::new(settings)));
    assert_eq!(lab.submit(known(2, 30_000)), []);
}

#[test]
fn changed_gate_settings_apply_to_closed_gates() {
    let mut lab = Lab::with_policy(Preset::Paper, "magm", 1);
    lab.submit(known(1, 1_000));
    lab.submit(known(2, 1_000));
    let gate = GateSettings { timeout: Some(60.0), ..GateSettings::default() };
    let settings = Settings { preset: Some(Preset::Paper), gate: Some(gate), ..Settings::default() };
    lab.event(Event::ConfigurationChanged(Box::new(settings)));
    assert_eq!(lab.wait(59), []);
    assert_eq!(lab.wait(1), [(2, vec![0])]);
}

#[test]
fn a_cap_on_jobs_per_gpu() {
    let config = Config::from(Preset::Standard);
    let config = Config { admission: AdmissionConfig { jobs_per_gpu: Some(1), ..config.admission }, ..config };
    let mut lab = Lab::new(config, 1);
    lab.submit(known(1, 1_000));
    lab.settle(1, 1_000);
    assert_eq!(lab.submit(known(2, 1_000)), []);
    assert_eq!(lab.obstacles(2, 0), [Obstacle::JobLimit { limit: 1 }]);
}

#[test]
fn drained_gpus_take_no_jobs_and_keep_running_ones() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.submit(known(1, 1_000));
    assert_eq!(lab.event(Event::GpuDrained { device: gpu(0) }), []);
    lab.settle(1, 1_000);
    lab.exit(1, Verdict::Succeeded);
    assert_eq!(lab.submit(known(2, 1_000)), []);
    assert_eq!(lab.obstacles(2, 0), [Obstacle::Drained]);
    assert_eq!(launches(&lab.event(Event::GpuResumed { device: gpu(0) })), [(2, vec![0])]);
}

#[test]
fn a_host_with_a_shortage_takes_no_jobs() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    lab.event(Event::HostShort { server: ServerId(0) });
    assert_eq!(lab.submit(known(1, 1_000)), []);
    assert_eq!(lab.obstacles(1, 0), [Obstacle::HostShort]);
    assert_eq!(lab.submit(JobSpec { gpus: 0, ..job(2) }), []);
    assert_eq!(lab.scheduler.explain(JobId(2)).unwrap().reason, WaitReason::NoHost);
    let started = launches(&lab.event(Event::HostRecovered { server: ServerId(0) }));
    assert_eq!(started, [(1, vec![0]), (2, vec![])]);
}

fn mps(exclusive_process: bool) -> Lab {
    let mut lab = Lab::new(Config::from(Preset::Standard), 0);
    lab.attach(DeviceSpec { mode: CollocationMode::Mps { exclusive_process }, ..DeviceSpec::new(gpu(0), A100) });
    lab
}

fn of_user(id: u64, user: u32, mode: RequestedMode) -> JobSpec {
    JobSpec { user: UserId(user), mode, ..known(id, 2_000) }
}

#[test]
fn an_mps_server_serves_one_user_at_a_time() {
    let mut lab = mps(true);
    lab.submit(of_user(1, 7, RequestedMode::Auto));
    lab.settle(1, 2_000);
    assert_eq!(lab.submit(of_user(2, 8, RequestedMode::Auto)), []);
    assert_eq!(lab.obstacles(2, 0), [Obstacle::MpsOtherUser { serves: UserId(7) }]);
    lab.event(Event::JobHeld { job: JobId(2) });
    assert_eq!(lab.submit(of_user(3, 7, RequestedMode::Mps)), [(3, vec![0])], "the same user may share");
}

#[test]
fn exclusive_process_mode_accepts_only_mps_clients() {
    let mut lab = mps(true);
    assert_eq!(lab.submit(of_user(1, 7, RequestedMode::Streams)), []);
    assert!(matches!(lab.scheduler.explain(JobId(1)).unwrap().reason, WaitReason::TooLarge { .. }), "no GPU here ever will");
    assert!(lab.obstacles(1, 0).contains(&Obstacle::MpsClientsOnly));
    foreign(&mut lab, 0, Some(10));
    assert_eq!(lab.submit(of_user(2, 7, RequestedMode::Auto)), []);
    assert_eq!(lab.obstacles(2, 0), [Obstacle::ForeignProcesses { count: 1 }]);

    let mut open = mps(false);
    assert_eq!(open.submit(of_user(1, 7, RequestedMode::Streams)), [(1, vec![0])], "in default compute mode a plain process may");
    assert_eq!(open.state(1).active().unwrap().placement.devices[0].limits, Limits::Streams);
}

#[test]
fn mps_clients_are_limited_to_their_need_and_the_configured_threads() {
    let config = Config { mps: MpsConfig { active_threads: Some(40), limit_memory: true }, ..Config::from(Preset::Standard) };
    let mut lab = Lab::new(config, 0);
    for ordinal in 0..2 {
        lab.attach(DeviceSpec { mode: CollocationMode::Mps { exclusive_process: true }, ..DeviceSpec::new(gpu(ordinal), A100) });
    }
    lab.submit(known(1, 9_000));
    lab.submit(JobSpec { memory: MemoryNeed::estimated(MiB(8_000), MiB(9_000)), ..job(2) });
    let limits = |id| lab.state(id).active().unwrap().placement.devices[0].limits;
    assert_eq!(limits(1), Limits::Mps { active_threads: Some(40), memory: Some(MiB(9_000)) });
    assert_eq!(limits(2), Limits::Mps { active_threads: Some(40), memory: None }, "an estimate is not enforced");
}

#[test]
fn mig_instances_are_devices_and_their_gpu_is_not() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    for instance in 0..2 {
        lab.attach(DeviceSpec::new(gpu(0).instance(instance), MiB(19_968)));
    }
    assert_eq!(
        lab.obstacles_of_new(known(1, 30_000)),
        [vec![Obstacle::Partitioned], vec![], vec![]].map(|partitioned| {
            if partitioned.is_empty() { vec![Obstacle::Memory { needed: MiB(31_024), available: MiB(19_456) }] } else { partitioned }
        })
    );
    lab.submit(known(2, 10_000));
    let granted = lab.state(2).active().unwrap().placement.devices[0];
    assert_eq!((granted.device, granted.limits), (gpu(0).instance(0), Limits::Mig { instance: MigInstance(0) }));
    assert_eq!(lab.submit(JobSpec { gpus: 2, ..job(3) }), []);
    assert!(matches!(lab.scheduler.explain(JobId(3)).unwrap().reason, WaitReason::TooLarge { .. }), "ranks cannot talk across instances");
    assert_eq!(lab.refused(Event::GpuDetached { device: gpu(0).instance(0) }), "device s0/gpu0/mig0 has jobs on it");
    lab.exit(2, Verdict::Succeeded);
    lab.event(Event::GpuDetached { device: gpu(0).instance(0) });
    let whole = lab.event(Event::GpuDetached { device: gpu(0).instance(1) });
    assert_eq!(launches(&whole), [(1, vec![0])], "whole again, the GPU takes what was too large for an instance");
}

#[test]
fn instances_of_a_drained_or_lost_gpu_are_drained_or_lost() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 2);
    lab.event(Event::GpuDrained { device: gpu(0) });
    lab.event(Event::GpuLost { device: gpu(1) });
    lab.attach(DeviceSpec::new(gpu(0).instance(0), MiB(19_968)));
    lab.attach(DeviceSpec::new(gpu(1).instance(0), MiB(19_968)));
    assert_eq!(lab.submit(known(1, 1_000)), []);
    assert_eq!(launches(&lab.event(Event::GpuResumed { device: gpu(0) })), [(1, vec![0])]);
}

#[test]
fn only_mps_clients_end_with_their_server() {
    let mut lab = mps(false);
    lab.submit(of_user(1, 7, RequestedMode::Streams));
    lab.settle(1, 2_000);
    assert_eq!(lab.submit(of_user(2, 8, RequestedMode::Auto)), [(2, vec![0])], "a plain process of another user is no client");
    let died = lab.event(Event::MpsServerDied { device: gpu(0) });
    assert!(matches!(died[..], [Action::Signal { attempt, .. }] if attempt.job == JobId(2)), "{died:?}");
}

impl Lab {
    /// The obstacles for a job that is submitted and must wait, device by device.
    fn obstacles_of_new(&mut self, spec: JobSpec) -> [Vec<Obstacle>; 3] {
        let id = spec.id;
        assert_eq!(self.submit(spec), []);
        let devices = self.scheduler.explain(id).unwrap().devices;
        devices.into_iter().map(|answer| answer.obstacles).collect::<Vec<_>>().try_into().unwrap()
    }
}

#[test]
fn jobs_that_want_a_mode_get_it_or_wait() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    assert_eq!(lab.submit(of_user(1, 7, RequestedMode::Mps)), []);
    assert!(lab.obstacles(1, 0).contains(&Obstacle::WrongMode { wanted: RequestedMode::Mps }));
    let mode = CollocationMode::Mps { exclusive_process: true };
    assert_eq!(launches(&lab.event(Event::GpuModeChanged { device: gpu(0), mode })), [(1, vec![0])]);
    let back = Event::GpuModeChanged { device: gpu(0), mode: CollocationMode::Streams };
    assert_eq!(lab.refused(back), "device s0/gpu0 has jobs on it");
}

#[test]
fn unknown_and_contradictory_devices_are_refused() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    assert_eq!(lab.refused(Event::GpuDrained { device: gpu(9) }), "device s0/gpu9 is not known");
    assert_eq!(lab.refused(Event::HostShort { server: ServerId(3) }), "server 3 is not known");
    assert_eq!(lab.refused(Event::GpuAttached(DeviceSpec::new(gpu(0), A100))), "device s0/gpu0 exists already");
    assert_eq!(lab.refused(Event::ServerAttached(ServerSpec::new(ServerId(0)))), "server 0 exists already");
    let elsewhere = DeviceSpec::new(DeviceId::gpu(ServerId(3), 0), A100);
    assert_eq!(lab.refused(Event::GpuAttached(elsewhere)), "server 3 is not known");
    let odd = DeviceSpec { mode: CollocationMode::Mig, ..DeviceSpec::new(gpu(1), A100) };
    assert_eq!(lab.refused(Event::GpuAttached(odd)), "device s0/gpu1: MIG instances need MIG mode, and whole GPUs must not have it");
    assert_eq!(lab.refused(Event::MpsServerDied { device: gpu(0) }), "device s0/gpu0 is not in MPS mode");
    let sample = Sample::new(lab.now + secs(1), MiB(0));
    assert_eq!(lab.refused(Event::GpuSampled { device: gpu(4), sample }), "device s0/gpu4 is not known");
}
