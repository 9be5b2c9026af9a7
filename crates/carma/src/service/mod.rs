//! `carma service`: the manager as a service of systemd, of the machine or of one user.

mod systemd;
mod unit;
mod unit_state;

use std::env;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use rustix::process::geteuid;
use systemd::{Systemd, UNIT};
use tempfile::NamedTempFile;
pub(crate) use unit_state::UnitFacts;
use unit_state::UnitState;

/// The systemd commands after the unit is written. A running manager restarts with the new unit.
const START: [&[&str]; 3] = [&["daemon-reload"], &["enable", UNIT], &["restart", UNIT]];

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Let systemd start the manager now and at every boot.
    Install(InstallArguments),
    /// Stop the manager and remove the service. Running jobs continue.
    #[command(after_help = "Example:\n  sudo carma service remove")]
    Remove(ScopeArguments),
    /// Show the state of the service.
    #[command(after_help = "Example:\n  carma service status --user")]
    Status(ScopeArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sudo carma service install\n  carma service install --user --dry-run")]
pub(crate) struct InstallArguments {
    #[command(flatten)]
    scope: ScopeArguments,
    /// Print the unit and the steps, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// The configuration file of the manager [default: the standard file].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ScopeArguments {
    /// The service of this user, not of the machine.
    #[arg(long)]
    user: bool,
}

/// The scope of a manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The machine's.
    System,
    /// A user's manager.
    User,
}

impl Scope {
    /// When it is started.
    const fn target(self) -> &'static str {
        match self {
            Self::System => "multi-user.target",
            Self::User => "default.target",
        }
    }

    /// The flag of `systemctl` and of this command.
    const fn flag(self) -> Option<&'static str> {
        match self {
            Self::System => None,
            Self::User => Some("--user"),
        }
    }

    /// A call of `systemctl`, as text.
    fn command_line(self, arguments: &[&str]) -> String {
        let command: Vec<&str> = ["systemctl"].into_iter().chain(self.flag()).chain(arguments.iter().copied()).collect();
        command.join(" ")
    }

    /// The path of the unit.
    fn file(self) -> Result<PathBuf> {
        let folder = match self {
            Self::System => PathBuf::from("/etc/systemd/system"),
            Self::User => {
                let given = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
                let config = given.or_else(|| Some(env::home_dir()?.join(".config")));
                config.context("HOME is not set: a user's unit has no folder")?.join("systemd/user")
            }
        };
        Ok(folder.join(UNIT))
    }

    fn check_rights(self, verb: &str) -> Result<()> {
        if self == Self::System && !geteuid().is_root() {
            bail!("the machine's service is root's: use sudo, or for one of your own\n  carma service {verb} --user");
        }
        Ok(())
    }
}

impl ScopeArguments {
    const fn scope(&self) -> Scope {
        if self.user { Scope::User } else { Scope::System }
    }
}

/// Runs the command.
pub(crate) fn run(command: &Command, output: &mut impl Write) -> Result<()> {
    match command {
        Command::Install(arguments) => install(arguments, output),
        Command::Remove(arguments) => remove(arguments.scope()),
        Command::Status(arguments) => status(arguments.scope(), output),
    }
}

fn install(arguments: &InstallArguments, output: &mut impl Write) -> Result<()> {
    let scope = arguments.scope.scope();
    let program = env::current_exe().context("cannot tell where this program is")?;
    let config = arguments.config.as_deref().map(std::path::absolute).transpose().context("cannot tell where the configuration file is")?;
    let (file, unit) = (scope.file()?, unit::unit(scope, &program, config.as_deref()));
    if arguments.dry_run {
        eprintln!("carma: this would be {}; then:", file.display());
        for step in START {
            eprintln!("  {}", scope.command_line(step));
        }
        return Ok(output.write_all(unit.as_bytes())?);
    }
    scope.check_rights("install")?;
    if let Some(config) = config.filter(|config| !config.is_file()) {
        bail!("there is not a file {}", config.display());
    }
    let systemd = Systemd::find(scope)?;
    write(&file, &unit).with_context(|| format!("cannot write {}", file.display()))?;
    START.iter().try_for_each(|step| systemd.run(step))?;
    eprintln!("carma: wrote {}", file.display());
    match scope {
        Scope::System => eprintln!("carma: the manager runs, and starts at every boot"),
        Scope::User => eprintln!(
            "carma: the manager runs, and will at every login; for it and its jobs\n\
             carma: to go on when you log out: loginctl enable-linger"
        ),
    }
    Ok(())
}

/// Writes a unit atomically.
fn write(file: &Path, unit: &str) -> Result<()> {
    let folder = file.parent().context("it is in no folder")?;
    fs::create_dir_all(folder)?;
    let mut new = NamedTempFile::new_in(folder)?;
    new.write_all(unit.as_bytes())?;
    new.as_file().set_permissions(Permissions::from_mode(0o644))?;
    new.persist(file)?;
    Ok(())
}

fn remove(scope: Scope) -> Result<()> {
    scope.check_rights("remove")?;
    let file = scope.file()?;
    if !file.exists() {
        bail!("not installed: there is no {}", file.display());
    }
    let systemd = Systemd::find(scope)?;
    systemd.run(&["disable", "--now", UNIT])?;
    fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
    systemd.run(&["daemon-reload"])?;
    eprintln!("carma: the service is removed; running jobs continue, and `carma up` finds them again");
    Ok(())
}

/// What systemd knows about the manager's unit, of this user or of the machine. An error says why there is no systemd.
pub(crate) fn unit_facts(user: bool) -> Result<UnitFacts> {
    let scope = if user { Scope::User } else { Scope::System };
    Ok(UnitFacts::from(&UnitState::read(&Systemd::find(scope)?.output_of(&["show", unit_state::PROPERTIES, UNIT])?)))
}

fn status(scope: Scope, output: &mut impl Write) -> Result<()> {
    let shown = Systemd::find(scope)?.output_of(&["show", unit_state::PROPERTIES, UNIT])?;
    let state = UnitState::read(&shown);
    if !state.is_installed() {
        let flag = scope.flag().map(|flag| format!(" {flag}")).unwrap_or_default();
        bail!("the service is not installed: `carma service install{flag}` does it");
    }
    Ok(write!(output, "{state}")?)
}
