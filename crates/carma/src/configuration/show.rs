//! `carma config show`: every key with its documentation and the value in force, as TOML.

use std::fmt::Write as _;

use carma_core::{Config, KeyInfo, Kind, Setting, Settings};
use carma_manager::configuration::{ManagerConfig, ManagerSettings};
use serde::Serialize;
use toml::{Table, Value};

/// The whole configuration as a file.
pub(super) fn file(config: &Config, manager: &ManagerConfig) -> anyhow::Result<String> {
    let mut text = String::new();
    section(&mut text, "", Settings::KEYS, &values(&Settings::from(config))?)?;
    writeln!(text, "\n# Settings of the manager itself.")?;
    section(&mut text, "manager", keys(ManagerConfig::KIND), &values(&ManagerSettings::from(manager))?)?;
    Ok(text)
}

/// The keys of a section.
pub(super) const fn keys(kind: Kind) -> &'static [KeyInfo] {
    match kind {
        Kind::Section(keys) => keys,
        _ => &[],
    }
}

/// Settings as written in a file, with 30 rather than 30.0.
pub(super) fn values(settings: &impl Serialize) -> anyhow::Result<Table> {
    fn whole(value: Value) -> Value {
        match value {
            Value::Float(number) if number.fract() == 0.0 => Value::Integer(number as i64),
            Value::Table(table) => Value::Table(table.into_iter().map(|(key, value)| (key, whole(value))).collect()),
            Value::Array(items) => Value::Array(items.into_iter().map(whole).collect()),
            other => other,
        }
    }
    Ok(Table::try_from(settings)?.into_iter().map(|(key, value)| (key, whole(value))).collect())
}

fn section(text: &mut String, name: &str, keys: &[KeyInfo], values: &Table) -> anyhow::Result<()> {
    if !name.is_empty() {
        writeln!(text, "[{name}]")?;
    }
    for key in keys.iter().filter(|key| !matches!(key.kind, Kind::Section(_))) {
        writeln!(text, "# {} ({})", key.about(), key.allowed())?;
        match values.get(key.name) {
            Some(value) => writeln!(text, "{} = {value}", key.name)?,
            None => writeln!(text, "# {} =", key.name)?,
        }
    }
    for key in keys {
        if let (Kind::Section(keys), Some(Value::Table(values))) = (key.kind, values.get(key.name)) {
            let path = if name.is_empty() { key.name.to_owned() } else { format!("{name}.{}", key.name) };
            writeln!(text, "\n# {}", key.about())?;
            section(text, &path, keys, values)?;
        }
    }
    Ok(())
}
