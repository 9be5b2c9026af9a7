//! Reading the configuration again while the manager runs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Map, Value};
use tokio::task::spawn_blocking;

use crate::api::{Problem, ProblemKind, Reloaded};
use crate::configuration::{Configuration, ManagerConfig, ManagerSettings, lines};
use crate::engine::Handle;
use crate::network_files::read_with_files;

/// Reads the file again and puts its rules in force. A mistake in it, or in a file that it names, changes nothing. Settings of the manager itself need a restart: the
/// answer names those that differ from the running ones.
pub async fn reload(handle: &Handle, file: PathBuf, running: &ManagerConfig) -> Result<Reloaded, Problem> {
    let path = file.clone();
    let read = spawn_blocking(move || read_with_files(&file)).await.map_err(|error| ProblemKind::Internal.because(error.to_string()))?;
    let Configuration { rules, manager, given, warnings } = read.map_err(|error| ProblemKind::Invalid.because(error.to_string()))?;
    handle.configure(rules, given).await?;
    let needs_restart = differences(&running.into(), &(&manager).into());
    handle.note_restart(needs_restart.clone());
    Ok(Reloaded { needs_restart, warnings: lines(&path, &warnings) })
}

/// The keys whose values differ.
pub fn differences(before: &ManagerSettings, after: &ManagerSettings) -> Vec<String> {
    fn compare(name: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
        match (before, after) {
            (Value::Object(before), Value::Object(after)) => {
                let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
                let at = |table: &Map<String, Value>, key: &str| table.get(key).cloned().unwrap_or_default();
                for key in keys {
                    compare(&format!("{name}.{key}"), &at(before, key), &at(after, key), found);
                }
            }
            _ if before != after => found.push(name.to_owned()),
            _ => {}
        }
    }
    let value = |settings| serde_json::to_value(settings).unwrap_or_default();
    let mut found = Vec::new();
    compare("manager", &value(before), &value(after), &mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_settings_are_listed_by_key() {
        let before = ManagerConfig::default();
        let mut after = before.clone();
        let differences = |after: &ManagerConfig| differences(&(&before).into(), &after.into());
        assert!(differences(&after).is_empty());
        after.operators = "wheel".to_owned();
        after.energy.price = Some(0.3);
        after.gpus.ignore = vec!["3".to_owned()];
        assert_eq!(differences(&after), ["manager.energy.price", "manager.gpus.ignore", "manager.operators"]);
    }
}
