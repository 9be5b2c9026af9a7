//! `carma replay`: its report and its refusals.

use super::served::Served;
use crate::stdout;

#[test]
fn a_trace_is_replayed_and_reported() {
    let served = Served::start("2xA100-40GB", 200.0, "");
    let trace = served.write("two.csv", "submit,workload,duration\n1000,unet_voc,60\n1010,mnist_bs32,40\n");
    let output = served.carma(&["replay", &trace, "--against", "exclusive"]);
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Measurements differ from run to run.
    let words: String = report.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
    for message in ["two.csv: 0 jobs on 0 GPUs under carma", "simulated: exclusive", "The GPUs are emulated; their time runs 000 times"] {
        assert!(words.contains(message), "{message}: {report}");
    }
    for row in ["last job done", "mean wait", "mean completion time", "energy", "out of memory"] {
        assert!(report.lines().any(|line| line.starts_with(row)), "{row}: {report}");
    }
    assert_eq!(report.lines().find(|line| line.chars().count() > 80), None, "too wide");
    let row = report.lines().find(|line| line.starts_with("last job done")).unwrap();
    let minutes: f64 = row.split_whitespace().nth(3).unwrap().parse().unwrap();
    assert!((0.5..10.0).contains(&minutes), "the trace's own zero is not waited for: {report}");
}

#[test]
fn impossible_replays_are_refused_with_the_remedy() {
    let served = Served::start("1xA100-40GB", 60.0, "");
    let refused = |arguments: &[&str]| {
        let output = served.carma(&[&["replay"], arguments].concat());
        assert!(!output.status.success() && output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    };
    let trace = served.write("one.csv", "submit,workload\n0,mnist_bs32\n");
    assert!(refused(&[&trace, "--estimator", "guess"]).contains("give none, oracle, or a column"));
    assert!(refused(&[&trace, "--speed", "0"]).contains("give 0.001 to 100000"));
    assert!(refused(&[&trace, "--against", "best"]).contains("policy = \"best\" is not allowed"));
    let unknown = served.write("unknown.csv", "submit,workload\n0,minst_bs32\n");
    assert!(refused(&[&unknown]).contains("minst_bs32"));
    let nameless = served.write("nameless.csv", "submit,workload,gpus,duration\n0,,1,100\n");
    assert!(refused(&[&nameless]).contains("names no workload"));
}

#[test]
fn without_emulated_gpus_a_trace_needs_commands() {
    let served = Served::without_gpus();
    let trace = served.write("one.csv", "submit,workload\n0,mnist_bs32\n");
    let output = served.carma(&["replay", &trace]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && message.contains("has no commands to run there: give a task file (.rad)"), "{message}");
}

#[test]
fn policies_run_side_by_side_under_managers_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("two.csv");
    std::fs::write(&trace, "submit,workload,duration\n1000,unet_voc,60\n1010,mnist_bs32,40\n").unwrap();
    let policies = ["--emulated", "2xA100-40GB", "--policies", "exclusive,carma", "--speed", "200", "--runs", "2"];
    let report = stdout(&[&["replay", trace.to_str().unwrap()], &policies[..]].concat());
    for message in ["two.csv: 2 jobs on 2xA100-40GB; 2 runs of each policy\n\nexclusive\n", "\n\ncarma\n", "measured: the mean of the runs"]
    {
        assert!(report.contains(message), "{message}: {report}");
    }
    assert_eq!(report.lines().filter(|line| line.starts_with("last job done")).count(), 2, "{report}");
    assert_eq!(report.lines().find(|line| line.chars().count() > 80), None, "too wide");
}
