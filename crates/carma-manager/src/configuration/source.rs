//! Where the value of each key comes from.

use std::collections::BTreeMap;
use std::fmt;

use carma_core::{Aim, Config, ConfigErrors, KeyInfo, Kind, Preset, Setting, Settings};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::ManagerConfig;

/// Where a value of the configuration comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The default.
    Default,
    /// The preset of this name: its value differs from the default.
    Preset(String),
    /// The aim of this name: its value differs from that of its preset.
    Aim(String),
    /// This line of the configuration file.
    Line(usize),
    /// This flag of a command.
    Flag(String),
}

/// Sources by key: `admission.margin`.
pub type Sources = BTreeMap<String, Source>;

/// The first part of the manager's own keys.
const MANAGER: &str = "manager";

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Preset(name) => write!(f, "preset {name}"),
            Self::Aim(name) => write!(f, "aim {name}"),
            Self::Line(line) => write!(f, "line {line}"),
            Self::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}

/// Whether a key is one of the manager itself, which a reload does not change.
pub(super) fn is_managers(key: &str) -> bool {
    key.strip_prefix(MANAGER).is_some_and(|rest| rest.starts_with('.'))
}

/// The source of every key, from those that a file or a flag gives.
pub fn sources(given: &Sources, rules: &Settings) -> Result<Sources, ConfigErrors> {
    let config = rules.check()?;
    let values = |preset, aim| serde_json::to_value(Settings::from(&Config::new(preset, aim))).unwrap_or_default();
    let (default, preset, aimed) =
        (values(Preset::Paper, Aim::default()), values(config.preset, Aim::default()), values(config.preset, config.aim));
    let of_preset = |path: &[&str]| match () {
        () if path == ["preset"] || path == ["aim"] => Source::Default,
        () if at(&aimed, path) != at(&preset, path) => Source::Aim(config.aim.name().to_owned()),
        () if at(&preset, path) != at(&default, path) => Source::Preset(config.preset.name().to_owned()),
        () => Source::Default,
    };
    let mut found = Sources::new();
    each_key(Settings::KEYS, &mut Vec::new(), &mut |path| {
        found.insert(path.join("."), of_preset(path));
    });
    if let Kind::Section(keys) = ManagerConfig::KIND {
        each_key(keys, &mut vec![MANAGER], &mut |path| {
            found.insert(path.join("."), Source::Default);
        });
    }
    found.extend(given.clone());
    Ok(found)
}

/// Calls a function with the path of every key that has a value.
fn each_key(keys: &[KeyInfo], path: &mut Vec<&'static str>, call: &mut impl FnMut(&[&str])) {
    for key in keys {
        path.push(key.name);
        match key.kind {
            Kind::Section(keys) => each_key(keys, path, call),
            _ => call(path),
        }
        path.pop();
    }
}

fn at<'v>(values: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(values, |value, key| value.get(key))
}

#[cfg(test)]
mod tests {
    use super::super::Configuration;
    use super::*;

    #[test]
    fn every_key_says_where_its_value_comes_from() {
        let text = "aim = \"throughput\"\n[admission]\n\nmargin = 700\n[manager]\noperators = \"\"\n";
        let read = Configuration::parse(text).unwrap();
        let found = sources(&read.given, &read.rules).unwrap();
        let source = |key: &str| found[key].to_string();
        let named =
            ["aim", "admission.margin", "manager.operators", "admission.floor", "admission.trim_after", "manager.limits.gpus_per_job"];
        assert_eq!(named.map(source), ["line 1", "line 4", "line 6", "default", "preset carma", "default"]);
        assert!(found.values().any(|source| *source == Source::Aim("throughput".to_owned())), "{found:?}");
        assert_eq!((source("policy").as_str(), source("preset").as_str()), ("preset carma", "default"));
    }

    #[test]
    fn the_managers_own_keys_keep_their_source_over_a_reload() {
        let mut running = Configuration::parse("[manager]\noperators = \"\"\n[admission]\nmargin = 1\n").unwrap();
        let read = Configuration::parse("[admission]\nfloor = 1\n[manager]\nshared_account = true\n").unwrap();
        running.replace_rules(read.rules, read.given);
        let given: Vec<(&str, &Source)> = running.given.iter().map(|(key, source)| (key.as_str(), source)).collect();
        assert_eq!(given, [("admission.floor", &Source::Line(2)), ("manager.operators", &Source::Line(2))]);
    }
}
