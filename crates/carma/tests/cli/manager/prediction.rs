//! The simulator's prediction of a run against the run.

use serde_json::Value;

use super::served::Served;

/// Light and heavy jobs that two GPUs can share.
pub(super) const LOAD: &str = "submit,workload,duration\n\
    0,inception_imagenet_bs128,500\n\
    10,bert_base_wiki_bs32,450\n\
    60,resnet18_cifar100_bs32_50e,400\n\
    90,mobilenet_cifar100_bs64_50e,400\n\
    150,efficientnet_imagenet_bs64,350\n";

#[test]
fn the_simulator_predicts_a_run_within_ten_percent() {
    let served = Served::start("2xA100-40GB", 60.0, "[window]\nperiod = 5\n[manager.gpus]\nperiod = 5\n");
    let trace = served.write("load.csv", LOAD);
    let report = served.json(&["replay", &trace, "--against", "carma", "--json"]);
    let (measured, simulated) = (&report["measured"], &report["against"]["simulated"]);
    for figure in ["makespan", "mean_execution", "mean_jct", "energy"] {
        let number = |run: &Value| run[figure].as_f64().unwrap();
        let off = number(simulated) / number(measured) - 1.0;
        assert!(off.abs() < 0.10, "{figure} is off by {:.1} %: {report:#}", 100.0 * off);
    }
    assert_eq!((measured["failed"].as_f64(), measured["oom_attempts"].as_f64()), (Some(0.0), Some(0.0)), "{report:#}");
}
