//! Risk scores and the published thresholds: at, above and below each bound.

use carma_core::*;

use crate::lab::{Lab, gpu, known, share};

/// Whether a GPU with this steady load may be shared.
fn shared(preset: Preset, smact: f64, smocc: f64, drama: f64) -> bool {
    let mut lab = Lab::with_policy(preset, "magm", 1);
    lab.busy(0, 5_000, smact, smocc, drama);
    !lab.submit(known(1, 1_000)).is_empty()
}

#[test]
fn preset_first_refuses_only_above_its_bound() {
    assert!(shared(Preset::First, 0.79, 1.0, 1.0));
    assert!(shared(Preset::First, 0.80, 1.0, 1.0), "exactly 0.80 is not above it");
    assert!(!shared(Preset::First, 0.81, 0.0, 0.0), "SM activity alone decides");
}

#[test]
fn preset_paper_needs_smact_and_another_metric() {
    for (smact, smocc, drama, expected) in [
        (0.79, 0.99, 0.99, true),
        (0.80, 0.45, 0.00, false),
        (0.80, 0.44, 0.39, true),
        (0.80, 0.00, 0.40, false),
        (0.81, 0.46, 0.41, false),
        (1.00, 0.44, 0.39, true),
    ] {
        assert_eq!(shared(Preset::Paper, smact, smocc, drama), expected, "{smact} {smocc} {drama}");
        assert_eq!(shared(Preset::Standard, smact, smocc, drama), expected, "ours starts from the paper's screen");
    }
}

#[test]
fn preset_aegis_has_lower_bounds() {
    for (smact, smocc, drama, expected) in [
        (0.64, 0.99, 0.99, true),
        (0.65, 0.35, 0.00, false),
        (0.65, 0.34, 0.49, true),
        (0.65, 0.00, 0.50, false),
        (0.66, 0.36, 0.51, false),
        (1.00, 0.34, 0.49, true),
    ] {
        assert_eq!(shared(Preset::Aegis, smact, smocc, drama), expected, "{smact} {smocc} {drama}");
    }
}

#[test]
fn without_profiling_metrics_utilisation_has_its_own_bound() {
    for preset in Preset::ALL {
        for (utilisation, expected) in [(0.69, true), (0.70, false), (0.71, false)] {
            let mut lab = Lab::with_policy(preset, "magm", 1);
            let steady = Some(Statistics::steady(utilisation));
            let window = WindowSummary {
                full: true,
                memory_used: MiB(5_000),
                statistics: PerMetric::NONE.with(Metric::Utilisation, steady),
                ..WindowSummary::default()
            };
            lab.event(Event::GpuWindow { device: gpu(0), window: Box::new(window) });
            assert_eq!(!lab.submit(known(1, 1_000)).is_empty(), expected, "{preset:?} {utilisation}");
        }
    }
}

#[test]
fn with_smact_alone_smact_decides() {
    let mut lab = Lab::with_policy(Preset::Paper, "magm", 1);
    let window = WindowSummary {
        full: true,
        memory_used: MiB(5_000),
        statistics: PerMetric::NONE.with(Metric::Smact, Some(Statistics::steady(0.8))),
        ..WindowSummary::default()
    };
    lab.event(Event::GpuWindow { device: gpu(0), window: Box::new(window) });
    assert_eq!(lab.submit(known(1, 1_000)), []);
    let busy = Obstacle::Busy { metric: Metric::Smact, score: share(0.8), limit: share(0.8), and: None };
    assert_eq!(lab.obstacles(1, 0), [busy]);
}

#[test]
fn the_weights_of_each_preset() {
    let of = Statistics { mean: 0.1, median: 0.2, p95: 0.9, ema: 0.4 };
    assert_eq!(RiskWeights::of(Base::First).score(&of), share(0.1));
    assert_eq!(RiskWeights::of(Base::Paper).score(&of), share(0.43));
    assert_eq!(RiskWeights::of(Base::Aegis).score(&of), share(0.4));
}

#[test]
fn guards_margins_and_floors_of_each_preset() {
    // Largest known need that fits beside 20,000 MiB on 40,960, and what must be free for an unknown one.
    for (preset, largest) in [(Preset::First, 18_400), (Preset::Paper, 18_400), (Preset::Aegis, 19_936), (Preset::Standard, 19_424)] {
        let fits = |need| {
            let mut lab = Lab::with_policy(preset, "magm", 1);
            lab.load(0, 20_000, 0.1);
            !lab.submit(known(1, need)).is_empty()
        };
        assert!(fits(largest) && !fits(largest + 1), "{preset:?}");
        let floor_fits = |used| {
            let mut lab = Lab::with_policy(preset, "or-magm", 1);
            lab.load(0, used, 0.1);
            !lab.submit(known(1, 1)).is_empty()
        };
        assert!(floor_fits(40_960 - 512 - 5_120) && !floor_fits(40_960 - 512 - 5_119), "{preset:?}");
    }
    let config = Config::from(Preset::Aegis);
    assert_eq!(config.admission.guard_of(MiB(81_920)), MiB(819), "1 % where that is more than 512 MiB");
}

#[test]
fn a_cap_on_utilisation_can_change_at_run_time() {
    let mut lab = Lab::with_policy(Preset::Paper, "magm", 1);
    lab.load(0, 5_000, 0.50);
    let cap = |cap| {
        let admission = AdmissionSettings { utilisation_cap: Some(cap), ..AdmissionSettings::default() };
        Event::ConfigurationChanged(Box::new(Settings { preset: Some(Preset::Paper), admission: Some(admission), ..Settings::default() }))
    };
    lab.event(cap(0.49));
    assert_eq!(lab.submit(known(1, 1_000)), []);
    assert_eq!(lab.obstacles(1, 0), [Obstacle::UtilisationCap { score: share(0.50), cap: share(0.49) }]);
    assert_eq!(crate::lab::launches(&lab.event(cap(0.50))), [(1, vec![0])], "the waiting job goes at once");
}

#[test]
fn tensor_activity_influences_no_decision() {
    for preset in Preset::ALL {
        let survey = |tensor: Option<f64>| {
            let mut lab = Lab::with_policy(preset, "magm", 1);
            let mut window = crate::lab::window(5_000, 0.5, 0.2, 0.2);
            window.statistics[Metric::Tensor] = tensor.map(Statistics::steady);
            lab.event(Event::GpuWindow { device: gpu(0), window });
            let report = lab.scheduler.survey().next().unwrap();
            (report, lab.submit(known(1, 1_000)))
        };
        assert_eq!(survey(None), survey(Some(1.0)), "{preset:?}");
    }
}

#[test]
fn a_finished_window_equals_its_samples() {
    let sample = |second: u64| {
        let wave = (second % 7) as f64 / 10.0;
        Sample {
            utilisation: Utilisation::of([(Metric::Smact, 0.4 + wave), (Metric::Smocc, wave)])
                .with(Metric::Drama, (!second.is_multiple_of(3)).then(|| share(1.0 - wave))),
            ..Sample::new(Time::from_secs(second), MiB(5_000 + second))
        }
    };
    let mut fed = Lab::with_policy(Preset::Paper, "magm", 2);
    let mut summarised = Lab::with_policy(Preset::Paper, "magm", 2);
    let mut window = Window::new(fed.scheduler.config().window.rule());
    for second in 1000..1075 {
        fed.now = Time::from_secs(second);
        fed.event(Event::GpuSampled { device: gpu(0), sample: sample(second) });
        window.push(sample(second));
        summarised.now = fed.now;
        summarised.event(Event::GpuWindow { device: gpu(0), window: Box::new(window.summary().unwrap()) });
        assert!(fed.scheduler.survey().eq(summarised.scheduler.survey()), "at {second} s");
    }
    assert!(fed.scheduler.survey().next().unwrap().risk.score(Metric::Smact) > Some(share(0.7)));
}

#[test]
fn no_placement_before_the_first_window_is_full() {
    for (preset, waits_when_idle) in [(Preset::Paper, true), (Preset::Standard, false)] {
        let mut lab = Lab::with_policy(preset, "magm", 0);
        lab.event(Event::GpuAttached(DeviceSpec::new(gpu(0), MiB(40_960))));
        assert_eq!(lab.submit(known(1, 1_000)), [], "it was never sampled");
        let mut launched = Vec::new();
        for second in 0..30 {
            lab.now = Time::from_secs(1000 + second);
            let sample = Sample::new(lab.now, MiB(4));
            launched.extend(lab.event(Event::GpuSampled { device: gpu(0), sample }).iter().map(|_| second));
        }
        assert_eq!(launched, [if waits_when_idle { 29 } else { 0 }], "{preset:?}");
    }
}

#[test]
fn a_gpu_without_samples_takes_no_jobs() {
    let mut lab = Lab::with_policy(Preset::Standard, "magm", 1);
    let sample = Sample::new(lab.now, MiB(4));
    lab.event(Event::GpuSampled { device: gpu(0), sample });
    lab.now = lab.now + Seconds::from_secs(31);
    assert_eq!(lab.submit(known(1, 1_000)), []);
    assert!(lab.obstacles(1, 0).contains(&Obstacle::Stale { age: Seconds::from_secs(31) }));
    let sample = Sample::new(lab.now, MiB(4));
    assert_eq!(crate::lab::launches(&lab.event(Event::GpuSampled { device: gpu(0), sample })), [(1, vec![0])]);
}

#[test]
fn a_clock_that_was_set_back_does_not_make_samples_old() {
    let mut lab = Lab::with_policy(Preset::Standard, "magm", 1);
    let sample = Sample::new(Time::from_secs(5), MiB(4));
    lab.event(Event::GpuSampled { device: gpu(0), sample });
    assert_eq!(lab.submit(known(1, 1_000)), [(1, vec![0])], "it came in now, whatever time it bears");
}

#[test]
fn a_shorter_window_counts_at_once() {
    let mut lab = Lab::with_policy(Preset::First, "magm", 0);
    lab.event(Event::GpuAttached(DeviceSpec::new(gpu(0), MiB(40_960))));
    for _ in 0..40 {
        lab.now = lab.now + Seconds::from_secs(1);
        let sample = Sample::new(lab.now, MiB(4));
        lab.event(Event::GpuSampled { device: gpu(0), sample });
    }
    assert_eq!(lab.submit(known(1, 1_000)), [], "40 s of 90");
    let paper = Settings { preset: Some(Preset::Paper), ..Settings::default() };
    assert_eq!(crate::lab::launches(&lab.event(Event::ConfigurationChanged(Box::new(paper)))), [(1, vec![0])]);
}

#[test]
fn the_survey_lists_unusable_gpus_with_the_reason() {
    let mut lab = Lab::with_policy(Preset::Paper, "magm", 3);
    lab.busy(1, 9_000, 0.9, 0.5, 0.1);
    lab.event(Event::GpuDrained { device: gpu(2) });
    let report: Vec<String> = lab
        .scheduler
        .survey()
        .map(|report| {
            let obstacles: Vec<String> = report.obstacles.iter().map(ToString::to_string).collect();
            format!("{}: {} available; {}", report.device, report.available, obstacles.join("; "))
        })
        .collect();
    insta::assert_snapshot!(report.join("\n"), @r"
    s0/gpu0: 39.5 GiB available; 
    s0/gpu1: 30.7 GiB available; is busy: SMACT 0.90 (limit 0.80) and SMOCC 0.50 (limit 0.45)
    s0/gpu2: 39.5 GiB available; is drained
    ");
}
