//! Power in the simulation: limits slow GPUs down, and budgets use the measured power.

use carma_core::{PowerSettings, Seconds, Settings};
use carma_sim::{Catalogue, Estimator, InterferenceModel, Knowledge, Run, Simulation, Trace, TraceJob, WorkloadId};

use crate::lab::{Lab, spans};

fn lab(servers: &str, power: PowerSettings) -> Lab {
    let lab = Lab::new(servers, "magm");
    Lab { settings: Settings { power: Some(power), ..lab.settings.clone() }, ..lab }
}

/// The most that all GPUs drew together.
fn peak(run: &Run) -> f64 {
    let times = run.gpus.iter().flat_map(|gpu| gpu.moments.iter().map(|moment| moment.since));
    let at =
        |time| run.gpus.iter().map(|gpu| gpu.moments.iter().rfind(|moment| moment.since <= time).map_or(0.0, |moment| moment.watts)).sum();
    times.map(at).fold(0.0, f64::max)
}

#[test]
fn a_limit_of_half_the_power_above_idle_slows_by_a_quarter() {
    // 252 W on an A100 that idles at 52: of 200 W above idle 100 are left, and 0.5 to the power of 1 / 2.5 is 0.758.
    let run = lab("1xA100-40GB", PowerSettings { cap: Some(152.0), ..PowerSettings::default() }).job(0, "small").run();
    assert_eq!(spans(&run), [(0, 1316)], "10 s of start-up and 990 s of training at 0.758");
    assert!((peak(&run) - 152.0).abs() < 1e-9);
}

#[test]
fn a_budget_uses_the_measured_power_if_it_is_higher() {
    // From its counters the job should draw 107 W above idle; it draws 200.
    let budget = |budget| {
        lab("2xA100-40GB", PowerSettings { budget: Some(budget), ..PowerSettings::default() }).job(0, "small").job(100, "small").run()
    };
    let tight = budget(340.0);
    assert_eq!(spans(&tight), [(0, 1000), (1000, 2000)]);
    assert!((peak(&tight) - 304.0).abs() < 1e-9);
    assert_eq!(spans(&budget(420.0)), [(0, 1000), (100, 1100)], "304 W, and 107 W as predicted");
}

/// For so long all GPUs together drew more than these watts, as a share of the run.
fn time_above(run: &Run, watts: f64) -> f64 {
    let mut times: Vec<_> = run.gpus.iter().flat_map(|gpu| gpu.moments.iter().map(|moment| moment.since)).collect();
    times.sort_unstable();
    times.dedup();
    let drawn = |time| -> f64 {
        run.gpus.iter().map(|gpu| gpu.moments.iter().rfind(|moment| moment.since <= time).map_or(0.0, |moment| moment.watts)).sum()
    };
    let above = times.windows(2).filter(|span| drawn(span[0]) > watts).map(|span| (span[1] - span[0]).get()).sum::<f64>();
    above / (run.ended - times[0]).get()
}

/// Estimates err by a third, the simulated power by what the fit misses, and no two pairs are alike: the budget holds all the same, but
/// for the time until a draw beyond its forecast is measured.
#[test]
fn a_budget_is_kept_with_estimates_that_err() {
    let (catalogue, interference) = (Catalogue::shipped(), InterferenceModel::shipped());
    let singles: Vec<WorkloadId> = catalogue.iter().filter(|(_, workload)| workload.gpus() == 1).map(|(id, _)| id).collect();
    let job = |(place, workload): (u64, WorkloadId)| TraceJob {
        name: place.to_string(),
        submitted: Seconds::from_secs(30 * place),
        gpus: 1,
        workload: Some(workload),
        duration: Some(Seconds::from_secs(900)),
        owner: None,
    };
    let trace = Trace { jobs: (0..60).zip(singles.into_iter().cycle()).map(job).collect(), ..Trace::default() };
    let servers = "3xA100-40GB".parse().unwrap();
    let knowledge = Knowledge { memory: Estimator::Oracle, utilisation_error: 0.3, ..Knowledge::default() };
    for budget in [500.0, 700.0, 900.0] {
        let power = Some(PowerSettings { budget: Some(budget), ..PowerSettings::default() });
        let settings = Settings { policy: Some("magm".to_owned()), power, ..Settings::default() };
        let run = Simulation { timeline: true, ..Simulation::new((&catalogue, &interference), &trace, &servers, &settings, &knowledge) }
            .run()
            .unwrap();
        let (beyond, far_beyond) = (time_above(&run, budget), time_above(&run, budget * 1.1));
        println!("{budget} W: above for {beyond:.3} of the time, by a tenth for {far_beyond:.3}, at most {:.0} W", peak(&run));
        assert!(beyond < 0.1 && far_beyond < 0.02, "{budget} W: {beyond} and {far_beyond}");
    }
}
