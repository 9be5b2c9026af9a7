//! What progress teaches of interference.

use carma_core::*;

use crate::lab::{Lab, job};

/// A small job of middling activity: two of them are predicted to be about 1.2 times as slow together as alone.
fn small(id: u64) -> JobSpec {
    let utilisation = Utilisation::of([(Metric::Smact, 0.5)]);
    JobSpec { utilisation, memory: MemoryNeed::known(MiB(4_000)), ..job(id) }
}

fn interference(lab: &Lab, id: u64) -> Interference {
    lab.scheduler.job(JobId(id)).unwrap().spec.interference
}

/// Two jobs on one GPU. The first makes this share of its progress alone.
fn beside(config: Config, speed: f64) -> Lab {
    let mut lab = Lab::new(config, 1);
    lab.submit(small(1));
    lab.settle(1, 4_000);
    lab.reports(1, 0, 0.0);
    lab.reports(1, 100, 0.1);
    assert_eq!(lab.submit(small(2)), [(2, vec![0])]);
    lab.settle(2, 4_000);
    lab.reports(1, 120, 0.2);
    lab.reports(1, 200, 0.2 + 0.2 * speed);
    lab
}

fn predicted(lab: &Lab, of: u64, beside: u64) -> f64 {
    let profile = |id| InterferenceProfile::of(&lab.scheduler.job(JobId(id)).unwrap().spec);
    CoRunners::of([profile(beside)]).slowdown(profile(of), CollocationMode::Streams)
}

#[test]
fn both_sides_are_corrected_until_they_explain_what_was_seen() {
    let mut lab = beside(Config::default(), 0.5);
    let (slowed, other) = (interference(&lab, 1), interference(&lab, 2));
    assert!(slowed.sensitivity > 1.5 && slowed.pressure < 1.1, "{slowed:?}");
    assert!(other.pressure > 1.5 && other.sensitivity < 1.1, "{other:?}");
    for step in 1..=10 {
        lab.reports(1, 100, 0.3 + 0.05 * f64::from(step));
    }
    assert!((predicted(&lab, 1, 2) - 2.0).abs() < 0.1, "{}", predicted(&lab, 1, 2));
}

#[test]
fn better_results_than_predicted_are_learned_too() {
    let lab = beside(Config::default(), 0.99);
    assert!(interference(&lab, 1).sensitivity < 0.8 && interference(&lab, 2).pressure < 0.8);
}

#[test]
fn a_job_with_high_measured_pressure_gets_no_more_neighbours() {
    let joins = |speed| {
        let mut lab = beside(Config::default(), speed);
        lab.settle(2, 4_000);
        !lab.submit(small(3)).is_empty()
    };
    assert!(joins(0.85));
    assert!(!joins(0.2));
}

#[test]
fn a_job_starts_with_the_interference_of_earlier_runs() {
    let medium = |id| JobSpec { memory: MemoryNeed::known(MiB(12_000)), ..small(id) };
    let place = |interference| {
        let mut lab = Lab::new(Config::default(), 1);
        lab.submit(medium(1));
        lab.settle(1, 12_000);
        !lab.submit(JobSpec { interference, ..medium(2) }).is_empty()
    };
    assert!(place(Interference::default()));
    assert!(!place(Interference { pressure: 4.0, sensitivity: 4.0 }));
    let mut lab = Lab::new(Config::default(), 1);
    let none = Interference { pressure: f64::NAN, sensitivity: 1.0 };
    assert_eq!(
        lab.refused(Event::JobSubmitted(Box::new(JobSpec { interference: none, ..small(1) }))),
        "job 1 cannot be accepted: interference: give factors from 0.5 to 4"
    );
}

#[test]
fn nothing_is_learned_if_disabled_or_unused() {
    let quiet = ForecastSettings { learn: Some(false), ..ForecastSettings::default() };
    for settings in
        [Settings { forecast: Some(quiet), ..Settings::default() }, Settings { policy: Some("magm".to_owned()), ..Settings::default() }]
    {
        let lab = beside(settings.check().unwrap(), 0.5);
        assert!(interference(&lab, 1).is_as_predicted() && interference(&lab, 2).is_as_predicted());
    }
}

#[test]
fn unknown_jobs_keep_a_margin_to_the_bounds() {
    let unknown = JobSpec { utilisation: Utilisation::default(), ..small(1) };
    let as_active = Utilisation::of([(Metric::Smact, InterferenceProfile::of(&unknown).smact)]);
    let known = JobSpec { utilisation: as_active, ..small(1) };
    let [unknown, known] = [&unknown, &known].map(|spec| CoRunners::of([InterferenceProfile::of(spec)]));
    let me = InterferenceProfile::of(&small(2));
    let mode = CollocationMode::Streams;
    assert!((unknown.slowdown(me, mode) / known.slowdown(me, mode) - 1.0).abs() < 1e-9);
    assert!((known.worst_slowdown(me, mode) / known.slowdown(me, mode) - 1.0).abs() < 1e-9);
    assert!(unknown.worst_slowdown(me, mode) > 1.05 * known.worst_slowdown(me, mode));
}
