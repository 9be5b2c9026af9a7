//! The configuration file: read, overridden by flags, checked, shown.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use carma_core::{Preset, Settings};
use carma_manager::configuration::Configuration;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use toml::Value;

use crate::manager::Manager;

/// Flags that choose the rules, apart from the policy.
#[derive(Debug, Args)]
pub(crate) struct RuleArguments {
    /// Read this configuration file (TOML).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Start from the numbers of this preset.
    #[arg(long, value_parser = presets())]
    preset: Option<Preset>,
}

/// Flags that choose the rules.
#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    #[command(flatten)]
    rules: RuleArguments,
    /// Map jobs by this policy; `carma policies` lists them.
    #[arg(long)]
    policy: Option<String>,
}

fn presets() -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(Preset::ALL.map(Preset::name)).try_map(|name| name.parse())
}

impl RuleArguments {
    /// The file's settings, overridden by the flags; nothing given is our own preset.
    pub(crate) fn settings(&self) -> Result<Settings> {
        let mut settings = self.config.as_deref().map(read).transpose()?.unwrap_or_default().rules;
        settings.preset = self.preset.or(settings.preset);
        settings.check()?;
        Ok(settings)
    }
}

impl ConfigArguments {
    /// As [`RuleArguments::settings`], with the policy.
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

/// Prints every key with the value in force.
pub(crate) fn show(arguments: &ConfigArguments, output: &mut impl Write) -> Result<()> {
    let config = arguments.settings()?.check()?;
    let manager = arguments.rules.config.as_deref().map(read).transpose()?.unwrap_or_default().manager;
    let mut written = Value::try_from(Settings::from(&config))?;
    if let Value::Table(table) = &mut written {
        table.insert("manager".to_owned(), Value::try_from(manager)?);
    }
    Ok(write!(output, "{}", toml::to_string(&whole_numbers(written))?)?)
}

/// Writes 30 rather than 30.0.
fn whole_numbers(value: Value) -> Value {
    match value {
        Value::Float(number) if number.fract() == 0.0 => Value::Integer(number as i64),
        Value::Table(table) => Value::Table(table.into_iter().map(|(key, value)| (key, whole_numbers(value))).collect()),
        other => other,
    }
}

/// Says whether a file is a configuration, and if not, all that is wrong with it.
pub(crate) fn check(file: &Path, output: &mut impl Write) -> Result<()> {
    read(file)?;
    Ok(writeln!(output, "{} is fine", file.display())?)
}

/// Has the running manager read its configuration again.
pub(crate) fn reload(manager: &Manager, output: &mut impl Write) -> Result<()> {
    let needs_restart = manager.connect()?.reload()?.needs_restart;
    writeln!(output, "configuration reloaded")?;
    if !needs_restart.is_empty() {
        writeln!(output, "these keys need a restart of the manager: {}", needs_restart.join(", "))?;
    }
    Ok(())
}
