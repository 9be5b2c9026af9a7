//! The best order that a search finds.

use carma_core::Seconds;
use carma_sim::{Aim, Run};

use crate::lab::Lab;

/// Four jobs of 1,000 s and one of 4,000 s, none of which can share a GPU.
fn one_long_job() -> Lab {
    let mut lab = [0; 5].into_iter().fold(Lab::new("2xA100-40GB", "exclusive"), |lab, second| lab.job(second, "large"));
    lab.trace.jobs[4].duration = Some(Seconds::from_secs(4_000));
    lab
}

#[test]
fn the_longest_goes_first_for_the_makespan_and_last_for_the_mean() {
    let lab = one_long_job();
    let best = |aim| lab.simulation().best_order(aim, 100).unwrap().summary();
    let shortest = best(Aim::Makespan).makespan;
    assert!((shortest - 5_000.0).abs() < 1.0, "two had begun when the long one came, which goes next: {shortest}");
    let least = best(Aim::MeanJct);
    assert!((least.mean_jct - (2.0 * 1_000.0 + 2.0 * 2_000.0 + 6_000.0) / 5.0).abs() < 1.0, "{}", least.mean_jct);
    let both = best(Aim::All);
    assert!(both.makespan < 6_000.0 && both.mean_jct >= least.mean_jct, "{both:?}");
}

#[test]
fn a_search_is_deterministic() {
    let lab = one_long_job();
    let ends = |run: Run| run.jobs.into_iter().map(|job| job.ended).collect::<Vec<_>>();
    let [one, other] = [0, 1].map(|_| ends(lab.simulation().best_order(Aim::All, 30).unwrap()));
    assert_eq!(one, other);
}

#[test]
fn aims_are_named() {
    assert_eq!("p95-jct".parse(), Ok(Aim::P95Jct));
    let unknown = "speed".parse::<Aim>().unwrap_err();
    assert_eq!(unknown.to_string(), "unknown aim \"speed\": give makespan, mean-jct, p95-jct or all");
}
