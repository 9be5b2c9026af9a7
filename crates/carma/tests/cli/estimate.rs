//! `carma estimate`, `carma trace-memory` and `carma estimator`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{carma, stderr, stdout};

const SUMMARY: &str = "\
----------------------------------------------------------------
        Layer (type)               Output Shape         Param #
================================================================
            Conv2d-1         [-1, 64, 112, 112]           9,408
       BatchNorm2d-2         [-1, 64, 112, 112]             128
              ReLU-3         [-1, 64, 112, 112]               0
 AdaptiveAvgPool2d-4             [-1, 64, 1, 1]               0
           Mystery-5                  [-1, 128]           5,000
            Linear-6                 [-1, 1000]         129,000
================================================================
Total params: 143,536
";

/// Two iterations of a network with one weight, written by hand.
const EVENTS: &str = "\
carma-memory-trace 1
{\"torch\":\"2.9.0\"}
+ 0 20971520 w
@ iteration 1
@ forward
+ 1 31457280 a
m
@ backward
+ 2 20971520 g
m
- 1
@ optimizer
@ iteration 2
- 2
@ end
";

fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let file = folder.join(name);
    fs::write(&file, text).unwrap();
    file
}

#[test]
fn an_estimate_lists_parts_and_unknowns() {
    let scratch = tempfile::tempdir().unwrap();
    let summary = file(scratch.path(), "net.model", SUMMARY);
    let shown = stdout(&["estimate", summary.to_str().unwrap(), "--batch", "64"]);
    insta::assert_snapshot!("estimate", shown);
    assert_eq!(shown.lines().find(|line| line.chars().count() > 80), None, "too wide");
    insta::assert_snapshot!("estimate_all", stdout(&["estimate", "--all", summary.to_str().unwrap(), "--batch", "64"]));
}

#[test]
fn json_holds_the_same_figures() {
    let scratch = tempfile::tempdir().unwrap();
    let summary = file(scratch.path(), "net.model", SUMMARY);
    let json = stdout(&["estimate", summary.to_str().unwrap(), "--batch", "64", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["estimator"], "static");
    assert_eq!(value["parameters"], 143_536);
    assert_eq!(value["unknown_layers"], serde_json::json!(["Mystery"]));
    let memory = value["memory_mib"].as_f64().unwrap();
    let parts: f64 = value["breakdown_mib"].as_object().unwrap().values().map(|part| part.as_f64().unwrap()).sum();
    assert!((memory - parts).abs() < 0.01, "the parts add up");
    assert!(value["upper_mib"].as_f64().unwrap() >= memory);
    assert!((0.0..=1.0).contains(&value["utilisation"]["smact"]["point"].as_f64().unwrap()));
}

#[test]
fn recorded_events_are_replayed_by_hand_worked_rules() {
    let scratch = tempfile::tempdir().unwrap();
    let events = file(scratch.path(), "step.trace", EVENTS);
    let json = stdout(&["estimate", "--trace", events.to_str().unwrap(), "--json"]);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    // 20 and 30 MiB in segments of their own, 20 for the first workspace (8.125, the second fits behind it), 20 for the gradient.
    assert_eq!(value["memory_mib"], 20.0 + 30.0 + 20.0 + 20.0 + 524.0);
}

#[test]
fn calibration_finds_the_context_that_a_reading_implies() {
    let scratch = tempfile::tempdir().unwrap();
    let events = file(scratch.path(), "step.trace", EVENTS);
    let stack = scratch.path().join("lab.toml");
    let (events, stack) = (events.to_str().unwrap(), stack.to_str().unwrap());
    let message = stdout(&["estimator", "calibrate", "--trace", events, "--reading", "790MiB", "-o", stack]);
    assert!(message.starts_with("context 700 MiB (the table says 524)"), "{message}");
    let json = stdout(&["estimate", "--trace", events, "--stack", stack, "--json"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["memory_mib"], 790.0);
    let refused = stderr(&["estimator", "calibrate", "--trace", events, "--reading", "50MiB"]);
    assert!(refused.contains("below the 90 MiB of the tensors alone"), "{refused}");
}

#[test]
fn drawn_networks_are_written_cleaned_judged_and_predicted() {
    let scratch = tempfile::tempdir().unwrap();
    let drawn = scratch.path().join("drawn.csv");
    let cleaned = scratch.path().join("cleaned.csv");
    let (drawn, cleaned) = (drawn.to_str().unwrap(), cleaned.to_str().unwrap());
    stdout(&["estimator", "dataset", "generate", "mlp", "--rows", "20", "-o", drawn]);
    stdout(&["estimator", "dataset", "clean", drawn, "-o", cleaned]);
    let judged = carma(&["estimator", "evaluate", "--data", cleaned, "--estimator", "static", "--json"]);
    let scores: serde_json::Value = serde_json::from_slice(&judged.stdout).unwrap();
    assert_eq!(scores["median_ape"], 0.0, "the static estimator labelled them itself");
    let keys: Vec<&String> = scores.as_object().unwrap().keys().collect();
    let expected = [
        "rows",
        "median_ape",
        "mape",
        "within_10pct",
        "under_share",
        "under_share_at_bound",
        "mean_over_at_bound",
        "class_accuracy_1gb",
        "class_accuracy_8gb",
        "estimator",
        "origin",
    ];
    assert!(expected.iter().all(|key| keys.iter().any(|found| *found == key)) && keys.len() == expected.len(), "{keys:?}");
    assert_eq!(stdout(&["estimator", "predict", cleaned]).lines().count(), 1 + scores["rows"].as_u64().unwrap() as usize);
}

#[test]
fn unusable_input_is_refused_with_the_reason() {
    let scratch = tempfile::tempdir().unwrap();
    let nonsense = file(scratch.path(), "nonsense.txt", "hello\nworld\n");
    let summary = file(scratch.path(), "net.model", SUMMARY);
    let summary = summary.to_str().unwrap();
    let events = file(scratch.path(), "bad.trace", "carma-memory-trace 1\n{}\n+ 1 many w\n");
    let script = file(scratch.path(), "train.py", "import torch\n");
    for (arguments, reason) in [
        (vec!["estimate", script.to_str().unwrap()], "train.py gives its estimate"),
        (vec!["estimate", nonsense.to_str().unwrap()], "nonsense.txt cannot be used"),
        (vec!["estimate", "/nonexistent.txt"], "cannot read /nonexistent.txt"),
        (vec!["estimate", "--trace", events.to_str().unwrap()], "line 3: `many` is not bytes"),
        (vec!["estimate", summary, "--estimator", "dry-run"], "dry-run needs a dry run"),
        (vec!["estimate", summary, "--estimator", "llmem"], "llm-formula is for language models only"),
        (vec!["estimate", summary, "--stack", "windows"], "there is no stack `windows`"),
        (vec!["estimate", summary, "--allocator", "colour:red"], "unknown allocator setting `colour`"),
        (vec!["estimator", "evaluate", "--data", summary, "--estimator", "static"], "net.model cannot be used"),
    ] {
        let message = stderr(&arguments);
        assert!(message.contains(reason), "{arguments:?} says {message}");
    }
}

#[test]
fn an_evaluation_says_how_it_was_made_and_what_its_columns_are() {
    let scratch = tempfile::tempdir().unwrap();
    let drawn = scratch.path().join("drawn.csv");
    let drawn = drawn.to_str().unwrap();
    stdout(&["estimator", "dataset", "generate", "mlp", "--rows", "20", "-o", drawn]);
    let judged = carma(&["estimator", "evaluate", "--data", drawn, "--estimator", "static", "--worst", "2"]);
    let text = String::from_utf8(judged.stdout).unwrap();
    for part in [
        "estimator                   static",
        "above the 95 % bound",
        "measured, MiB",
        "the worst rows",
        "From data drawn.csv, SHA-256 ",
        "Seeds: 1",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_dry_run_evaluation_without_pytorch_stops_at_once() {
    let scratch = tempfile::tempdir().unwrap();
    let drawn = scratch.path().join("drawn.csv");
    let drawn = drawn.to_str().unwrap();
    stdout(&["estimator", "dataset", "generate", "mlp", "--rows", "20", "-o", drawn]);
    let python = file(scratch.path(), "python", "#!/bin/sh\necho >> \"$(dirname \"$0\")/runs\"\nexit 1\n");
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let message = stderr(&["estimator", "evaluate", "--data", drawn, "--estimator", "dry-run", "--python", python.to_str().unwrap()]);
    assert!(message.contains("the estimator dry-run needs PyTorch: ") && message.contains("has no PyTorch: install it"), "{message}");
    assert_eq!(fs::read_to_string(scratch.path().join("runs")).unwrap().lines().count(), 1, "it is asked once");
}

#[test]
fn a_script_without_pytorch_gets_a_plain_answer() {
    let scratch = tempfile::tempdir().unwrap();
    let script = file(scratch.path(), "train.py", "print('never')\n");
    let message = stderr(&["trace-memory", "--python", "/nonexistent/python", script.to_str().unwrap()]);
    assert!(message.contains("cannot start /nonexistent/python"), "{message}");
}

/// A stand-in for Python that counts its runs, and records what a dry run would.
const PYTHON: &str = r#"#!/bin/sh
folder=$(dirname "$0")
echo >> "$folder/runs"
while [ $# -gt 0 ]; do
    case $1 in
        -o) cp "$folder/events" "$2" ;;
        --inputs) printf '{"complete": true, "files": ["%s/train.py"], "folders": [], "imports": []}' "$folder" > "$2" ;;
    esac
    shift
done
"#;

#[test]
fn a_dry_run_is_repeated_only_when_something_has_changed() {
    let scratch = tempfile::tempdir().unwrap();
    let python = file(scratch.path(), "python", PYTHON);
    fs::set_permissions(&python, fs::Permissions::from_mode(0o700)).unwrap();
    file(scratch.path(), "events", EVENTS);
    let script = file(scratch.path(), "train.py", "print('layers = 12')");
    let runs_after = |options: &[&str], variable: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_carma"));
        command.args(["trace-memory", "--json", "--python"]).arg(&python).args(options).arg(&script);
        let output = command.env("XDG_CACHE_HOME", scratch.path().join("cache")).env("LAYERS", variable).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        // The time that the estimate took.
        answer.as_object_mut().unwrap().remove("seconds").unwrap();
        (fs::read(scratch.path().join("runs")).unwrap().len(), answer)
    };
    let (runs, answer) = runs_after(&[], "12");
    assert_eq!(runs, 1);
    assert_eq!(runs_after(&[], "12"), (1, answer), "the same answer from the first run");
    assert_eq!(runs_after(&["--no-cache"], "12").0, 2);
    assert_eq!(runs_after(&["--iterations", "4"], "12").0, 3, "an option");
    assert_eq!(runs_after(&[], "24").0, 4, "a variable");
    file(scratch.path(), "train.py", "print('layers = 24')");
    assert_eq!(runs_after(&[], "12").0, 5, "the script");
    assert_eq!(runs_after(&[], "12").0, 5);
}

#[test]
fn a_table_says_which_gpus_a_job_fits_and_the_largest_batch() {
    let scratch = tempfile::tempdir().unwrap();
    let summary = file(scratch.path(), "net.model", SUMMARY);
    let words = ["estimate", summary.to_str().unwrap(), "--batch", "1200", "--fits", "RTX4060,RTX3090,A100-40GB", "--max-batch"];
    let shown = stdout(&words);
    insta::assert_snapshot!("estimate_fits", shown);
    assert_eq!(shown.lines().find(|line| line.chars().count() > 80), None, "too wide");
    let found: serde_json::Value = serde_json::from_str(&stdout(&[&words[..], &["--json"]].concat())).unwrap();
    for (gpu, fits) in ["RTX-4060", "RTX-3090", "A100-40GB"].into_iter().zip(found["fits"].as_array().unwrap()) {
        assert_eq!(fits["gpu"], gpu);
        let (sure, likely) = (fits["largest_sure_batch"].as_u64().unwrap(), fits["largest_batch"].as_u64().unwrap());
        assert!(sure <= likely, "{fits}");
        let fits_at = |batch: u64| {
            let batch = batch.to_string();
            let words = ["estimate", summary.to_str().unwrap(), "--batch", &batch, "--fits", gpu, "--json"];
            serde_json::from_str::<serde_json::Value>(&stdout(&words)).unwrap()["fits"][0]["fits"] == true
        };
        assert!(fits_at(likely) && !fits_at(likely + 1), "{gpu}: {likely}");
    }
}

#[test]
fn gpus_are_given_by_name_or_by_capability_and_memory() {
    let scratch = tempfile::tempdir().unwrap();
    let summary = file(scratch.path(), "net.model", SUMMARY);
    let memory = |gpu: &[&str]| {
        let words = [&["estimate", summary.to_str().unwrap(), "--batch", "64", "--json"], gpu].concat();
        serde_json::from_str::<serde_json::Value>(&stdout(&words)).unwrap()["memory_mib"].as_f64().unwrap()
    };
    assert!(memory(&["--gpu", "rtx 3060"]) < memory(&["--gpu", "A100"]), "a smaller context");
    assert!((memory(&["--gpu", "RTX3090"]) - memory(&["--compute-capability", "8.6", "--gpu-memory", "24GiB"])).abs() < 1.0);
    for (words, reason) in [
        (&["--gpu", "RTX9999"][..], "known are A100-40GB"),
        (&["--compute-capability", "8"], "such as 8.6"),
        (&["--compute-capability", "8.6"], "--gpu-memory"),
        (&["--max-batch"], "--fits"),
    ] {
        let words = [&["estimate", summary.to_str().unwrap()], words].concat();
        let error = stderr(&words);
        assert!(error.contains(reason), "{words:?}: {error}");
    }
}
