//! Fair share: whoever submits little fares no worse beside one who submits ten times as much than on half of the GPUs alone.

use carma_core::{Preset, QueueSettings, Seconds, Settings};
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
    Settings { preset: Some(Preset::Standard), policy: Some(policy.to_owned()), queue: Some(queue), ..Settings::default() }
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

#[test]
fn measure() {
    let catalogue = Catalogue::shipped();
    for policy in ["exclusive", "magm"] {
        for gap in [600, 1200, 2400, 4800] {
            let mut sums = [[0.0_f64; 2]; 3];
            for seed in 0..8 {
                let alone = jobs_of("light", 20, gap, seed, &catalogue);
                let mut both = jobs_of("heavy", 200, gap / 10, seed + 1000, &catalogue);
                both.jobs.extend(alone.jobs.clone());
                both.jobs.sort_by_key(|job| job.submitted);
                let half = light(&alone, "2xA100-40GB", &settings(policy, false), &catalogue, seed);
                let fair = light(&both, "4xA100-40GB", &settings(policy, true), &catalogue, seed);
                let unfair = light(&both, "4xA100-40GB", &settings(policy, false), &catalogue, seed);
                for (sum, summary) in sums.iter_mut().zip([&half, &fair, &unfair]) {
                    sum[0] += summary.mean_jct / 8.0;
                    sum[1] += summary.p95_jct / 8.0;
                }
                println!(
                    "  {policy} {gap} {seed}: half {:.0} {:.0} slow {:.2} | fair {:.0} {:.0} slow {:.2} wait {:.0} | fifo {:.0}",
                    half.mean_jct,
                    half.p95_jct,
                    half.mean_slowdown,
                    fair.mean_jct,
                    fair.p95_jct,
                    fair.mean_slowdown,
                    fair.mean_wait,
                    unfair.mean_jct
                );
            }
            println!(
                "{policy} gap {gap}: mean {:.2} p95 {:.2} of half; fifo {:.2}",
                sums[1][0] / sums[0][0],
                sums[1][1] / sums[0][1],
                sums[2][0] / sums[0][0]
            );
        }
    }
}
