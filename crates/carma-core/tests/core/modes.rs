//! Switching GPUs for a job that could not start otherwise.

use carma_core::*;

use crate::lab::{Lab, gpu, job, known, launches, secs, window};

const ALL: [SharingMode; 3] = [SharingMode::Streams, SharingMode::Mps, SharingMode::Mig];

fn rules(allowed: &[SharingMode], every: f64) -> Settings {
    let modes = ModeSettings { allowed: Some(allowed.to_vec()), every: Some(every), ..ModeSettings::default() };
    // GPUs are kept for a waiting head at once.
    let queue = QueueSettings { reserve_after: Some(0.0), ..QueueSettings::default() };
    Settings { modes: Some(modes), queue: Some(queue), ..Settings::default() }
}

/// Whole GPUs, and as many after them that are partitioned into halves.
fn lab(whole: u16, cut: u16) -> Lab {
    let mut lab = Lab::new(rules(&ALL, 60.0).check().unwrap(), whole);
    for ordinal in whole..whole + cut {
        lab.attach(DeviceSpec::new(gpu(ordinal), MiB(40_960)));
        (0..2).for_each(|half| lab.attach(DeviceSpec::new(gpu(ordinal).instance(half), MiB(20_480))));
    }
    lab
}

fn submit(lab: &mut Lab, spec: JobSpec) -> Vec<Action> {
    lab.event(Event::JobSubmitted(Box::new(spec)))
}

fn wide(id: u64) -> JobSpec {
    JobSpec { gpus: 2, exclusive: true, ..job(id) }
}

fn switches(actions: &[Action]) -> Vec<(u16, GpuMode)> {
    let switch = |action: &Action| if let Action::SwitchMode { device, to, .. } = action { Some((device.gpu.ordinal, *to)) } else { None };
    actions.iter().filter_map(switch).collect()
}

/// The GPU is whole, as requested.
fn made_whole(lab: &mut Lab, ordinal: u16, mode: CollocationMode) -> Vec<Action> {
    let gpu = gpu(ordinal);
    let instances = lab.scheduler.fleet().devices().map(Device::id).filter(|device| device.gpu == gpu.gpu && device.instance.is_some());
    for device in instances.collect::<Vec<_>>() {
        lab.event(Event::GpuDetached { device });
    }
    lab.event(Event::GpuModeChanged { device: gpu, mode })
}

#[test]
fn free_instances_are_joined_instead_of_waiting_for_an_unlimited_job() {
    let mut lab = lab(2, 1);
    submit(&mut lab, JobSpec { exclusive: true, ..known(1, 30_000) });
    assert_eq!(switches(&submit(&mut lab, wide(2))), [(2, GpuMode::Streams)], "GPU 1 is idle, GPU 0 is not and may never be");
    assert_eq!(launches(&made_whole(&mut lab, 2, CollocationMode::Streams)), [(2, vec![1, 2])]);
}

#[test]
fn a_reserved_gpu_is_joined_when_its_instances_are_free() {
    let mut lab = lab(1, 1);
    submit(&mut lab, JobSpec { exclusive: true, time_limit: Some(secs(500)), ..known(1, 30_000) });
    submit(&mut lab, JobSpec { time_limit: Some(secs(300)), ..known(2, 1_000) });
    assert_eq!(switches(&submit(&mut lab, wide(3))), [], "a job is on one of the halves");
    let kept = lab.scheduler.head_reservation().unwrap();
    assert_eq!((kept.devices, kept.from), (vec![gpu(0), gpu(1)], Some(lab.now + secs(500))));
    assert_eq!(switches(&lab.exit(2, Verdict::Succeeded)), [(1, GpuMode::Streams)]);
}

#[test]
fn a_gpu_is_joined_when_its_samples_show_that_it_is_empty() {
    let mut lab = lab(1, 1);
    submit(&mut lab, known(1, 1_000));
    lab.exit(1, Verdict::Succeeded);
    lab.event(Event::GpuWindow { device: gpu(1), window: window(9_000, 0.0, 0.0, 0.0) });
    assert_eq!(switches(&submit(&mut lab, wide(2))), []);
    let emptied = lab.event(Event::GpuWindow { device: gpu(1), window: window(0, 0.0, 0.0, 0.0) });
    assert_eq!(switches(&emptied), [(1, GpuMode::Streams)]);
}

#[test]
fn a_joined_gpu_gets_the_mode_that_the_head_requests() {
    let mut lab = lab(0, 2);
    for ordinal in [0, 1] {
        lab.event(Event::GpuModeChanged { device: gpu(ordinal), mode: CollocationMode::Mps { exclusive_process: false } });
    }
    lab.wait(60);
    let switched = submit(&mut lab, JobSpec { mode: RequestedMode::Mps, ..wide(1) });
    assert_eq!(switches(&switched), [(0, GpuMode::Mps), (1, GpuMode::Mps)]);
    lab.event(Event::ModeRefused { device: gpu(0), reason: "no MPS program".to_owned() });
    assert!(matches!(lab.scheduler.explain(JobId(1)).unwrap().reason, WaitReason::TooLarge { .. }), "made whole, it would not do");
}

#[test]
fn one_gpu_is_partitioned_for_one_job() {
    let mut lab = lab(2, 0);
    let actions = submit(&mut lab, JobSpec { mode: RequestedMode::Mig, ..known(1, 2_000) });
    let [(ordinal, GpuMode::Mig(layout))] = switches(&actions)[..] else { panic!("{actions:?}") };
    let other = Event::GpuWindow { device: gpu(1 - ordinal), window: window(0, 0.0, 0.0, 0.0) };
    let cut = gpu(ordinal);
    for (place, part) in layout.parts(MiB(40_960)).iter().enumerate() {
        let instance = DeviceSpec::new(cut.instance(place as u16), part.memory);
        assert_eq!(switches(&lab.event(Event::GpuAttached(instance))), [], "instances come, and have no sample yet");
    }
    assert_eq!(switches(&lab.event(Event::GpuModeChanged { device: cut, mode: CollocationMode::Streams })), []);
    assert_eq!(switches(&lab.event(other)), []);
    let actions = lab.event(Event::GpuWindow { device: cut.instance(0), window: window(0, 0.0, 0.0, 0.0) });
    assert_eq!(launches(&actions).len(), 1);
}

#[test]
fn the_pause_between_switches_follows_the_configuration() {
    let mut lab = lab(0, 1);
    lab.event(Event::ConfigurationChanged(Box::new(rules(&[], 60.0))));
    lab.event(Event::GpuModeChanged { device: gpu(0), mode: CollocationMode::Streams });
    lab.event(Event::ConfigurationChanged(Box::new(rules(&ALL, 1_000.0))));
    assert_eq!(switches(&submit(&mut lab, known(1, 30_000))), []);
    lab.event(Event::ConfigurationChanged(Box::new(rules(&ALL, 100.0))));
    assert_eq!(lab.scheduler.next_wakeup(), Some(lab.now + secs(100)));
    lab.now = lab.now + secs(100);
    assert_eq!(switches(&lab.event(Event::Tick)), [(0, GpuMode::Streams)]);
}
