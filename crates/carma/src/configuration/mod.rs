//! The configuration file: read, overridden by flags, checked, shown.

mod reference;
mod show;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use carma_core::{Preset, Settings};
use carma_manager::api::Reloaded;
use carma_manager::configuration::{Configuration, lines};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::manager::Manager;

/// Flags that choose the rules, apart from the policy.
#[derive(Debug, Args)]
pub(crate) struct RuleArguments {
    /// Read this configuration file (TOML).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Start from the settings of this preset.
    #[arg(long, value_parser = presets())]
    preset: Option<Preset>,
}

/// Flags that choose the rules.
#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    #[command(flatten)]
    rules: RuleArguments,
    /// The mapping policy; `carma policies` lists them.
    #[arg(long)]
    policy: Option<String>,
}

fn presets() -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(Preset::ALL.map(Preset::name)).try_map(|name| name.parse())
}

impl RuleArguments {
    /// The file's settings, overridden by the flags; the default is our own preset.
    pub(crate) fn settings(&self) -> Result<Settings> {
        let mut settings = self.config.as_deref().map(read).transpose()?.unwrap_or_default().rules;
        settings.preset = self.preset.or(settings.preset);
        settings.check()?;
        Ok(settings)
    }
}

impl ConfigArguments {
    /// Like [`RuleArguments::settings`], with the policy.
    pub(crate) fn settings(&self) -> Result<Settings> {
        let mut settings = self.rules.settings()?;
        settings.policy = self.policy.clone().or(settings.policy);
        settings.check()?;
        Ok(settings)
    }
}

fn read(file: &Path) -> Result<Configuration> {
    ensure!(file.exists(), "there is no file {}", file.display());
    Ok(Configuration::read(file)?)
}

/// Prints every key with its documentation and the value in force.
pub(crate) fn show(arguments: &ConfigArguments, output: &mut impl Write) -> Result<()> {
    let config = arguments.settings()?.check()?;
    let manager = arguments.rules.config.as_deref().map(read).transpose()?.unwrap_or_default().manager;
    Ok(write!(output, "{}", show::file(&config, &manager)?)?)
}

/// Prints the reference of all keys.
pub(crate) fn reference(output: &mut impl Write) -> Result<()> {
    Ok(write!(output, "{}", reference::tables()?)?)
}

/// Checks a file: reports all mistakes, and all users and groups unknown on this host.
pub(crate) fn check(file: &Path, output: &mut impl Write) -> Result<()> {
    let warnings = lines(file, &read(file)?.warnings);
    ensure!(warnings.is_empty(), "{}", warnings.join("\n"));
    Ok(writeln!(output, "{} is fine", file.display())?)
}

/// Has the running manager read its configuration again.
pub(crate) fn reload(manager: &Manager, output: &mut impl Write) -> Result<()> {
    let Reloaded { needs_restart, warnings } = manager.connect()?.reload()?;
    for warning in &warnings {
        eprintln!("carma: warning: {warning}");
    }
    writeln!(output, "configuration reloaded")?;
    if !needs_restart.is_empty() {
        writeln!(output, "these keys need a restart of the manager: {}", needs_restart.join(", "))?;
    }
    Ok(())
}
