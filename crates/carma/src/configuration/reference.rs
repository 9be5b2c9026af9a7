//! `carma config reference`: the tables of docs/configuration.md.

use std::fmt::Write as _;

use carma_core::{Config, KeyInfo, Kind, Preset, Setting, Settings};
use carma_manager::configuration::{ManagerConfig, ManagerSettings};
use toml::{Table, Value};

use super::show::{keys, values};

/// Longer values are described in the text around the tables.
const LONGEST_VALUE: usize = 30;

/// A table of the settings of decisions with the values of every preset, and one of the manager's with its defaults.
pub(super) fn tables() -> anyhow::Result<String> {
    let presets = Preset::ALL.map(|preset| values(&Settings::from(&Config::from(preset)))).into_iter().collect::<Result<Vec<_>, _>>()?;
    let manager = values(&ManagerSettings::from(&ManagerConfig::default()))?;
    let mut text = String::new();
    head(&mut text, &Preset::ALL.map(Preset::name))?;
    rows(&mut text, "", Settings::KEYS, &presets.iter().collect::<Vec<_>>())?;
    writeln!(text)?;
    head(&mut text, &["default"])?;
    rows(&mut text, "manager.", keys(ManagerConfig::KIND), &[&manager])?;
    Ok(text)
}

fn head(text: &mut String, columns: &[&str]) -> std::fmt::Result {
    writeln!(text, "| key | meaning | allowed | {} |", columns.join(" | "))?;
    writeln!(text, "|---|---|---|{}", "---|".repeat(columns.len()))
}

fn rows(text: &mut String, prefix: &str, keys: &[KeyInfo], columns: &[&Table]) -> std::fmt::Result {
    for key in keys {
        if let Kind::Section(inner) = key.kind {
            let columns: Vec<&Table> = columns.iter().filter_map(|column| column.get(key.name)?.as_table()).collect();
            rows(text, &format!("{prefix}{}.", key.name), inner, &columns)?;
            continue;
        }
        let values: Vec<String> = columns.iter().map(|column| cell(key, column.get(key.name))).collect();
        writeln!(text, "| `{prefix}{}` | {} | {} | {} |", key.name, key.about(), allowed(key), values.join(" | "))?;
    }
    Ok(())
}

fn cell(key: &KeyInfo, value: Option<&Value>) -> String {
    match value {
        // A preset is a column, and names none.
        _ if key.name == "preset" => String::new(),
        None => "unset".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) if items.is_empty() => "none".to_owned(),
        Some(value) => Some(value.to_string()).filter(|text| text.len() <= LONGEST_VALUE).unwrap_or_else(|| "see below".to_owned()),
    }
}

/// The allowed values, short enough for a table.
fn allowed(key: &KeyInfo) -> String {
    let listed = |choices: &[&str]| choices.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    match (key.kind, key.range) {
        (Kind::Choice(choices), _) => listed(choices),
        (Kind::Choices(choices), _) => format!("list of {}", listed(choices)),
        (Kind::Switch, _) => "true, false".to_owned(),
        (_, Some((least, most))) => format!("{least} to {most} {}", key.unit()).trim_end().to_owned(),
        _ => key.allowed(),
    }
}
