//! Fair share: completion times of a user with few jobs beside one with ten times as many, against half of the GPUs alone.

use std::ops::Range;

use carma_core::{QueueSettings, Seconds, Settings};
use carma_sim::trace::{Generation, generate};
use carma_sim::{Catalogue, Estimator, InterferenceModel, Knowledge, Servers, Simulation, Trace, UserSummary};

/// A trace of one user.
fn jobs_of(user: &str, jobs: usize, gap: u64, seed: u64, catalogue: &Catalogue) -> Trace {
    let mean_gap = Seconds::from_secs(gap);
    let mut trace = generate(&Generation { mix: "65/27/8".parse().unwrap(), jobs, mean_gap, seed }, catalogue).unwrap();
    for job in &mut trace.jobs {
        job.owner = Some(user.to_owned());
    }
    trace
}

fn settings(policy: &str, fair_share: bool) -> Settings {
    let queue = QueueSettings { fair_share: Some(fair_share), ..QueueSettings::default() };
    Settings { policy: Some(policy.to_owned()), queue: Some(queue), ..Settings::default() }
}

fn light(trace: &Trace, servers: &str, settings: &Settings, catalogue: &Catalogue, seed: u64) -> UserSummary {
    let servers: Servers = servers.parse().unwrap();
    let knowledge = Knowledge {
        memory: Estimator::Oracle,
        memory_error: 0.1,
        utilisation_error: 0.3,
        duration_error: Some(0.3),
        ..Knowledge::default()
    };
    let interference = InterferenceModel::shipped();
    let simulation = Simulation { seed, ..Simulation::new((catalogue, &interference), trace, &servers, settings, &knowledge) };
    let run = simulation.run().unwrap();
    run.by_user(trace).into_iter().find(|summary| summary.user == "light").unwrap()
}

/// Mean and 95th percentile of the light user's completion times beside the heavy one, over those on half of the GPUs alone: the means of several seeds.
fn beside_over_alone(policy: &str, gap: u64, fair_share: bool) -> (f64, f64) {
    let catalogue = Catalogue::shipped();
    let (mut beside, mut alone) = ((0.0, 0.0), (0.0, 0.0));
    for seed in SEEDS {
        let own = jobs_of("light", 20, gap, seed, &catalogue);
        let mut both = jobs_of("heavy", 200, gap / 10, seed + 1000, &catalogue);
        both.jobs.extend(own.jobs.clone());
        both.jobs.sort_by_key(|job| job.submitted);
        let half = light(&own, "2xA100-40GB", &settings(policy, fair_share), &catalogue, seed);
        let shared = light(&both, "4xA100-40GB", &settings(policy, fair_share), &catalogue, seed);
        for (sum, summary) in [(&mut alone, half), (&mut beside, shared)] {
            *sum = (sum.0 + summary.mean_jct, sum.1 + summary.p95_jct);
        }
    }
    (beside.0 / alone.0, beside.1 / alone.1)
}

/// None of those by which the rules were chosen.
const SEEDS: Range<u64> = 100..112;

#[test]
fn a_light_user_has_the_times_of_half_the_gpus_without_sharing() {
    let (mean, p95) = beside_over_alone("exclusive", 1200, true);
    assert!(mean <= 1.0 && p95 <= 1.0, "{mean} {p95}");
}

/// Where GPUs are shared it is the same to a few hundredths: jobs of the other that run already are in the way.
#[test]
fn fair_share_helps_a_light_user_with_shared_gpus() {
    let [(fair, _), (unfair, _)] = [true, false].map(|fair_share| beside_over_alone("magm", 1200, fair_share));
    assert!(unfair > 2.0 * fair, "{unfair} without fair share, {fair} with it");
    let [(fair, p95), (unfair, _)] = [true, false].map(|fair_share| beside_over_alone("carma", 2400, fair_share));
    assert!(fair <= 1.08 && p95 <= 1.08 && unfair > 1.5 * fair, "{unfair} without fair share, {fair} and {p95} with it");
}
