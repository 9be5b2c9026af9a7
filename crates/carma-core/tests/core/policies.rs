//! Round-robin, the field's two baselines, and what policies share.

use carma_core::*;

use crate::lab::{A100, Lab, gpu, job, known};

#[test]
fn every_policy_is_found_by_name_with_each_prefix() {
    let names: Vec<&str> = POLICIES.iter().map(|policy| policy.name).collect();
    assert_eq!(names, ["carma", "exclusive", "rr", "ff", "bf", "magm", "lug", "horus", "lucid"]);
    for name in names {
        for prefix in ["", "est-", "or-"] {
            let mapping: Mapping = format!("{prefix}{name}").parse().unwrap();
            assert_eq!(mapping.to_string(), format!("{prefix}{name}"));
        }
    }
    assert_eq!("oracle-MAGM".parse::<Mapping>().unwrap().to_string(), "magm");
    assert!("magm-or".parse::<Mapping>().is_err());
}

#[test]
fn round_robin_ignores_the_load() {
    let mut lab = Lab::with_policy(Preset::Paper, "or-rr", 3);
    (0..3).for_each(|ordinal| drop(lab.busy(ordinal, 40_000, 1.0, 1.0, 1.0)));
    for (id, expected) in [(1, 0), (2, 1), (3, 2), (4, 0), (5, 1)] {
        let launched = lab.submit(job(id));
        assert_eq!(launched, [(id, vec![expected])], "a full GPU, but OR-RR requires no memory");
        lab.settle(id, 10);
    }
    lab.event(Event::GpuDrained { device: gpu(2) });
    assert_eq!(lab.submit(job(6)), [(6, vec![0])], "2 is drained, so on to 0");
}

#[test]
fn round_robin_spans_servers() {
    let mut lab = Lab::with_policy(Preset::Paper, "or-rr", 2);
    lab.event(Event::ServerAttached(ServerSpec::new(ServerId(1))));
    let other = |ordinal| DeviceId::gpu(ServerId(1), ordinal);
    lab.attach(DeviceSpec::new(other(0), A100));
    lab.attach(DeviceSpec::new(other(1), A100));
    let mut order = Vec::new();
    for id in 1..=6 {
        lab.submit(job(id));
        let State::Starting(active) = lab.state(id).clone() else { panic!() };
        order.push(active.placement.devices[0].device.to_string());
        lab.settle(id, 10);
    }
    assert_eq!(order, ["s0/gpu0", "s0/gpu1", "s1/gpu0", "s1/gpu1", "s0/gpu0", "s0/gpu1"]);
}

#[test]
fn round_robin_with_known_need_checks_memory_but_not_load() {
    let mut lab = Lab::with_policy(Preset::Paper, "rr", 2);
    lab.busy(0, 35_000, 1.0, 1.0, 1.0);
    lab.busy(1, 20_000, 1.0, 1.0, 1.0);
    assert_eq!(lab.submit(known(1, 10_000)), [(1, vec![1])]);
}

fn utilised(id: u64, utilisation: f64) -> JobSpec {
    JobSpec { utilisation: Utilisation::of([(Metric::Utilisation, utilisation)]), ..known(id, 1_000) }
}

#[test]
fn horus_admits_while_utilisations_sum_to_100_percent() {
    let mut lab = Lab::with_policy(Preset::Paper, "horus", 2);
    for (spec, expected) in [(utilised(1, 0.7), 0), (utilised(2, 0.5), 1), (utilised(3, 0.3), 1), (utilised(4, 0.3), 0)] {
        let id = spec.id.0;
        assert_eq!(lab.submit(spec), [(id, vec![expected])], "job {id}: the lowest sum, up to 1.0 exactly");
        lab.settle(id, 1_000);
    }
    assert_eq!(lab.submit(utilised(5, 0.21)), []);
    assert_eq!(lab.obstacles(5, 0), [Obstacle::UtilisationSum { percent: 121 }]);
    assert_eq!(lab.obstacles(5, 1), [Obstacle::UtilisationSum { percent: 101 }]);
    lab.event(Event::JobCancelled { job: JobId(5) });
    assert_eq!(lab.submit(known(6, 1_000)), [], "unknown utilisation counts as all of it");
}

fn classed(id: u64, class: SharingClass) -> JobSpec {
    JobSpec { sharing: Some(class), ..known(id, 1_000) }
}

#[test]
fn lucid_pairs_jobs_whose_scores_sum_to_2() {
    use SharingClass::{Jumbo, Medium, Tiny};
    let mut lab = Lab::with_policy(Preset::Paper, "lucid", 2);
    for (spec, expected) in [(classed(1, Jumbo), 0), (classed(2, Medium), 1), (classed(3, Medium), 1), (classed(4, Tiny), 0)] {
        let id = spec.id.0;
        assert_eq!(lab.submit(spec), [(id, vec![expected])], "job {id}");
        lab.settle(id, 1_000);
    }
    assert_eq!(lab.submit(classed(5, Tiny)), []);
    assert_eq!(lab.obstacles(5, 0), [Obstacle::JobLimit { limit: 2 }]);
    assert_eq!(crate::lab::launches(&lab.exit(4, Verdict::Succeeded)), [(5, vec![0])]);
    lab.settle(5, 1_000);
    lab.exit(5, Verdict::Succeeded);
    assert_eq!(lab.submit(classed(6, Medium)), []);
    assert_eq!(lab.obstacles(6, 0), [Obstacle::SharingScore { sum: 3, limit: 2 }]);
}

#[test]
fn exclusive_never_shares() {
    let mut lab = Lab::with_policy(Preset::Standard, "exclusive", 1);
    lab.submit(known(1, 100));
    lab.settle(1, 100);
    assert_eq!(lab.submit(known(2, 100)), []);
    assert!(matches!(lab.obstacles(2, 0)[..], [Obstacle::NotIdle { jobs: 1, foreign: 0, .. }]));
    assert_eq!(crate::lab::launches(&lab.exit(1, Verdict::Succeeded)), [(2, vec![0])]);
}

#[test]
fn ranks_with_different_needs_get_suitable_gpus() {
    let mut lab = Lab::with_policy(Preset::Standard, "magm", 3);
    for (ordinal, used) in [(0, 20_000), (1, 5_000), (2, 30_000)] {
        lab.load(ordinal, used, 0.1);
    }
    let memory = MemoryNeed { known: Some(PerRank::Each(vec![MiB(8_000), MiB(28_000), MiB(15_000)])), estimated: None };
    assert_eq!(lab.submit(JobSpec { gpus: 3, memory: memory.clone(), ..job(1) }), [(1, vec![2, 1, 0])], "rank by rank");
    let reserved: Vec<u64> = lab.state(1).active().unwrap().placement.devices.iter().map(|granted| granted.reserved.0).collect();
    assert_eq!(reserved, [8_000, 28_000, 15_000]);
}

fn linked(links: Vec<(u16, u16, Link)>, gpus: u16) -> Lab {
    let mut lab = Lab { scheduler: Scheduler::new(Config::from(Preset::Standard)), now: Time::from_secs(1000) };
    lab.event(Event::ServerAttached(ServerSpec { topology: Some(links.into()), ..ServerSpec::new(ServerId(0)) }));
    (0..gpus).for_each(|ordinal| lab.attach(DeviceSpec::new(gpu(ordinal), A100)));
    lab
}

#[test]
fn ranks_sit_close_together_where_the_topology_is_known() {
    let links = vec![(0, 1, Link::System), (0, 2, Link::NvLink(4)), (1, 3, Link::NvLink(12)), (2, 3, Link::Node)];
    assert_eq!(linked(links.clone(), 4).submit(JobSpec { gpus: 2, ..job(1) }), [(1, vec![1, 3])], "idle: the closest pair");
    let mut lab = linked(links, 4);
    for (ordinal, used) in [(0, 5_000), (1, 6_000), (2, 9_000), (3, 7_000)] {
        lab.load(ordinal, used, 0.1);
    }
    assert_eq!(lab.submit(JobSpec { gpus: 2, ..known(1, 10_000) }), [(1, vec![0, 2])], "shared: the policy's first, then the closest");
}

#[test]
fn a_job_stays_within_a_server_unless_it_may_span() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 2);
    lab.event(Event::ServerAttached(ServerSpec::new(ServerId(1))));
    for ordinal in 0..3 {
        lab.attach(DeviceSpec::new(DeviceId::gpu(ServerId(1), ordinal), A100));
    }
    let wide = |id, gpus, may_span_servers| JobSpec { gpus, may_span_servers, ..job(id) };
    lab.submit(wide(1, 3, false));
    assert_eq!(lab.state(1).active().unwrap().placement.server, ServerId(1), "the first server that holds all of it");
    assert_eq!(lab.submit(wide(2, 4, false)), []);
    assert_eq!(lab.scheduler.explain(JobId(2)).unwrap().reason, WaitReason::TooLarge { gpus: 4, memory: MiB(0), largest: A100, most: 3 });
    lab.exit(1, Verdict::Succeeded);
    lab.submit(wide(3, 5, true));
    let servers: Vec<u32> = lab.state(3).active().unwrap().placement.devices.iter().map(|granted| granted.device.server().0).collect();
    assert_eq!(servers, [1, 1, 1, 0, 0], "as few servers as will do: the one with most room first");
}
