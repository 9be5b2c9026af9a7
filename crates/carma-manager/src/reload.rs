//! Reading the configuration again while the manager runs.

use std::path::PathBuf;

use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::api::{Problem, ProblemKind, Reloaded};
use crate::configuration::{Configuration, ManagerSettings};
use crate::engine::Handle;

/// Reads the file again and puts its rules in force. A file with a mistake changes nothing. Settings of the manager itself need a restart: the
/// answer names those that differ from the running ones.
pub async fn reload(handle: &Handle, file: PathBuf, running: &ManagerSettings) -> Result<Reloaded, Problem> {
    let read =
        spawn_blocking(move || Configuration::read(&file)).await.map_err(|error| ProblemKind::Internal.because(error.to_string()))?;
    let Configuration { rules, manager } = read.map_err(|error| ProblemKind::Invalid.because(error.to_string()))?;
    handle.configure(rules).await?;
    Ok(Reloaded { needs_restart: differences(running, &manager) })
}

/// The keys whose values differ.
fn differences(before: &ManagerSettings, after: &ManagerSettings) -> Vec<String> {
    fn compare(name: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
        match (before, after) {
            (Value::Object(before), Value::Object(after)) => {
                for (key, value) in before {
                    compare(&format!("{name}.{key}"), value, after.get(key).unwrap_or(&Value::Null), found);
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
    fn settings_that_differ_are_named_by_their_keys() {
        let before = ManagerSettings::default();
        let mut after = before.clone();
        assert!(differences(&before, &after).is_empty());
        after.operators = "wheel".to_owned();
        after.energy.price = Some(0.3);
        after.gpus.ignore = vec!["3".to_owned()];
        assert_eq!(differences(&before, &after), ["manager.energy.price", "manager.gpus.ignore", "manager.operators"]);
    }
}
