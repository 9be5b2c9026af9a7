//! `carma submit`.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder to submit from.
struct SubmitFolder(TempDir);

impl SubmitFolder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Self(folder)
    }

    fn submit(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_carma"));
        command.arg("submit").args(arguments).current_dir(self.0.path()).env_clear().env("HOME", "/home/ada").env("API_KEY", "secret");
        // Ignore managers of the user who runs the tests.
        command.env("CARMA_SOCKET", "/nonexistent/carma.sock");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A command may ignore its input.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// The output of a command that succeeds without messages.
    fn answer(&self, arguments: &[&str]) -> String {
        let output = self.submit(arguments, "");
        assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn requests(&self, arguments: &[&str]) -> Vec<Value> {
        serde_json::from_str(&self.answer(&[&["--dry-run", "--json"], arguments].concat())).unwrap()
    }

    fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.submit(arguments, "");
        assert!(!output.status.success() && output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    }
}

#[test]
fn help_fits_the_terminal() {
    let help = SubmitFolder::new(&[]).answer(&["--help"]);
    assert_eq!(help.lines().find(|line| line.chars().count() > 80), None, "too wide");
    insta::assert_snapshot!("submit-help", help);
}

#[test]
fn a_command_arrives_word_by_word_with_the_callers_folder_and_environment() {
    let desk = SubmitFolder::new(&[]);
    let evil = "$(touch x); `id` 'a\n\"";
    let [request] = desk.requests(&["--gpus", "2", "--priority", "-3", "--env", "A=1", "--", "echo", "--gpus", evil]).try_into().unwrap();
    assert_eq!(request["command"]["program"], serde_json::json!(["echo", "--gpus", evil]));
    assert_eq!(Path::new(request["directory"].as_str().unwrap()), fs::canonicalize(desk.0.path()).unwrap());
    assert_eq!(
        request["environment"],
        serde_json::json!({"HOME": "/home/ada", "API_KEY": "(hidden)", "A": "1", "CARMA_SOCKET": "/nonexistent/carma.sock"})
    );
    assert_eq!((&request["resources"]["gpus"], &request["schedule"]["priority"]), (&2.into(), &(-3).into()));
    assert!(!desk.0.path().join("x").exists(), "nothing was run");
}

#[test]
fn a_dry_run_is_a_table() {
    let table = SubmitFolder::new(&[]).answer(&[
        "--dry-run",
        "-J",
        "sweep",
        "--mem",
        "20GiB",
        "-t",
        "90",
        "--param",
        "lr=0.1,0.01",
        "--param",
        "seed=1..11",
        "--",
        "train",
        "{lr}",
        "{seed}",
    ]);
    assert_eq!(table.lines().find(|line| line.chars().count() > 80), None, "too wide");
    insta::assert_snapshot!("submit-table", table);
}

#[test]
fn a_dry_run_without_a_manager_says_that_nothing_was_estimated() {
    let output = SubmitFolder::new(&[]).submit(&["--dry-run", "--estimate", "dry-run", "--", "python3", "train.py"], "");
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "carma: no manager runs, so nothing was estimated: use carma trace-memory\n");
}

#[test]
fn files_of_all_forms_go_together_and_standard_input_is_one() {
    let script = "#!/bin/sh\n#SBATCH --gres=gpu:2 --partition=long\ntrue\n";
    let task = "# a\nconda activate torch\npython train.py\nnet.model\nimagenet\n64\ntraining\n1\n";
    let desk = SubmitFolder::new(&[("a.sh", script), ("b.rad", task), ("c.toml", "command = ['c']\narray = '1-2'\n"), ("net.model", "")]);
    let output = desk.submit(&["--dry-run", "--json", "b.rad", "c.toml"], "");
    let warned = String::from_utf8(output.stderr).unwrap();
    assert!(warned.lines().count() == 1 && warned.contains("there is no environment \"torch\""), "{warned}");
    assert_eq!(serde_json::from_slice::<Vec<Value>>(&output.stdout).unwrap().len(), 3);
    let output = desk.submit(&["--dry-run", "--json", "-", "--", "argument"], script);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "carma: -, line 2: --partition: ignored: it is not supported\n");
    let [request]: [Value; 1] = serde_json::from_slice::<Vec<Value>>(&output.stdout).unwrap().try_into().unwrap();
    assert_eq!(request["command"]["script"], serde_json::json!({"text": script, "arguments": ["argument"]}));
    assert_eq!(request["resources"]["gpus"], 2);
}

#[test]
fn refusals_name_the_remedy() {
    let desk = SubmitFolder::new(&[
        ("plain.sh", "true\n"),
        ("train.py", "import os\nprint(os.environ['CARMA_PARAM_SEED'])\n"),
        ("bad.toml", "command = ['a']\ngpu = 2\n"),
        ("folder.toml", "command = ['a']\nworkdir = 'none'\n"),
    ]);
    fs::write(desk.0.path().join("program"), [0x7f, b'E', b'L', b'F', 0xff]).unwrap();
    let here = desk.0.path().to_str().unwrap();
    let questions: [&[&str]; 16] = [
        &["--", "true"],
        &[],
        &["python", "train.py"],
        &["python3", "train.py"],
        &["train.py"],
        &["--", "python3 train.py"],
        &["--param", "lr=1,2", "--param", "seed=1,2", "--", "python3", "train.py"],
        &["--param", "lr=1,2", "--", "python3", "train.py", "{rl}"],
        &["--mem", "7", "--", "a"],
        &["--gpus", "many", "--", "a"],
        &["--gpu", "2", "--", "a"],
        &["--gpus", "1", "--gpus", "2", "--", "a"],
        &["plain.sh"],
        &["bad.toml"],
        &["folder.toml"],
        &["program"],
    ];
    let errors: Vec<String> = questions
        .iter()
        .map(|question| format!("$ carma submit {}\n{}", question.join(" "), desk.refusal(question).replace(here, "HERE")))
        .collect();
    insta::assert_snapshot!("submit-refusals", errors.join("\n"));
}

#[test]
fn words_after_a_script_are_its_arguments() {
    let script = "#!/bin/sh\n#SBATCH --gres=gpu:2\necho $1\n";
    let desk = SubmitFolder::new(&[("s3.sh", script), ("other.sh", "#!/bin/sh\ntrue\n")]);
    let output = desk.submit(&["--dry-run", "--json", "s3.sh", "one", "two words"], "");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "carma: arguments of s3.sh: one 'two words'\n");
    let [request]: [Value; 1] = serde_json::from_slice::<Vec<Value>>(&output.stdout).unwrap().try_into().unwrap();
    assert_eq!(request["command"]["script"], serde_json::json!({"text": script, "arguments": ["one", "two words"]}));
    assert_eq!(request["resources"]["gpus"], 2);
    assert_eq!(desk.requests(&["s3.sh", "other.sh"]).len(), 2, "two scripts are two jobs");
}

#[test]
fn what_is_missing_here_is_said_at_submission() {
    let desk = SubmitFolder::new(&[("a.sh", "#!/bin/sh\n#SBATCH -N 1\nmodule load cuda\nsrun python train.py\n")]);
    let output = desk.submit(&["--dry-run", "a.sh"], "");
    let warnings = String::from_utf8(output.stderr).unwrap();
    assert!(warnings.contains("a.sh, line 4: srun is not installed here") && warnings.contains("a.sh, line 3: "), "{warnings}");
    assert_eq!(warnings.lines().count(), 2, "a job has one node: {warnings}");
    assert!(desk.refusal(&["--output", "none/x.txt", "--", "true"]).contains("none is not a folder: create it first"));
    let warned = desk.submit(&["--dry-run", "--conda", "nope", "--", "true"], "");
    assert!(String::from_utf8(warned.stderr).unwrap().contains("no environment \"nope\""));
}
