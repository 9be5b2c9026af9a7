//! `carma config show`: every key with its documentation, the value in force and its source, as TOML.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use carma_core::{KeyInfo, Kind, Setting, Settings};
use carma_manager::configuration::{AccountNames, ManagerConfig, Source};
use serde::Serialize;
use toml::{Table, Value};

use super::CurrentConfiguration;

/// The whole configuration as a file.
pub(super) fn file(in_force: &CurrentConfiguration) -> anyhow::Result<String> {
    let mut text = format!("# {}.\n", in_force.place);
    section(&mut text, in_force, "", Settings::KEYS, &named(values(&in_force.rules)?, &in_force.names))?;
    writeln!(text, "\n# Settings of the manager itself.")?;
    section(&mut text, in_force, "manager", keys(ManagerConfig::KIND), &values(&in_force.manager)?)?;
    Ok(text)
}

/// Where the value of a key comes from.
fn source(in_force: &CurrentConfiguration, key: &str) -> String {
    match (in_force.sources.get(key), &in_force.file) {
        (Some(Source::Line(line)), Some(file)) => format!("{}:{line}", file.display()),
        (Some(source), _) => source.to_string(),
        // A manager of an earlier version names no sources.
        (None, _) => "unknown".to_owned(),
    }
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

/// The same with names in place of the numbers of users and groups that are known.
fn named(mut values: Table, names: &AccountNames) -> Table {
    for (section, key) in [("quotas", "users"), ("queue", "shares")] {
        let Some(Value::Array(items)) = values.get_mut(section).and_then(|section| section.get_mut(key)) else { continue };
        for item in items.iter_mut().filter_map(Value::as_table_mut) {
            let renamed = std::mem::take(item).into_iter().map(|(key, value)| {
                let number = value.as_integer().and_then(|number| u32::try_from(number).ok());
                let name = |known: &BTreeMap<u32, String>| known.get(&number?).map(|name| Value::String(name.clone()));
                let of_key = match key.as_str() {
                    "uid" => name(&names.users).map(|name| ("user", name)),
                    "gid" => name(&names.groups).map(|name| ("group", name)),
                    _ => None,
                };
                of_key.map_or((key, value), |(key, name)| (key.to_owned(), name))
            });
            *item = renamed.collect();
        }
    }
    values
}

fn section(text: &mut String, in_force: &CurrentConfiguration, name: &str, keys: &[KeyInfo], values: &Table) -> anyhow::Result<()> {
    if !name.is_empty() {
        writeln!(text, "[{name}]")?;
    }
    for key in keys.iter().filter(|key| !matches!(key.kind, Kind::Section(_))) {
        writeln!(text, "# {} ({})", key.about(), key.allowed())?;
        let source = source(in_force, &path(name, key));
        match values.get(key.name) {
            Some(value) => writeln!(text, "{} = {value}  # {source}", key.name)?,
            None => writeln!(text, "# {} =  # {source}", key.name)?,
        }
    }
    for key in keys {
        if let (Kind::Section(keys), Some(Value::Table(values))) = (key.kind, values.get(key.name)) {
            writeln!(text, "\n# {}", key.about())?;
            section(text, in_force, &path(name, key), keys, values)?;
        }
    }
    Ok(())
}

/// A key with its sections.
fn path(section: &str, key: &KeyInfo) -> String {
    if section.is_empty() { key.name.to_owned() } else { format!("{section}.{}", key.name) }
}

#[cfg(test)]
mod tests {
    use carma_manager::configuration::Configuration;

    use super::*;

    #[test]
    fn users_and_groups_are_shown_by_name_in_a_file_that_can_be_read_again() {
        let written = "[queue]\nfair_share = true\nshares = [{ uid = 0, share = 2 }, { gid = 0, share = 3 }]\n[[quotas.users]]\nuser = \"root\"\ngpus = 4\n";
        let read = Configuration::parse(written).unwrap();
        let shown = file(&CurrentConfiguration::new("a test".to_owned(), None, &read).unwrap()).unwrap();
        assert!(shown.contains("users = [{ user = \"root\", gpus = 4 }]"), "{shown}");
        assert!(shown.contains("shares = [{ user = \"root\", share = 2 }, { group = \"root\", share = 3 }]"), "{shown}");
        assert_eq!(Configuration::parse(&shown).unwrap().rules.check(), read.rules.check());
    }
}
