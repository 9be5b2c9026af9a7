//! Power in the simulated world: limits slow GPUs down, and budgets are kept by what is measured.

use carma_core::{PowerSettings, Settings};
use carma_sim::Run;

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
fn a_gpu_that_may_draw_half_above_idle_is_slower_by_a_quarter() {
    // 252 W on an A100 that idles at 52: of 200 W above idle 100 are left, and 0.5 to the power of 1 / 2.5 is 0.758.
    let run = lab("1xA100-40GB", PowerSettings { cap: Some(152.0), ..PowerSettings::default() }).job(0, "small").run();
    assert_eq!(spans(&run), [(0, 1316)], "10 s of start-up and 990 s of training at 0.758");
    assert!((peak(&run) - 152.0).abs() < 1e-9);
}

#[test]
fn a_budget_goes_by_what_is_measured_where_that_is_more_than_predicted() {
    // From its counters the job should draw 107 W above idle; it draws 200.
    let budget = |budget| {
        lab("2xA100-40GB", PowerSettings { budget: Some(budget), ..PowerSettings::default() }).job(0, "small").job(100, "small").run()
    };
    let tight = budget(350.0);
    assert_eq!(spans(&tight), [(0, 1000), (1000, 2000)]);
    assert!((peak(&tight) - 304.0).abs() < 1e-9);
    assert_eq!(spans(&budget(420.0)), [(0, 1000), (100, 1100)], "304 W, and 107 W as predicted");
}
