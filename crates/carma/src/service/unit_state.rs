//! The state of the service, from the properties in systemd: pure.

use std::collections::BTreeMap;
use std::fmt;

/// The requested properties.
pub(super) const PROPERTIES: &str =
    "--property=LoadState,ActiveState,SubState,Result,UnitFileState,FragmentPath,MainPID,ActiveEnterTimestamp,StatusText";

/// The properties of a unit: lines of `Name=value`.
pub(super) struct UnitState<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> UnitState<'a> {
    pub(super) fn read(shown: &'a str) -> Self {
        Self(shown.lines().filter_map(|line| line.split_once('=')).filter(|(_, value)| !value.is_empty()).collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).copied()
    }

    pub(super) fn is_installed(&self) -> bool {
        self.get("LoadState").is_some_and(|state| state != "not-found")
    }
}

/// The same for checks, without the text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct UnitFacts {
    pub(crate) installed: bool,
    /// `enabled`, `disabled`, ...
    pub(crate) enabled: String,
    /// `active`, `inactive`, `failed`, ...
    pub(crate) active: String,
    /// How it last ended.
    pub(crate) result: Option<String>,
    pub(crate) main_pid: Option<u32>,
}

impl From<&UnitState<'_>> for UnitFacts {
    fn from(state: &UnitState<'_>) -> Self {
        let text = |name| state.get(name).unwrap_or("unknown").to_owned();
        Self {
            installed: state.is_installed(),
            enabled: text("UnitFileState"),
            active: text("ActiveState"),
            result: state.get("Result").map(str::to_owned),
            main_pid: state.get("MainPID").and_then(|pid| pid.parse().ok()).filter(|pid| *pid > 0),
        }
    }
}

impl fmt::Display for UnitState<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let get = |name| self.get(name).unwrap_or("unknown");
        // The last failure is shown only while it persists.
        let result = self.get("Result").filter(|result| *result != "success").map(|result| format!(": {result}")).unwrap_or_default();
        writeln!(out, "state    {} ({}){result}", get("ActiveState"), get("SubState"))?;
        writeln!(out, "boot     {}", get("UnitFileState"))?;
        writeln!(out, "unit     {}", get("FragmentPath"))?;
        if let Some(process) = self.get("MainPID").filter(|process| *process != "0") {
            writeln!(out, "process  {process}, since {}", get("ActiveEnterTimestamp"))?;
        }
        self.get("StatusText").map_or(Ok(()), |status| writeln!(out, "says     {status}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_service_is_parsed() {
        let runs = "MainPID=4711\nResult=success\nStatusText=2 jobs run, a=b waits\nLoadState=loaded\nActiveState=active\nSubState=running\n\
                    FragmentPath=/lib/systemd/system/carma.service\nUnitFileState=enabled\nActiveEnterTimestamp=Mon 2026-11-16 08:00:00 UTC\n";
        let failed = "MainPID=0\nResult=exit-code\nStatusText=\nLoadState=loaded\nActiveState=activating\nSubState=auto-restart\n\
                      FragmentPath=/lib/systemd/system/carma.service\nUnitFileState=disabled\nActiveEnterTimestamp=\n";
        insta::assert_snapshot!("unit-state", [runs, failed].map(|shown| UnitState::read(shown).to_string()).join("\n"));
        assert!(UnitState::read(runs).is_installed());
        let facts = UnitFacts::from(&UnitState::read(failed));
        assert_eq!(
            (facts.enabled.as_str(), facts.active.as_str(), facts.result.as_deref(), facts.main_pid),
            ("disabled", "activating", Some("exit-code"), None)
        );
        assert!(!UnitState::read("LoadState=not-found\nActiveState=inactive\n").is_installed());
    }
}
