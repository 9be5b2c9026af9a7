//! What a simulated job costs, as the queue grows and at the size of a cluster. Published simulators of the field manage 4 to 130 jobs a
//! CPU-second.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use std::path::Path;

use carma_bench::{Calls, Case, Suite};
use carma_core::{Preset, Seconds, Settings};
use carma_sim::trace::{DurationRule, Generation, ReadLimits, generate, map};
use carma_sim::{Catalogue, Estimator, InterferenceModel, Knowledge, Servers, Simulation, Trace};

/// As many GPUs as the Philly cluster had.
const PHILLY: &str = "311x8xA100-40GB,2xA100-40GB";

struct World {
    catalogue: Catalogue,
    interference: InterferenceModel,
    knowledge: Knowledge,
    trace: Trace,
    servers: Servers,
    settings: Settings,
}

impl World {
    fn new(trace: impl FnOnce(&Catalogue) -> Trace, servers: &str, preset: Preset, policy: &str) -> Self {
        let catalogue = Catalogue::shipped();
        Self {
            trace: trace(&catalogue),
            catalogue,
            interference: InterferenceModel::shipped(),
            knowledge: Knowledge { memory: Estimator::Oracle, ..Knowledge::default() },
            servers: servers.parse().unwrap(),
            settings: Settings { preset: Some(preset), policy: Some(policy.to_owned()), ..Settings::default() },
        }
    }

    fn run(&self) {
        let models = (&self.catalogue, &self.interference);
        let run = Simulation::new(models, &self.trace, &self.servers, &self.settings, &self.knowledge).run();
        assert_eq!(run.unwrap().summary().succeeded, self.trace.jobs.len());
    }
}

/// Jobs of the paper's mix, nearly all of them in the queue at once.
fn crowd(jobs: usize) -> impl Fn(&Catalogue) -> Trace {
    move |catalogue| {
        let generation = Generation { mix: "65/27/8".parse().unwrap(), jobs, mean_gap: Seconds::TICK, seed: 1 };
        generate(&generation, catalogue).unwrap()
    }
}

/// The Philly cluster's 82,247 jobs where the published log is at hand; else as many made up, over as many days.
fn cluster(catalogue: &Catalogue) -> Trace {
    let folder = std::env::var("CARMA_DATA").unwrap_or_default();
    let log = Path::new(&folder).join("other/philly_82k.csv.gz");
    if let Ok(trace) = Trace::read(&log, catalogue, &ReadLimits::default()) {
        return map(&trace, catalogue, 0, DurationRule::Own);
    }
    let generation = Generation { mix: "65/27/8".parse().unwrap(), jobs: 82_247, mean_gap: Seconds::from_secs(80), seed: 1 };
    let mut trace = generate(&generation, catalogue).unwrap();
    // Philly's jobs run for nearly six hours on average.
    for job in &mut trace.jobs {
        let seconds = job.time_alone(catalogue).unwrap().get();
        job.duration = Seconds::new(seconds * 15.0).ok();
    }
    trace
}

fn main() {
    let mut queues = Suite::with_calls("A simulated job, by the length of the queue (8 GPUs)", Calls { timed: 3, counted: 0 });
    for preset in [Preset::Aegis, Preset::Standard] {
        let rules = preset.name();
        let reference = format!("{rules}: 1000 jobs");
        for jobs in [1_000, 10_000, 100_000] {
            queues.run(&Case {
                name: &format!("{rules}: {jobs} jobs"),
                units: jobs,
                reference: &reference,
                setup: &|| World::new(crowd(jobs), "8xA100-40GB", preset, "magm"),
                prepare: &|_| (),
                call: &|world| world.run(),
            });
        }
    }
    let mut counted = Suite::with_calls("The same in instructions, for shorter queues", Calls { timed: 3, counted: 1 });
    for jobs in [250, 1_000, 4_000] {
        counted.run(&Case {
            name: &format!("aegis, counted: {jobs} jobs"),
            units: jobs,
            reference: "aegis, counted: 250 jobs",
            setup: &|| World::new(crowd(jobs), "8xA100-40GB", Preset::Aegis, "magm"),
            prepare: &|_| (),
            call: &|world| world.run(),
        });
    }
    let real = std::env::var("CARMA_DATA").is_ok();
    let title = if real { "The Philly cluster, 2017" } else { "A made-up cluster (CARMA_DATA names no folder with Philly's log)" };
    let mut clusters = Suite::with_calls(title, Calls { timed: 3, counted: 0 });
    let name = "82247 jobs, 2490 GPUs, 312 servers: a job";
    for (case, servers, preset, policy) in [
        (name, PHILLY, Preset::Standard, "magm"),
        ("2490 GPUs, preset carma", PHILLY, Preset::Carma, "carma"),
        ("600 GPUs, most of them shared", "75x8xA100-40GB", Preset::Aegis, "magm"),
        ("600 GPUs, preset carma", "75x8xA100-40GB", Preset::Carma, "carma"),
    ] {
        clusters.run(&Case {
            name: case,
            units: 82_247,
            reference: name,
            setup: &|| World::new(cluster, servers, preset, policy),
            prepare: &|_| (),
            call: &|world| world.run(),
        });
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(peak) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
        println!("most memory of all of the above: {}", peak.trim());
    }
}
