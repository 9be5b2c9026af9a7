//! Policy `carma`: placements by predicted progress, and the queue rules that go with it.

use carma_core::*;

use crate::lab::{Lab, gpu, job, launches, secs};

fn ours(gpus: u16) -> Lab {
    Lab::new(Config::default(), gpus)
}

/// A job of this SM activity and memory.
fn busy(id: u64, smact: f64, memory: u64) -> JobSpec {
    let utilisation = Utilisation::of([(Metric::Smact, smact), (Metric::Drama, 0.1)]);
    JobSpec { utilisation, memory: MemoryNeed::known(MiB(memory)), ..job(id) }
}

fn exclusive(id: u64) -> JobSpec {
    JobSpec { exclusive: true, ..job(id) }
}

fn lasting(seconds: u64, spec: JobSpec) -> JobSpec {
    JobSpec { expected_duration: Some(secs(seconds)), ..spec }
}

/// Two GPUs with a heavy and a light job, both seen.
fn heavy_and_light() -> Lab {
    let mut lab = ours(2);
    assert_eq!(lab.submit(busy(1, 0.9, 20_000)), [(1, vec![0])]);
    assert_eq!(lab.submit(busy(2, 0.2, 1_000)), [(2, vec![1])]);
    lab.settle(1, 20_000);
    lab.settle(2, 1_000);
    lab
}

#[test]
fn a_job_takes_the_gpu_where_it_adds_most_progress() {
    let mut lab = heavy_and_light();
    assert_eq!(lab.submit(busy(3, 0.2, 1_000)), [(3, vec![1])], "beside the light one");
}

#[test]
fn no_job_is_slowed_down_beyond_the_bound() {
    let mut lab = heavy_and_light();
    let settings =
        Settings { forecast: Some(ForecastSettings { slowdown: Some(1.3), ..ForecastSettings::default() }), ..Settings::default() };
    lab.event(Event::ConfigurationChanged(Box::new(settings)));
    assert_eq!(lab.submit(busy(3, 0.9, 15_000)), []);
    let slowed = |ordinal| lab.obstacles(3, ordinal).into_iter().find(|obstacle| matches!(obstacle, Obstacle::PredictedSlowdown { .. }));
    assert!(matches!(slowed(0), Some(Obstacle::PredictedSlowdown { slowed: None, limit: 130, .. })), "{:?}", slowed(0));
    assert!(matches!(slowed(1), Some(Obstacle::PredictedSlowdown { slowed: Some(JobId(2)), .. })), "{:?}", slowed(1));
}

#[test]
fn sharing_without_gain_is_avoided() {
    let start = |forecast: ForecastSettings| {
        let mut lab = ours(1);
        lab.event(Event::ConfigurationChanged(Box::new(Settings { forecast: Some(forecast), ..Settings::default() })));
        lab.submit(busy(1, 1.0, 15_000));
        lab.settle(1, 15_000);
        assert_eq!(lab.submit(busy(2, 1.0, 15_000)), []);
        let obstacles = lab.obstacles(2, 0);
        assert_eq!(launches(&lab.exit(1, Verdict::Succeeded)), [(2, vec![0])]);
        obstacles
    };
    let gain = ForecastSettings { gain: Some(0.1), slowdown: Some(4.0), ..ForecastSettings::default() };
    assert!(matches!(start(gain)[..], [Obstacle::LittleGain { least: 10, .. }]));
    let delay = ForecastSettings { gain: Some(-1.0), slowdown: Some(4.0), delay: Some(1.2), ..ForecastSettings::default() };
    let refused = start(delay);
    assert!(matches!(refused[..], [Obstacle::PredictedDelay { limit: 170, .. }]), "half as much more for the job that waits: {refused:?}");
}

/// Delays count while both jobs share the GPU, and against the length of the new job.
#[test]
fn a_job_may_join_one_that_ends_soon() {
    let start = |seconds| {
        let mut lab = ours(1);
        let forecast = ForecastSettings { gain: Some(-1.0), slowdown: Some(4.0), delay: Some(0.8), ..ForecastSettings::default() };
        lab.event(Event::ConfigurationChanged(Box::new(Settings { forecast: Some(forecast), ..Settings::default() })));
        lab.submit(lasting(1_000, busy(1, 0.9, 12_000)));
        lab.settle(1, 12_000);
        lab.submit(lasting(seconds, busy(2, 0.9, 12_000)))
    };
    assert_eq!(start(36_000), [(2, vec![0])], "the other job ends soon");
    assert_eq!(start(300), [], "they share the GPU all the time");
}

/// Two jobs that each take 1.64 times as long as alone do 22 % more work together.
#[test]
fn sharing_that_pays_a_little_is_allowed() {
    let mut lab = ours(1);
    lab.submit(busy(1, 0.9, 12_000));
    lab.settle(1, 12_000);
    assert_eq!(lab.submit(busy(2, 0.9, 12_000)), [(2, vec![0])]);
}

#[test]
fn predicted_activity_is_bounded() {
    let mut lab = heavy_and_light();
    let forecast = ForecastSettings { smact: Some(0.3), ..ForecastSettings::default() };
    lab.event(Event::ConfigurationChanged(Box::new(Settings { forecast: Some(forecast), ..Settings::default() })));
    assert_eq!(lab.submit(busy(3, 0.2, 1_000)), []);
    let too_busy = Obstacle::PredictedActivity { metric: Metric::Smact, percent: 40, limit: 30 };
    assert_eq!(lab.obstacles(3, 1), [too_busy]);
}

#[test]
fn an_unknown_job_counts_as_heavy() {
    let unknown = InterferenceProfile::of(&job(1));
    assert!(unknown.pressure > 2.0 * InterferenceProfile::of(&busy(2, 0.3, 4_000)).pressure);
}

#[test]
fn others_pass_a_head_until_it_has_waited_for_long() {
    let mut lab = ours(2);
    assert_eq!(lab.submit(lasting(90_000, exclusive(1))), [(1, vec![0])]);
    assert_eq!(lab.submit(lasting(100, JobSpec { gpus: 2, ..exclusive(2) })), [], "the head: it should take least");
    let fill = |lab: &mut Lab, id| lab.submit(lasting(30_000, exclusive(id)));
    assert_eq!(fill(&mut lab, 3), [(3, vec![1])], "nothing is kept for it yet");
    lab.exit(3, Verdict::Succeeded);
    lab.wait(8 * 3600);
    assert_eq!(fill(&mut lab, 4), [], "now the GPU is kept");
    assert_eq!(lab.scheduler.head_reservation().map(|kept| (kept.head, kept.devices)), Some((JobId(2), vec![gpu(0), gpu(1)])));
}

/// 550 s of other work per GPU.
#[test]
fn the_longest_is_next_once_other_work_per_gpu_is_less_than_its_own() {
    let start = |longest| {
        let mut lab = ours(2);
        lab.submit(lasting(1_000, exclusive(1)));
        lab.submit(lasting(1_000, exclusive(2)));
        lab.submit(lasting(100, exclusive(3)));
        lab.submit(lasting(longest, exclusive(4)));
        launches(&lab.exit(1, Verdict::Succeeded))
    };
    assert_eq!(start(450), [(3, vec![0])], "the shortest first");
    assert_eq!(start(600), [(4, vec![0])], "otherwise one GPU may be idle while it runs");
}

/// Two GPUs, one of them in use for long. A job of two GPUs waits; then a long job of one GPU arrives, this much later.
fn long_one_after(wide: u64, seconds: u64) -> Lab {
    let mut lab = ours(2);
    lab.submit(lasting(900_000, exclusive(1)));
    lab.submit(lasting(100, exclusive(2)));
    lab.submit(lasting(wide, JobSpec { gpus: 2, ..exclusive(3) }));
    lab.wait(seconds);
    lab.submit(lasting(800_000, exclusive(4)));
    lab
}

#[test]
fn the_longest_job_passes_no_job_that_is_due() {
    let freed = |mut lab: Lab| launches(&lab.exit(2, Verdict::Succeeded));
    assert_eq!(freed(long_one_after(100, 60)), [(4, vec![1])]);
    assert_eq!(freed(long_one_after(100, 8 * 3600)), [], "the GPU is kept for the one that came before");
    let mut lab = ours(1);
    lab.submit(busy(1, 0.5, 20_000));
    lab.settle(1, 20_000);
    lab.submit(lasting(50_000, exclusive(2)));
    assert_eq!(lab.submit(lasting(100, busy(3, 0.3, 2_000))), [(3, vec![0])]);
}

#[test]
fn the_gate_opens_sooner_behind_a_job_that_behaves_as_forecast() {
    let opens = |memory| {
        let mut lab = ours(1);
        lab.submit(busy(1, 0.5, 10_000));
        lab.load(0, memory, 0.4);
        lab.seen(1, memory);
        let until = lab.scheduler.fleet().device(gpu(0)).unwrap().gate.opens_at().unwrap();
        (until - lab.now).get().round()
    };
    assert_eq!((opens(9_000), opens(3_000), opens(12_000)), (20.0, 30.0, 30.0));
}
