//! Power: budgets, limits, and packing.

use carma_core::*;

use crate::lab::{A100, Lab, gpu, known, launches};

fn rules(power: PowerConfig) -> Config {
    Config { power, ..Config::from(Preset::Standard) }
}

const FREE: PowerConfig = PowerConfig { budget: None, cap: None, prefer: PowerPreference::Spread };

/// A job that draws 228 W above an A100's idle 52.
fn hungry(id: u64) -> JobSpec {
    let utilisation = Utilisation::of([(Metric::Smact, 0.9), (Metric::Drama, 0.419)]);
    JobSpec { utilisation, ..known(id, 4_000) }
}

#[test]
fn a_budget_holds_a_job_back_until_another_ends() {
    let mut lab = Lab::new(rules(PowerConfig { budget: Some(Watts(400.0)), ..FREE }), 2);
    assert_eq!(lab.submit(hungry(1)), [(1, vec![0])], "104 W of idle GPUs and 228 W");
    assert_eq!(lab.submit(hungry(2)), []);
    let budget = lab.obstacles(2, 1);
    assert!(matches!(budget[..], [Obstacle::PowerBudget { predicted, budget: Watts(400.0) }] if predicted > Watts(555.0)), "{budget:?}");
    assert_eq!(budget[0].to_string(), "its server's GPUs would draw 560 W (budget 400 W)");
    assert_eq!(launches(&lab.exit(1, Verdict::Succeeded)), [(2, vec![0])]);
}

#[test]
fn measured_power_above_the_prediction_counts() {
    let measured = |watts: f64| {
        let mut lab = Lab::new(rules(PowerConfig { budget: Some(Watts(600.0)), ..FREE }), 2);
        lab.submit(hungry(1));
        lab.settle(1, 4_000);
        let window = WindowSummary { power: Some(Statistics::steady(watts)), ..*crate::lab::window(4_000, 0.9, 0.4, 0.4) };
        lab.event(Event::GpuWindow { device: gpu(0), window: Box::new(window) });
        lab.submit(hungry(2))
    };
    assert_eq!(measured(280.0), [(2, vec![1])]);
    assert_eq!(measured(150.0), [(2, vec![1])], "less than predicted may be a pause");
    assert_eq!(measured(330.0), [], "330 W, and 280 W more");
}

#[test]
fn a_job_above_the_power_budget_can_never_start_and_blocks_no_job() {
    let mut lab = Lab::new(rules(PowerConfig { budget: Some(Watts(300.0)), ..FREE }), 2);
    assert_eq!(lab.submit(hungry(1)), []);
    let why = lab.scheduler.explain(JobId(1)).unwrap().to_string();
    assert!(
        why.contains("it alone would need 332 W on a server, and the power budget is 300 W; raise power.budget, or set power.cap"),
        "{why}"
    );
    let light = JobSpec { utilisation: Utilisation::of([(Metric::Smact, 0.3)]), ..known(2, 4_000) };
    assert_eq!(lab.submit(light), [(2, vec![0])]);
    // A limit that is set makes it possible.
    lab.exit(2, Verdict::Succeeded);
    assert_eq!(launches(&lab.event(Event::PowerLimited { device: gpu(0), limit: Some(Watts(200.0)) })), [(1, vec![0])]);
}

#[test]
fn jobs_behind_the_head_leave_it_its_power() {
    let mut lab = Lab::new(rules(PowerConfig { budget: Some(Watts(500.0)), ..FREE }), 3);
    let mild = |id| JobSpec { utilisation: Utilisation::of([(Metric::Smact, 0.3)]), ..known(id, 4_000) };
    assert_eq!(lab.submit(hungry(1)), [(1, vec![0])]);
    assert_eq!(lab.submit(hungry(2)), [], "384 W and 228 W more");
    assert_eq!(lab.submit(mild(3)), [], "it would fit, but then the head would wait for it too");
    let launched = launches(&lab.exit(1, Verdict::Succeeded));
    assert_eq!(launched, [(2, vec![0]), (3, vec![1])]);
}

#[test]
fn a_power_limit_is_set_once_and_removed_with_its_setting() {
    let mut lab = Lab::new(rules(PowerConfig { cap: Some(Watts(250.0)), ..FREE }), 0);
    let device = gpu(0);
    let limit = |limit: Option<f64>| Action::LimitPower { device, limit: limit.map(Watts) };
    assert_eq!(lab.event(Event::GpuAttached(DeviceSpec::new(device, A100))), [limit(Some(250.0))]);
    assert_eq!(lab.event(Event::Tick), []);
    lab.event(Event::GpuLost { device });
    assert_eq!(lab.event(Event::GpuRecovered { device }), [limit(Some(250.0))], "a GPU that was reset has forgotten it");
    let cap = |cap: f64| Settings { power: Some(PowerSettings { cap: Some(cap), ..PowerSettings::default() }), ..Settings::default() };
    assert_eq!(lab.event(Event::ConfigurationChanged(Box::new(cap(250.0)))), []);
    assert_eq!(lab.event(Event::ConfigurationChanged(Box::new(cap(0.0)))), [limit(None)]);
}

#[test]
fn packing_prefers_sharing_where_it_saves_energy() {
    let second = |prefer, smact: f64, memory| {
        let mut lab = Lab::new(rules(PowerConfig { prefer, ..FREE }), 2);
        let job = |id| JobSpec { utilisation: Utilisation::of([(Metric::Smact, smact)]), ..known(id, memory) };
        lab.submit(job(1));
        lab.settle(1, memory);
        lab.load(0, memory, smact);
        lab.submit(job(2))
    };
    assert_eq!(second(PowerPreference::Spread, 0.5, 2_000), [(2, vec![1])]);
    assert_eq!(second(PowerPreference::Pack, 0.5, 2_000), [(2, vec![0])]);
    assert_eq!(second(PowerPreference::Pack, 0.75, 16_000), [(2, vec![1])], "two that press each other hard cost more than they save");
}

#[test]
fn a_job_waits_for_the_limited_gpu_with_enough_power() {
    let mut lab = Lab::new(rules(PowerConfig { budget: Some(Watts(200.0)), ..FREE }), 2);
    lab.event(Event::PowerLimited { device: gpu(1), limit: Some(Watts(100.0)) });
    assert_eq!(lab.submit(hungry(1)), [(1, vec![1])], "52 W and 100 W");
    assert_eq!(lab.submit(hungry(2)), []);
    assert_eq!(lab.scheduler.explain(JobId(2)).unwrap().reason, WaitReason::Room);
    assert_eq!(launches(&lab.exit(1, Verdict::Succeeded)), [(2, vec![1])]);
}
