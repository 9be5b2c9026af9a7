//! `carma simulate`, `compare`, `validate` and `calibrate`, as people use them.

use std::fs;
use std::path::Path;

use carma_testing::{need, published_data};

use super::{carma, stderr, stdout};

const TRACE: &str = "submit,workload\n0,resnet50_imagenet_bs64\n10,resnet18_cifar100_bs32_20e\n20,unet_voc\n30,bert_base_wiki_bs32\n\
                     40,mobilenet_cifar100_bs64_20e\n50,gpt2_large_wiki_bs8\n60,efficientnet_imagenet_bs64\n";

fn written(directory: &Path, name: &str, text: &str) -> String {
    let file = directory.join(name);
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_run_is_summed_up_and_its_log_replays() {
    let scratch = tempfile::tempdir().unwrap();
    let trace = written(scratch.path(), "trace.csv", TRACE);
    let [jobs, log] = ["jobs.csv", "events.jsonl"].map(|name| scratch.path().join(name).to_str().unwrap().to_owned());
    let run = ["simulate", &trace, "--server", "2xA100-40GB", "--policy", "magm", "--jobs", &jobs, "--event-log", &log];
    let summary = stdout(&run);
    insta::assert_snapshot!("simulate", summary);
    assert_eq!(summary, stdout(&run), "the same seed, the same bytes");
    let written = fs::read_to_string(&jobs).unwrap().replace(scratch.path().to_str().unwrap(), "FOLDER");
    insta::assert_snapshot!("simulate-jobs", written.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    assert!(stdout(&["replay-log", &log]).contains("lead to the same decisions; of 7 jobs 7 are over"));
    let json: serde_json::Value = serde_json::from_str(&stdout(&["simulate", &trace, "--json", "--seed", "3"])).unwrap();
    assert_eq!(json["succeeded"], 7);
    let origin = &json["origin"];
    assert_eq!((&origin["seeds"], &origin["policies"][0]["estimator"]), (&"3".into(), &"oracle".into()));
    assert_eq!((&origin["inputs"][0]["role"], &origin["inputs"][0]["file"]), (&"trace".into(), &"trace.csv".into()));
    assert_eq!(origin["inputs"][0]["sha256"].as_str().unwrap().len(), 64);
    let table = stdout(&["simulate", &trace, "--jobs", "-"]);
    assert!(table.starts_with("job,name,") && table.lines().count() == 8 && table.contains("trace trace.csv, SHA-256 "), "{table}");
    let compared = stdout(&["simulate", &trace, "--policy", "magm/aegis", "--seed", "1"]);
    assert!(compared.contains("under magm (aegis preset)"), "{compared}");
    assert_eq!(
        stdout(&["simulate", &trace, "--policy", "carma/forecast.delay=1"]).lines().next(),
        stdout(&["simulate", &trace]).lines().next()
    );
}

#[test]
fn a_job_that_can_never_start_is_named_with_the_reason() {
    let scratch = tempfile::tempdir().unwrap();
    let trace = written(scratch.path(), "trace.csv", "submit,workload,gpus\n0,unet_voc,1\n5,unet_voc,99\n");
    let run = stdout(&["simulate", &trace]);
    assert!(run.contains("Job 2 can never start: it needs 99 GPUs"), "{run}");
    let table = stdout(&["compare", &trace, "--policies", "magm", "--seeds", "1"]);
    assert!(table.contains("magm: Job 2 can never start: it needs 99 GPUs"), "{table}");
    assert!(!table.contains('±'), "one run does not vary: {table}");
    let row = fs::read_to_string({
        let jobs = scratch.path().join("jobs.csv");
        stdout(&["simulate", &trace, "--jobs", jobs.to_str().unwrap()]);
        jobs
    });
    assert!(row.unwrap().lines().nth(2).unwrap().contains("can never start"));
}

#[test]
fn estimates_that_do_not_match_the_trace_are_reported() {
    let scratch = tempfile::tempdir().unwrap();
    let trace = written(scratch.path(), "trace.csv", TRACE);
    let estimates = written(scratch.path(), "estimates.csv", "workload,horus_mib\nunet_voc,9000\nmy_net,1000\n");
    let output = carma(&["compare", &trace, "--policies", "magm,lug", "--estimators", "horus", "--estimates", &estimates, "--seeds", "1"]);
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(messages.contains("rows of unknown workloads are not used: my_net"), "{messages}");
    assert!(messages.contains("no estimate, so jobs of these workloads are of unknown need: bert_base_wiki_bs32, "), "{messages}");
    assert_eq!(messages.lines().count(), 2, "each once: {messages}");
}

#[test]
fn a_table_of_exported_jobs_is_refused_with_the_way_to_simulate_them() {
    let scratch = tempfile::tempdir().unwrap();
    let exported =
        written(scratch.path(), "jobs.csv", "job,array,user,submitted,gpus,attempt,launched,attempt_ended,peak_mib\n1,,a,x,1,1,x,x,9\n");
    assert!(stderr(&["simulate", &exported]).contains("`carma what-if` simulates the jobs of a manager"));
    let extra = written(scratch.path(), "extra.csv", "submit,workload\n0,unet_voc,7\n");
    assert!(stderr(&["simulate", &extra]).contains("line 2: the row has 3 cells, and the table has 2 columns"));
    let large = written(scratch.path(), "large.csv", "submit,workload,gpus\n0,unet_voc,9999999999\n");
    assert!(stderr(&["simulate", &large]).contains("is not a whole number from 0 to 4294967295"));
}

#[test]
fn policies_are_compared_with_exclusive() {
    let scratch = tempfile::tempdir().unwrap();
    let trace = written(scratch.path(), "trace.csv", TRACE);
    let report = scratch.path().join("report.html").to_str().unwrap().to_owned();
    let svg = scratch.path().join("charts").to_str().unwrap().to_owned();
    let comparison = ["compare", &trace, "--server", "2xA100-40GB", "--policies", "or-magm/aegis,lucid", "--seeds", "2"];
    let table = stdout(&comparison);
    insta::assert_snapshot!("compare", table);
    assert_eq!(table.lines().find(|line| line.chars().count() > 80), None, "too wide");
    let written = carma(&[&comparison[..], &["--sweep", "smact=0.6:0.8:0.2", "--report", &report, "--svg", &svg, "--json"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&written.stdout).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["policy"].as_str().unwrap()).collect::<Vec<_>>(), ["exclusive", "or-magm/aegis", "lucid"]);
    let keys = [
        "makespan_ratio",
        "mean_jct_ratio",
        "p95_jct_ratio",
        "energy_ratio",
        "smact_ratio",
        "smocc_ratio",
        "memory_ratio",
        "oom_attempts",
        "mean_slowdown",
        "worst_slowdown",
    ];
    assert!(rows.iter().all(|row| keys.iter().all(|key| row[key].is_number())), "{json}");
    // Everything that is needed to make it again is in each form of the report.
    let needed = ["--seeds 2", env!("CARGO_PKG_VERSION"), "0 to 1", "oracle", "aegis"];
    let page = fs::read_to_string(&report).unwrap();
    let origin = page.split_once("How this was made</h2>").unwrap().1;
    let csv = stdout(&[&comparison[..], &["--csv"]].concat());
    for part in needed {
        assert!(origin.contains(part) && csv.contains(part) && json["origin"].to_string().contains(part), "{part}: {origin}\n{csv}");
    }
    let head: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert_eq!((head.len(), head[0]), (36, "policy"), "{csv}");
    assert!(
        ["makespan_s", "mean_wait_s", "p50_jct_s", "energy_j", "energy_j_spread", "inputs"].iter().all(|name| head.contains(name)),
        "{csv}"
    );
    let chart = fs::read_to_string(scratch.path().join("charts/bars.svg")).unwrap();
    for written in [csv.as_str(), origin, chart.as_str()] {
        assert!(written.contains("trace trace.csv, SHA-256 ") && written.contains("carma compare "), "{written}");
    }
    assert_eq!(rows[0]["makespan_ratio"], 1.0);
    assert_eq!(json["curves"][0]["points"].as_array().unwrap().len(), 2);
    let page = fs::read_to_string(&report).unwrap();
    assert!(page.contains("or-magm/aegis") && !page.contains("src=\"http") && !page.contains("NaN"));
    assert!(fs::read_dir(&svg).unwrap().count() >= 6);
}

#[test]
fn the_simulator_is_compared_with_measurements() {
    let scratch = tempfile::tempdir().unwrap();
    let jobs = written(scratch.path(), "jobs.csv", "arrival_s,workload,gpus,exclusive_exec_s\n0,unet_voc,1,1000\n5,unet_voc,1,1000\n");
    let header = "policy,makespan_s,mean_wait_s,mean_jct_s,p95_jct_s,mean_exec_s,oom_attempts,energy_vs_exclusive\n";
    let measured = written(
        scratch.path(),
        "measured.csv",
        &format!("{header}Exclusive,2000,498,1498,1946,1000,0,1\nOR-MAGM,1500,20,1400,1450,1300,0,\n"),
    );
    let json: serde_json::Value = serde_json::from_str(&stdout(&[
        "validate",
        "--jobs",
        &jobs,
        "--measured",
        &measured,
        "--server",
        "1xA100-40GB",
        "--seeds",
        "3",
        "--json",
    ]))
    .unwrap();
    assert!(json["rows"][0]["makespan_error"].as_f64().unwrap().abs() < 0.03, "{json}");
    assert_eq!(json["rows"][1]["policy"], "OR-MAGM");
    assert_eq!((&json["origin"]["inputs"][1]["role"], &json["origin"]["seeds"]), (&"measured".into(), &"0 to 2".into()));
    assert!(json["rows"][1]["energy_ratio_difference"].is_null() && json["pairs"].is_null());
    let short = "policy,makespan_s,mean_jct_s,p95_jct_s,mean_exec_s,oom_attempts\nExclusive,2000,1498,1946,1000,0\n";
    let without_energy = written(scratch.path(), "short.csv", short);
    assert!(stdout(&["validate", "--jobs", &jobs, "--measured", &without_energy, "--seeds", "2"]).contains("mean error"));
    // Runs by estimates are left out without them, and the result says from what it was made.
    let estimated = written(
        scratch.path(),
        "estimated.csv",
        &format!("{header}Exclusive,2000,498,1498,1946,1000,0,1\nEST-MAGM horus,1500,20,1400,1450,1300,0,\n"),
    );
    let output = carma(&["validate", "--jobs", &jobs, "--measured", &estimated, "--server", "1xA100-40GB", "--seeds", "1"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("Left out, because their estimates are not given: EST-MAGM horus."), "{text}");
    assert!(text.contains("From measured estimated.csv, SHA-256 ") && text.contains("Seeds: 0\n"), "{text}");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "carma: left out, because they need --estimates: EST-MAGM horus\n");
    let no_exclusive = written(scratch.path(), "other.csv", &format!("{header}OR-MAGM,1500,20,1400,1450,1300,0,\n"));
    assert!(stderr(&["validate", "--jobs", &jobs, "--measured", &no_exclusive]).contains("a row Exclusive is missing"));
}

#[test]
fn on_a_full_gpu_processes_fail_only_without_a_cache() {
    let scratch = tempfile::tempdir().unwrap();
    let trace = written(scratch.path(), "trace.csv", TRACE);
    let rules = "--server 1xA100-40GB --policy or-magm --preset paper --estimator none";
    let attempts = |cached| {
        let mut options = vec!["simulate", &trace, "--cached", cached, "--json"];
        options.extend(rules.split(' '));
        let json: serde_json::Value = serde_json::from_str(&stdout(&options)).unwrap();
        json["oom_attempts"].as_u64().unwrap()
    };
    assert!(attempts("0") > 0);
    assert_eq!(attempts("1"), 0);
}

#[test]
fn wrong_input_is_refused_by_name_and_changes_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let trace = written(scratch.path(), "trace.csv", TRACE);
    let unknown = written(scratch.path(), "unknown.csv", "submit,workload\n0,resnet5O_imagenet_bs64\n");
    let constants = written(scratch.path(), "constants.toml", "level = 1\n");
    let cases: [&[&str]; 12] = [
        &["simulate", "nowhere.csv"],
        &["simulate", &unknown],
        &["simulate", &trace, "--server", "0xA100-40GB"],
        &["simulate", &trace, "--server", "4xA100"],
        &["simulate", &trace, "--policy", "magic"],
        &["simulate", &trace, "--estimator", "horus"],
        &["simulate", &trace, "--lose", "gpu=9"],
        &["simulate", &trace, "--foreign", "gpu=0,gpu=1"],
        &["simulate", &trace, "--interference", &constants],
        &["compare", &trace, "--policies", "magm/nothing"],
        &["compare", &trace, "--sweep", "smact=2:3:1"],
        &["calibrate", "--solo", &trace, "--pairs", &trace],
    ];
    let folder = scratch.path().to_str().unwrap();
    let errors: Vec<String> = cases.iter().map(|case| stderr(case).replace(folder, "FOLDER")).collect();
    insta::assert_snapshot!("wrong-input", errors.join(""));
}

/// The accuracy that the documents state, where the published measurements are at hand.
#[test]
fn the_simulator_reproduces_published_runs_as_documented() {
    let data = need!(published_data());
    let file = |name: &str| data.join(name).to_str().unwrap().to_owned();
    let [jobs, measured, estimates] = ["philly60_jobs.csv", "philly60_measured.csv", "estimates.csv"].map(file);
    let json = stdout(&["validate", "--jobs", &jobs, "--measured", &measured, "--estimates", &estimates, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let errors = |key: &str, of: &dyn Fn(&serde_json::Value) -> bool| -> Vec<f64> {
        rows.iter().filter(|row| of(row)).filter_map(|row| row[key].as_f64()).map(f64::abs).collect()
    };
    let (mean, worst) =
        (|values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64, |values: Vec<f64>| values.into_iter().fold(0.0, f64::max));
    let screened = |row: &serde_json::Value| row["screened"] == true;
    assert!(mean(errors("makespan_error", &|_| true)) < 0.03);
    assert!(worst(errors("makespan_error", &screened)) < 0.07);
    assert!(worst(errors("makespan_error", &|row| !screened(row))) < 0.10);
    assert!(mean(errors("mean_jct_error", &|_| true)) < 0.04 && worst(errors("mean_jct_error", &|_| true)) < 0.10);
    assert!(mean(errors("oom_difference", &|_| true)) < 2.0 && worst(errors("energy_ratio_difference", &|_| true)) < 0.035);
}
