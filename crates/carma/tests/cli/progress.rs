//! Progress of long commands: only on a terminal.

use std::fs;
use std::process::Command;

use super::carma;

/// The output of a command on a terminal and in a pipe.
fn outputs(arguments: &[&str]) -> (String, String) {
    let words: Vec<String> = arguments.iter().map(|word| format!("'{word}'")).collect();
    let line = format!("{} {} > /dev/null", env!("CARGO_BIN_EXE_carma"), words.join(" "));
    // A terminal of the usual size, on which `script` runs the command.
    let run =
        Command::new("script").args(["-qefc", &line, "/dev/null"]).env("XDG_CONFIG_HOME", "/nonexistent").env("TERM", "xterm").output();
    let run = run.unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
    let piped = carma(arguments);
    assert!(piped.status.success());
    (String::from_utf8(run.stdout).unwrap(), String::from_utf8(piped.stderr).unwrap())
}

#[test]
fn a_progress_bar_is_drawn_only_on_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.csv");
    let jobs: Vec<String> = (0..80).map(|job| format!("{},unet_voc,400", job * 20)).collect();
    fs::write(&trace, format!("submit,workload,duration\n{}\n", jobs.join("\n"))).unwrap();
    let trace = trace.to_str().unwrap();
    for arguments in [vec!["simulate", trace], vec!["compare", trace, "--seeds", "2", "--policies", "magm"]] {
        let (terminal, piped) = outputs(&arguments);
        for message in ["simulating", "/s", "left"] {
            assert!(terminal.contains(message), "{message}: {terminal:?}");
        }
        // At the end the progress line is cleared.
        assert!(terminal.trim_end_matches(['\r', '\n']).ends_with("\x1b[2K") || terminal.ends_with('\r'), "{terminal:?}");
        assert_eq!(piped, "");
    }
}
