//! The manager as a service, with a `systemctl` that records its arguments.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use carma_testing::{as_nobody, need};
use tempfile::TempDir;

/// A user's home on a machine whose systemd answers as a script says.
struct Home(TempDir);

impl Home {
    fn new(answers: &str) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        let systemctl = home.path("bin/systemctl");
        fs::create_dir(home.path("bin")).unwrap();
        fs::write(&systemctl, format!("#!/bin/sh\necho \"$*\" >>\"$HOME/calls\"\ncase $* in\n{answers}\nesac\n")).unwrap();
        fs::set_permissions(&systemctl, fs::Permissions::from_mode(0o755)).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn unit(&self) -> PathBuf {
        self.path(".config/systemd/user/carma.service")
    }

    fn service(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_carma"));
        command.env_clear().env("HOME", self.0.path()).env("PATH", self.path("bin"));
        command.arg("service").args(arguments).current_dir(self.0.path()).output().unwrap()
    }

    /// The messages of a command, and whether it succeeded.
    fn says(&self, succeeds: bool, arguments: &[&str]) -> String {
        let Output { status, stderr, .. } = self.service(arguments);
        let message = String::from_utf8(stderr).unwrap().replace(self.0.path().to_str().unwrap(), "HOME");
        assert_eq!(status.success(), succeeds, "{message}");
        message
    }

    /// The recorded calls of systemctl.
    fn calls(&self) -> String {
        fs::read_to_string(self.path("calls")).unwrap_or_default()
    }
}

const RUNS: &str = "*is-system-running) echo degraded; exit 1 ;;";

#[test]
fn a_users_service_is_installed_and_removed() {
    let home = Home::new(RUNS);
    fs::write(home.path("my carma.toml"), "").unwrap();
    let installed = home.says(true, &["install", "--user", "--config", "my carma.toml"]);
    insta::assert_snapshot!("service-install", installed);
    let unit = fs::read_to_string(home.unit()).unwrap();
    let start = format!("ExecStart={} up --config \"{}\"", env!("CARGO_BIN_EXE_carma"), home.path("my carma.toml").display());
    assert!(unit.lines().any(|line| line == start), "{unit}");
    assert_eq!(fs::metadata(home.unit()).unwrap().permissions().mode() & 0o777, 0o644);
    home.says(true, &["remove", "--user"]);
    assert!(!home.unit().exists());
    insta::assert_snapshot!("service-calls", home.calls());
    insta::assert_snapshot!("service-not-there", home.says(false, &["remove", "--user"]));
}

#[test]
fn a_dry_run_only_prints_the_unit() {
    let home = Home::new(RUNS);
    let output = home.service(&["install", "--user", "--dry-run"]);
    let unit = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && unit.starts_with("[Unit]\n") && unit.ends_with("\nWantedBy=default.target\n"), "{unit}");
    insta::assert_snapshot!("service-dry-run", home.says(true, &["install", "--dry-run"]));
    assert!(!home.unit().exists() && home.calls().is_empty());
}

#[test]
fn without_systemd_an_alternative_is_named() {
    let home = Home::new("*) echo offline; exit 1 ;;");
    insta::assert_snapshot!("service-no-systemd", home.says(false, &["install", "--user"]));
    assert!(home.says(false, &["status"]).contains("systemd does not run this machine"));
    fs::remove_file(home.path("bin/systemctl")).unwrap();
    assert!(home.says(false, &["install", "--user"]).contains("this machine has no systemd"));
    assert!(!home.unit().exists());
}

#[test]
fn errors_of_systemd_are_shown_as_they_are() {
    let home = Home::new(&format!("{RUNS}\n*enable*) echo 'Unit is masked.' >&2; exit 1 ;;"));
    let message = home.says(false, &["install", "--user"]);
    assert_eq!(message, "carma: `systemctl --user enable carma.service` failed: Unit is masked.\n");
    assert!(home.says(false, &["install", "--user", "--config", "none.toml"]).contains("there is not a file HOME/none.toml"));
}

#[test]
fn the_status_is_shown_where_there_is_a_service() {
    let home = Home::new(&format!("{RUNS}\n*show*) printf 'LoadState=loaded\\nActiveState=active\\nSubState=running\\nMainPID=7\\n' ;;"));
    let shown = String::from_utf8(home.service(&["status", "--user"]).stdout).unwrap();
    assert!(shown.starts_with("state    active (running)\n") && shown.contains("process  7,"), "{shown}");
    let none = Home::new(&format!("{RUNS}\n*show*) echo LoadState=not-found ;;"));
    assert!(none.says(false, &["status", "--user"]).contains("`carma service install --user` does it"));
}

#[test]
fn only_root_installs_the_system_service() {
    let mut command = need!(as_nobody(env!("CARGO_BIN_EXE_carma").as_ref()));
    let output = command.args(["service", "install"]).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("use sudo, or for one of your own\n  carma service install --user"));
}
