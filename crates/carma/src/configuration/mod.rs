//! The configuration file: read, overridden by flags, checked, shown.

mod policy_settings;
mod reference;
mod show;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use carma_core::{Preset, Settings};
use carma_manager::api::{ConfigurationDetail, Reloaded};
use carma_manager::client::Client;
use carma_manager::client::ClientError;
use carma_manager::configuration::{AccountNames, Configuration, ManagerSettings, Source, Sources, lines, sources};
use carma_manager::network_files::read_with_files;
use carma_manager::places::Places;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

pub(crate) use self::policy_settings::{policy_settings, with_setting};
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
    /// The mapping policy; `carma policies` lists them. Presets and settings can follow after slashes, as for `carma compare`:
    /// magm/aegis, carma/forecast.delay=1.
    #[arg(long)]
    policy: Option<String>,
}

/// What `carma config show` prints: a file and flags, or what is in force.
#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    #[command(flatten)]
    rules: ConfigArguments,
    #[command(flatten)]
    manager: Manager,
}

/// A configuration in force: all values, and where they come from.
struct CurrentConfiguration {
    /// Where it applies, as text.
    place: String,
    /// The file that it was read from.
    file: Option<PathBuf>,
    rules: Settings,
    manager: ManagerSettings,
    sources: Sources,
    names: AccountNames,
}

impl CurrentConfiguration {
    fn new(place: String, file: Option<PathBuf>, configuration: &Configuration) -> Result<Self> {
        let rules = Settings::from(&configuration.rules.check()?);
        let sources = sources(&configuration.given, &configuration.rules)?;
        let names = AccountNames::of(&rules);
        Ok(Self { place, file, rules, manager: (&configuration.manager).into(), sources, names })
    }

    fn in_manager(client: &mut Client) -> Result<Self> {
        let ConfigurationDetail { file, rules, manager, sources, names, .. } = client.configuration()?;
        let place = format!("Values in force in the manager at {}; its file: {}", client.address(), file.display());
        Ok(Self { place, file: Some(file), rules, manager, sources, names })
    }

    fn without_manager() -> Result<Self> {
        let file = Places::own().configuration;
        let exists = if file.exists() { "" } else { ", which does not exist" };
        let place = format!("No manager is running. `carma up` would read {}{exists}", file.display());
        Self::new(place, Some(file.clone()), &Configuration::read(&file)?)
    }
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
    /// Whether any flag is given.
    fn is_given(&self) -> bool {
        self.rules.config.is_some() || self.rules.preset.is_some() || self.policy.is_some()
    }

    /// The file's configuration, overridden by the flags.
    fn in_force(&self) -> Result<CurrentConfiguration> {
        let mut configuration = self.rules.config.as_deref().map(read).transpose()?.unwrap_or_default();
        configuration.rules = self.settings()?;
        let flags = [("preset", self.rules.preset.is_some()), ("policy", self.policy.is_some())];
        for (key, _) in flags.into_iter().filter(|(_, given)| *given) {
            configuration.given.insert(key.to_owned(), Source::Flag(format!("--{key}")));
        }
        let place = "Values of the given file and flags. Without these, carma config show prints the values in force".to_owned();
        CurrentConfiguration::new(place, self.rules.config.clone(), &configuration)
    }

    /// Like [`RuleArguments::settings`], with the policy.
    pub(crate) fn settings(&self) -> Result<Settings> {
        let mut settings = self.rules.settings()?;
        if let Some(policy) = self.policy.as_ref().filter(|policy| policy.contains('/')) {
            return policy_settings(policy, &settings);
        }
        settings.policy = self.policy.clone().or(settings.policy);
        settings.check()?;
        Ok(settings)
    }
}

fn read(file: &Path) -> Result<Configuration> {
    ensure!(file.exists(), "there is not a file {}", file.display());
    Ok(Configuration::read(file)?)
}

/// Prints every key with its documentation, the value in force and its source.
pub(crate) fn show(arguments: &ShowArguments, output: &mut impl Write) -> Result<()> {
    let in_force = if arguments.rules.is_given() {
        arguments.rules.in_force()?
    } else {
        match arguments.manager.connect() {
            Ok(mut client) => CurrentConfiguration::in_manager(&mut client)?,
            Err(ClientError::NoManager(_)) => CurrentConfiguration::without_manager()?,
            Err(error) => return Err(error.into()),
        }
    };
    Ok(write!(output, "{}", show::file(&in_force)?)?)
}

/// Prints the reference of all keys.
pub(crate) fn reference(output: &mut impl Write) -> Result<()> {
    Ok(write!(output, "{}", reference::tables()?)?)
}

/// Checks a file, or that of the manager: reports all mistakes, and all users and groups unknown on this host.
pub(crate) fn check(file: Option<&Path>, output: &mut impl Write) -> Result<()> {
    let own = Places::own().configuration;
    if file.is_none() && !own.exists() {
        return Ok(writeln!(output, "there is no {}: all keys have their defaults", own.display())?);
    }
    let file = file.unwrap_or(&own);
    ensure!(file.exists(), "there is not a file {}", file.display());
    let warnings = lines(file, &read_with_files(file)?.warnings);
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
