//! Rules as they are written in lists of policies, and single settings.

use anyhow::{Context, Result, anyhow, bail, ensure};
use carma_core::{PowerPreference, Preset, Settings};
use carma_manager::configuration::{Configuration, ManagerConfig, Mistake};
use toml::Value;

/// The rules of a policy as it is written in lists: `or-magm`, `magm/aegis`, `or-lug/aegis/no-screen`, `carma/queue.order=submission`.
pub(crate) fn policy_settings(written: &str, base: &Settings) -> Result<Settings> {
    let mut parts = written.split('/');
    let mut settings = Settings { policy: parts.next().map(str::to_owned), ..base.clone() };
    for part in parts {
        if let Some((key, value)) = part.split_once('=') {
            // A bare word is text; everything else is parsed as TOML.
            let value = value.parse().unwrap_or_else(|_| Value::String(value.to_owned()));
            settings = with_setting(&settings, key, value).with_context(|| format!("{written:?} cannot be used"))?;
            continue;
        }
        match part.parse::<Preset>() {
            Ok(preset) => settings.preset = Some(preset),
            Err(_) if part == "no-screen" => settings.screen.get_or_insert_default().enabled = Some(false),
            Err(_) if part == "pack" => settings.power.get_or_insert_default().prefer = Some(PowerPreference::Pack),
            Err(error) => bail!("{written:?}: {error}; or no-screen, pack, or key=value"),
        }
    }
    settings.check().with_context(|| format!("{written:?} cannot be used"))?;
    Ok(settings)
}

/// The settings with another value of one key, checked like a file.
pub(crate) fn with_setting(settings: &Settings, key: &str, value: Value) -> Result<Settings> {
    let cannot = format!("{key} cannot be {value}");
    let mut written = Value::try_from(settings)?;
    let mut place = &mut written;
    for part in key.split('.') {
        let table = place.as_table_mut().with_context(|| format!("unknown setting {key}"))?;
        place = table.entry(part).or_insert_with(|| Value::Table(toml::Table::new()));
    }
    *place = value;
    let read = Configuration::parse(&toml::to_string(&written)?);
    let wrong = |mistakes: Vec<Mistake>| mistakes.into_iter().map(|mistake| mistake.text).collect::<Vec<_>>().join("\n");
    let Configuration { rules, manager, .. } = read.map_err(|mistakes| anyhow!(wrong(mistakes))).context(cannot)?;
    ensure!(manager == ManagerConfig::default(), "{key} is a setting of the manager, not of scheduling");
    Ok(rules)
}
