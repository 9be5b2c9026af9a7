//! What holds of every simulation, whatever the trace and the rules.

use carma_core::{MiB, Outcome, Preset, Settings, replay};
use carma_sim::trace::{Generation, generate};
use carma_sim::{Catalogue, Disturbance, Estimator, InterferenceModel, Knowledge, Physics, Run, Servers, Sharing, Simulation, Trace};
use proptest::prelude::*;

#[derive(Debug, Clone)]
struct Case {
    servers: Servers,
    sharing: Sharing,
    settings: Settings,
    knowledge: Knowledge,
    disturbances: Vec<Disturbance>,
    jobs: usize,
    gap: u64,
    seed: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    let policies = ["exclusive", "magm", "or-magm", "est-magm", "or-rr", "or-lug", "ff", "bf", "horus", "lucid"];
    let servers = ["1xA100-40GB", "3xA100-40GB", "4xA100-40GB,2xH100-80GB", "2x4xA100-80GB"];
    let sharing = [Sharing::Streams, Sharing::Streams, Sharing::Mps, Sharing::Mig(3)];
    let trouble = ["gpu=0,from=500,until=4000,memory=9000,smact=0.4", "gpu=0,from=2000,until=2600"];
    (
        (prop::sample::select(policies.to_vec()), prop::sample::select(Preset::ALL.to_vec()), any::<bool>()),
        (prop::sample::select(servers.to_vec()), prop::sample::select(sharing.to_vec())),
        (any::<bool>(), 0.0..0.5, any::<bool>()),
        (1..30_usize, 1..400_u64, any::<u64>()),
    )
        .prop_map(move |((policy, preset, screen), (servers, sharing), (oracle, error, disturbed), (jobs, gap, seed))| {
            let mut settings = Settings { preset: Some(preset), policy: Some(policy.to_owned()), ..Settings::default() };
            settings.screen.get_or_insert_default().enabled = Some(screen);
            let memory = if oracle { Estimator::Oracle } else { Estimator::None };
            let disturbances = if disturbed {
                vec![Disturbance::foreign(trouble[0]).unwrap(), Disturbance::loss(trouble[1]).unwrap()]
            } else {
                Vec::new()
            };
            let knowledge = Knowledge { memory, memory_error: error, utilisation_error: error, ..Knowledge::default() };
            Case { servers: servers.parse().unwrap(), sharing, settings, knowledge, disturbances, jobs, gap, seed }
        })
}

struct World {
    catalogue: Catalogue,
    interference: InterferenceModel,
    trace: Trace,
}

impl World {
    fn of(case: &Case) -> Self {
        let catalogue = Catalogue::shipped();
        let mean_gap = carma_core::Seconds::from_secs(case.gap);
        let generation = Generation { mix: "65/27/8".parse().unwrap(), jobs: case.jobs, mean_gap, seed: case.seed };
        let trace = generate(&generation, &catalogue).unwrap();
        Self { catalogue, interference: InterferenceModel::shipped(), trace }
    }

    fn simulation<'a>(&'a self, case: &'a Case) -> Simulation<'a> {
        let models = (&self.catalogue, &self.interference);
        Simulation {
            sharing: case.sharing,
            disturbances: &case.disturbances,
            seed: case.seed,
            timeline: true,
            ..Simulation::new(models, &self.trace, &case.servers, &case.settings, &case.knowledge)
        }
    }
}

/// Seconds times value, summed over a device's moments up to the run's end.
fn integral(run: &Run, gpu: usize, value: impl Fn(&carma_sim::Moment) -> f64) -> f64 {
    let moments = &run.gpus[gpu].moments;
    let ends = moments.iter().skip(1).map(|moment| moment.since).chain([run.ended]);
    moments.iter().zip(ends).map(|(moment, end)| (end - moment.since).get() * value(moment)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn every_job_ends_or_has_a_reason(case in cases()) {
        let world = World::of(&case);
        let run = world.simulation(&case).run().unwrap();
        prop_assert_eq!(run.jobs.len(), world.trace.jobs.len());
        for (record, job) in run.jobs.iter().zip(&world.trace.jobs) {
            // A job of two GPUs on a server of one, or of more memory than an instance has, waits for what never comes; else every job ends.
            prop_assert!(record.outcome.is_some() || record.attempts.is_empty(), "{record:?}");
            let roomy = case.sharing != Sharing::Mig(3) && case.servers.gpus() > 1;
            prop_assert!(!roomy || record.outcome.is_some(), "{record:?}");
            if record.outcome == Some(Outcome::Succeeded) {
                let last = record.attempts.last().unwrap();
                prop_assert_eq!(last.gpus.len(), job.gpus as usize);
                prop_assert!(record.slowdown().unwrap() > 0.999, "{:?}", record);
            }
            // Attempts of a job follow each other, after its submission.
            let mut before = record.submitted;
            for attempt in &record.attempts {
                prop_assert!(attempt.launched >= before);
                before = attempt.ended.unwrap();
                prop_assert!(before > attempt.launched || attempt.verdict != Some(carma_core::Verdict::Succeeded));
            }
        }
    }

    #[test]
    fn memory_is_never_over_capacity_and_energy_is_the_integral_of_power(case in cases()) {
        let world = World::of(&case);
        let run = world.simulation(&case).run().unwrap();
        for (place, gpu) in run.gpus.iter().enumerate() {
            let most = gpu.moments.iter().map(|moment| moment.memory).max().unwrap();
            prop_assert!(most <= gpu.memory - MiB(1), "{most} on {}", gpu.kind.name);
            let pairs = [
                (gpu.totals.joules, integral(&run, place, |moment| moment.watts)),
                (gpu.totals.smact, integral(&run, place, |moment| moment.smact)),
                (gpu.totals.memory, integral(&run, place, |moment| moment.memory.0 as f64)),
                (gpu.totals.active, integral(&run, place, |moment| if moment.processes > 0 { 1.0 } else { 0.0 })),
            ];
            for (total, integral) in pairs {
                prop_assert!((total - integral).abs() <= 1e-6 * (1.0 + total.abs()), "{total} {integral}");
            }
            prop_assert!(gpu.moments.iter().all(|moment| moment.watts <= gpu.kind.limit_watts + 1e-9 && moment.smact <= 1.0));
        }
    }

    /// Work done is work submitted: what a job keeps busy alone, times its time alone, is what the GPUs did for it in all.
    #[test]
    fn work_is_conserved(jobs in 1..25_usize, gap in 1..200_u64, seed in any::<u64>()) {
        let settings = Settings { policy: Some("magm".to_owned()), ..Settings::default() };
        let knowledge = Knowledge { memory: Estimator::Oracle, ..Knowledge::default() };
        let (servers, sharing) = ("3xA100-40GB".parse().unwrap(), Sharing::Streams);
        let case = Case { servers, sharing, settings, knowledge, disturbances: Vec::new(), jobs, gap, seed };
        let world = World::of(&case);
        // DRAMA is read as it is; without quiet phases a job does all its time what the catalogue says.
        let physics = Physics { loading: (0.0, 0.0), winding_down: (0.0, 0.0), run_time: 0.0, start_up: (0.0, 0.0), ..Physics::default() };
        let run = Simulation { physics, ..world.simulation(&case) }.run().unwrap();
        prop_assume!(run.summary().oom_attempts == 0);
        let wide = |job: &carma_sim::TraceJob| world.catalogue.get(job.workload.unwrap()).ranks.iter().map(|rank| rank.drama.get()).sum::<f64>();
        let submitted: f64 = world.trace.jobs.iter().map(|job| wide(job) * job.time_alone(&world.catalogue).unwrap().get()).sum();
        let done: f64 = run.gpus.iter().map(|gpu| gpu.totals.drama).sum();
        let saturated = run.gpus.iter().flat_map(|gpu| &gpu.moments).any(|moment| moment.drama >= 1.0);
        prop_assert!(saturated || (done / submitted - 1.0).abs() < 1e-3, "{done} of {submitted}");
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_the_log_replays(case in cases()) {
        let world = World::of(&case);
        let (mut one, mut other) = (Vec::new(), Vec::new());
        let run = world.simulation(&case).run_logged(&mut one, &mut || ()).unwrap();
        prop_assert_eq!(&run, &world.simulation(&case).run_logged(&mut other, &mut || ()).unwrap());
        prop_assert_eq!(&run, &world.simulation(&case).run().unwrap(), "a log changes nothing");
        prop_assert!(one == other);
        let (events, scheduler) = replay(&one[..]).unwrap();
        prop_assert_eq!(events as u64, run.events);
        let over = scheduler.jobs().filter(|job| job.state.outcome().is_some()).count();
        prop_assert_eq!(over, run.jobs.iter().filter(|job| job.outcome.is_some()).count());
    }
}
