//! Talking to systemd through `systemctl`.

use std::io::ErrorKind;
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

use super::Scope;

/// The name of the manager's unit.
pub(super) const UNIT: &str = "carma.service";

/// The systemd that runs the services of the machine, or of one user.
#[derive(Debug)]
pub(super) struct Systemd(Scope);

/// The alternative without systemd.
const INSTEAD: &str = "`carma up --detach` starts the manager until the next boot; whatever starts\nservices here can run `carma up`";

impl Systemd {
    /// Finds systemd; the error names the alternative.
    pub(super) fn find(scope: Scope) -> Result<Self> {
        let systemd = Self(scope);
        let output = match systemd.command(&["is-system-running"]).output() {
            Ok(output) => output,
            Err(error) if error.kind() == ErrorKind::NotFound => bail!("this machine has no systemd\n{INSTEAD}"),
            Err(error) => return Err(error).context("cannot run systemctl"),
        };
        // The exit code is nonzero for a degraded system, which can still run services.
        match (String::from_utf8_lossy(&output.stdout).trim(), scope) {
            ("" | "offline" | "unknown", Scope::System) => bail!("systemd does not run this machine\n{INSTEAD}"),
            ("" | "offline" | "unknown", Scope::User) => {
                bail!("no systemd runs for this user: that takes a login, not just su or sudo\n{INSTEAD}")
            }
            _ => Ok(systemd),
        }
    }

    /// Runs a systemctl command.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<()> {
        self.output_of(arguments).map(drop)
    }

    /// The output of a command.
    pub(super) fn output_of(&self, arguments: &[&str]) -> Result<String> {
        let Output { status, stdout, stderr } = self.command(arguments).output().context("cannot run systemctl")?;
        if !status.success() {
            let command = self.0.command_line(arguments);
            bail!("`{command}` failed: {}", String::from_utf8_lossy(&stderr).trim());
        }
        Ok(String::from_utf8_lossy(&stdout).into_owned())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("systemctl");
        command.args(self.0.flag()).args(arguments);
        command
    }
}
