//! Progress of long commands, only on a terminal: a bar, or lines where nothing can be drawn.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use super::carma;

/// What a command prints beside its results on such a terminal.
fn on_terminal(kind: &str, locale: &str, arguments: &[&str]) -> String {
    let words: Vec<String> = arguments.iter().map(|word| format!("'{word}'")).collect();
    let line = format!("{} {} > /dev/null", env!("CARGO_BIN_EXE_carma"), words.join(" "));
    // A terminal of the usual size, on which `script` runs the command.
    let mut script = Command::new("script");
    script.args(["-qefc", &line, "/dev/null"]).env("XDG_CONFIG_HOME", "/nonexistent").env("TERM", kind).env("LC_ALL", locale);
    let run = script.env_remove("NO_COLOR").env_remove("CARMA_PLAIN").output().unwrap();
    String::from_utf8(run.stdout).unwrap()
}

#[test]
fn a_progress_bar_is_drawn_only_on_a_terminal() {
    let (_folder, trace) = &trace();
    for arguments in [vec!["simulate", trace], vec!["compare", trace, "--seeds", "2", "--policies", "magm"]] {
        let terminal = on_terminal("xterm", "C.UTF-8", &arguments);
        for message in ["simulating", "/s", "left"] {
            assert!(terminal.contains(message), "{message}: {terminal:?}");
        }
        // At the end the progress line is cleared.
        assert!(terminal.trim_end_matches(['\r', '\n']).ends_with("\x1b[2K") || terminal.ends_with('\r'), "{terminal:?}");
        let piped = carma(&arguments);
        assert!(piped.status.success() && piped.stderr.is_empty(), "{piped:?}");
    }
}

#[test]
fn a_terminal_that_cannot_be_drawn_on_gets_lines_and_another_locale_gets_ascii() {
    let (_folder, trace) = &trace();
    let arguments = ["compare", trace, "--seeds", "2", "--policies", "magm"];
    assert_eq!(on_terminal("dumb", "C.UTF-8", &arguments), "carma: simulating\r\n");
    assert_eq!(on_terminal("xterm", "C.UTF-8", &[&arguments[..], &["--plain"]].concat()), "carma: simulating\r\n");
    let ascii = on_terminal("xterm", "C", &arguments);
    assert!(ascii.is_ascii() && ascii.contains("/s"), "{ascii:?}");
}

#[test]
fn errors_in_arguments_are_coloured_unless_the_user_wants_none() {
    let coloured = on_terminal("xterm", "C.UTF-8", &["quueue"]);
    assert!(coloured.contains("\x1b["), "{coloured:?}");
    for (kind, arguments) in [("xterm", &["--plain", "quueue"][..]), ("dumb", &["quueue"])] {
        let plain = on_terminal(kind, "C.UTF-8", arguments);
        assert!(plain.contains("unrecognized subcommand") && !plain.contains('\x1b'), "{plain:?}");
    }
}

/// A trace of 80 jobs, and its folder.
fn trace() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.csv");
    let jobs: Vec<String> = (0..80).map(|job| format!("{},unet_voc,400", job * 20)).collect();
    fs::write(&trace, format!("submit,workload,duration\n{}\n", jobs.join("\n"))).unwrap();
    let name = trace.to_str().unwrap().to_owned();
    (folder, name)
}
