//! `carma trace` and `carma catalogue`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use super::{carma, stderr, stdout};

/// The simulator's own small files.
fn trace(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../carma-sim/tests/traces").join(name).to_str().unwrap().to_owned()
}

/// With a folder of the user's own configuration.
fn at_home(home: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_carma")).args(arguments).env("XDG_CONFIG_HOME", home).output().unwrap()
}

#[test]
fn a_trace_is_analysed_within_the_terminals_width() {
    let analysis = stdout(&["trace", "analyze", &trace("carma.sh")]);
    insta::assert_snapshot!("trace-analyze", analysis);
    insta::assert_snapshot!("trace-analyze-plain", stdout(&["trace", "analyze", &trace("carma.sh"), "--plain"]));
    assert_eq!(analysis.lines().find(|line| line.chars().count() > 80), None, "too wide");
    assert!(stdout(&["trace", "analyze", "--json", &trace("carma.sh")]).contains("\"jobs\": 4"));
}

#[test]
fn a_mapped_trace_names_its_origin_and_can_be_read_again() {
    let scratch = tempfile::tempdir().unwrap();
    let mapped = scratch.path().join("mapped.csv");
    let mapped = mapped.to_str().unwrap();
    let output = carma(&["trace", "map", &trace("philly_table.csv"), "--seed", "7", "--output", mapped]);
    assert!(output.status.success() && output.stdout.is_empty());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "carma: 1 job left out: never ran\n", "messages beside the data");
    insta::assert_snapshot!("trace-map", fs::read_to_string(mapped).unwrap());
    assert!(stdout(&["trace", "analyze", mapped]).starts_with("2 jobs, "));
}

#[test]
fn a_sample_is_taken_by_time_and_number() {
    let generated = stdout(&["trace", "generate", "--jobs", "50", "--mean-gap", "30m", "--seed", "3"]);
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("generated.csv");
    fs::write(&file, &generated).unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(generated, stdout(&["trace", "generate", "--jobs", "50", "--mean-gap", "1800", "--seed", "3"]));
    let sample = stdout(&["trace", "sample", file, "--from", "2h", "--to", "0.5d", "--jobs", "5"]);
    assert_eq!(sample.lines().filter(|line| !line.starts_with('#')).count(), 6, "{sample}");
    assert!(stderr(&["trace", "sample", file, "--from", "900d"]).contains("none of the 50 jobs of "));
    assert!(stderr(&["trace", "sample", file, "--from", "2h", "--to", "1h"]).contains("--to must be later than --from"));
    assert!(stderr(&["trace", "sample", file, "--from", "soon"]).contains("give seconds, or a number with m, h or d"));
}

#[test]
fn wrong_mixes_and_traces_are_refused() {
    assert!(stderr(&["trace", "generate", "--mix", "65/27/9"]).contains("the shares must add up to 100, not 101"));
    assert!(stderr(&["trace", "generate", "--mix", "all"]).contains("such as 65/27/8"));
    assert!(stderr(&["trace", "analyze", "/nonexistent.csv"]).starts_with("carma: /nonexistent.csv: cannot be read: "));
}

#[test]
fn the_catalogue_is_listed_within_the_terminals_width() {
    let list = stdout(&["catalogue", "list"]);
    insta::assert_snapshot!("catalogue-list", list);
    assert_eq!(list.lines().find(|line| line.chars().count() > 80), None, "too wide");
    insta::assert_snapshot!("catalogue-show", stdout(&["catalogue", "show", "gpt2_large_2"]));
    assert!(stdout(&["catalogue", "show", "gpt2_large_2", "--json"]).contains("\"source_text\": \"measured alone"));
    assert!(stderr(&["catalogue", "show", "xeption"]).contains("\"xeption\" is not a workload of the catalogue"));
}

/// A shown workload, changed into another one of another source.
fn own_workload(name: &str, source: &str) -> String {
    let shown = stdout(&["catalogue", "show", "gpt2_large_2"]);
    let aliases = |line: &&str| !line.starts_with("aliases");
    let text = shown.lines().filter(aliases).collect::<Vec<_>>().join("\n");
    text.replace("gpt2_large_wiki_bs8", name).replace("aegis", source) + "\n"
}

#[test]
fn own_workloads_are_added_and_found() {
    let home = tempfile::tempdir().unwrap();
    let catalogue = home.path().join("carma/workloads.toml");
    let add = |text: &str| {
        let file = home.path().join("new.toml");
        fs::write(&file, text).unwrap();
        at_home(home.path(), &["catalogue", "add", file.to_str().unwrap()])
    };
    let refusal = |text: &str| {
        let before = fs::read_to_string(&catalogue).ok();
        let output = add(text);
        assert!(!output.status.success());
        assert_eq!(fs::read_to_string(&catalogue).ok(), before, "nothing is written");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refusal(&own_workload("gpt2_large_wiki_bs8", "mine")).contains("names both gpt2_large_wiki_bs8 and gpt2_large_wiki_bs8"));
    assert!(refusal("[source]\nmine = \"me\"\n").contains("has no [[workload]]"));
    assert!(refusal("[[workload]]\n").contains("missing field `name`"));
    assert!(refusal(&own_workload("a", "mine").replace("smact = [0.8418", "smact = [8.418")).contains("a: smact is wrong"));
    assert!(add(&format!("# kept\n{}", own_workload("first", "mine"))).status.success());
    assert!(add(&own_workload("second", "mine")).status.success());
    assert!(refusal(&own_workload("second", "mine")).contains("names both second and second"));
    assert!(
        refusal(&own_workload("third", "mine").replace("measured alone", "guessed"))
            .contains("source \"mine\" differs from the existing source")
    );
    let listed = String::from_utf8(at_home(home.path(), &["catalogue", "list"]).stdout).unwrap();
    assert!(listed.contains("\nfirst  ") && listed.contains("\nsecond  "), "{listed}");
    let named = catalogue.to_str().unwrap();
    assert!(at_home(home.path(), &["catalogue", "list", "--catalogue", named]).status.success(), "one's own file may be named");
    assert!(stdout(&["catalogue", "show", "second", "--catalogue", named]).contains("name = \"second\""));
    // A seed gives all users the same trace; one's own workloads are drawn only if they are named, and the trace then says so.
    let generate = |more: &[&str]| {
        let output = at_home(home.path(), &[&["trace", "generate", "--jobs", "900", "--seed", "1"], more].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(generate(&[]), stdout(&["trace", "generate", "--jobs", "900", "--seed", "1"]));
    let drawn = generate(&["--catalogue", named]);
    assert!(drawn.contains("# from catalogue workloads.toml, SHA-256 ") && drawn.contains(",first,"), "{drawn}");
    let trace = home.path().join("named.csv");
    fs::write(&trace, "submit,workload\n0,first\n").unwrap();
    let simulated = at_home(home.path(), &["simulate", trace.to_str().unwrap(), "--server", "8xA100-40GB", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&simulated.stdout).unwrap();
    let inputs = json["origin"]["inputs"].as_array().unwrap();
    assert_eq!(inputs.iter().map(|input| input["role"].as_str().unwrap()).collect::<Vec<_>>(), ["trace", "catalogue"], "{json}");
    let left: Vec<_> = fs::read_dir(home.path().join("carma")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["workloads.toml"], "nothing is left beside it");
}

#[test]
fn a_table_of_solo_measurements_becomes_workloads() {
    let scratch = tempfile::tempdir().unwrap();
    let [table, catalogue] = ["solo.csv", "mine.toml"].map(|name| scratch.path().join(name).to_str().unwrap().to_owned());
    let rows = "workload,gpu_rank,end_to_end_s,peak_mib,gpu_util_pct,smact,smocc,drama,power_w\n\n\
                mine_bs8,0,100,2000,80,0.5,0.2,0.1,150\nmine_bs8,1,100,1500,70,0.4,0.2,0.1,140\n";
    fs::write(&table, rows).unwrap();
    assert!(stdout(&["catalogue", "add", &table, "--to", &catalogue]).starts_with("1 added to "));
    let shown = stdout(&["catalogue", "show", "mine_bs8", "--catalogue", &catalogue]);
    assert!(shown.contains("family = \"mine\"") && shown.contains("peak_mib = [2000, 1500]"), "{shown}");
    fs::write(&table, rows.replace("0.4,0.2", "1.4,0.2")).unwrap();
    let error = stderr(&["catalogue", "add", &table, "--to", &catalogue]);
    assert!(error.contains("line 4: mine_bs8: 1.4 is not a fraction"), "{error}");
}
