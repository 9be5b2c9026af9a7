//! The findings about the service of systemd. Pure.

use super::findings::{Finding, Health, finding};
use crate::service::UnitFacts;

/// What systemd says about the manager's unit.
#[derive(Debug)]
pub(super) enum Service {
    /// There is no systemd, or it does not run services here.
    NoSystemd(String),
    /// The unit, of the machine or of this user.
    Unit { user: bool, facts: UnitFacts },
}

/// All findings about the service. `manager` is the process of the running manager, if there is one on this host.
pub(super) fn findings(service: &Service, manager: Option<u32>) -> Vec<Finding> {
    let (user, facts) = match service {
        Service::NoSystemd(why) => {
            let says = format!("{why}, so the manager does not start at boot");
            return vec![finding(Health::Note, says, Some("start it where services are started here: carma up --detach"))];
        }
        Service::Unit { user, facts } => (*user, facts),
    };
    let (flag, sudo) = if user { (" --user", "") } else { ("", "sudo ") };
    if !facts.installed {
        let fix = format!("{sudo}carma service install{flag}");
        return vec![finding(Health::Note, "the manager is no service: it does not start at boot", Some(&fix))];
    }
    let mut all = Vec::new();
    let starts = matches!(facts.enabled.as_str(), "enabled" | "enabled-runtime" | "static" | "alias");
    if starts {
        all.push(finding(Health::Ok, format!("the service starts at {}", if user { "every login" } else { "every boot" }), None));
    } else {
        let fix = format!("{sudo}systemctl{flag} enable carma.service");
        all.push(finding(Health::Warning, format!("the service does not start at boot: it is {}", facts.enabled), Some(&fix)));
    }
    let journal = format!("{sudo}journalctl{flag} -u carma.service -n 50 shows why");
    let failed = facts.result.as_deref().filter(|result| *result != "success");
    all.push(match (facts.active.as_str(), failed, manager) {
        ("active", _, Some(pid)) if facts.main_pid.is_some_and(|main| main != pid) => {
            let says = format!("the service runs, but the manager that answers is process {pid}, which is not the service's");
            finding(Health::Warning, says, Some("carma down stops that one; then restart the service"))
        }
        ("active", ..) => finding(Health::Ok, "the service is active", None),
        (state, Some(result), _) => finding(Health::Error, format!("the service is {state}: {result}"), Some(&journal)),
        (state, None, Some(pid)) => {
            let says = format!("the service is {state}, and a manager runs without it as process {pid}");
            finding(Health::Warning, says, Some(&format!("carma down, then {sudo}systemctl{flag} start carma.service")))
        }
        (state, None, None) => {
            finding(Health::Warning, format!("the service is {state}"), Some(&format!("{sudo}systemctl{flag} start carma.service")))
        }
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(enabled: &str, active: &str, result: &str, main_pid: u32, manager: Option<u32>) -> Vec<(Health, String)> {
        let facts = UnitFacts {
            installed: true,
            enabled: enabled.to_owned(),
            active: active.to_owned(),
            result: Some(result.to_owned()),
            main_pid: (main_pid > 0).then_some(main_pid),
        };
        findings(&Service::Unit { user: false, facts }, manager)
            .into_iter()
            .map(|finding| (finding.health, finding.fix.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn a_service_that_runs_is_fine() {
        assert_eq!(about("enabled", "active", "success", 7, Some(7)), [(Health::Ok, String::new()), (Health::Ok, String::new())]);
    }

    #[test]
    fn what_is_wrong_with_a_service_has_its_remedy() {
        let [not_enabled, _] = about("disabled", "active", "success", 7, Some(7)).try_into().unwrap();
        assert_eq!(not_enabled, (Health::Warning, "sudo systemctl enable carma.service".to_owned()));
        let failed = about("enabled", "failed", "exit-code", 0, None);
        assert!(failed[1].0 == Health::Error && failed[1].1.contains("journalctl -u carma.service"), "{failed:?}");
        let beside = about("enabled", "active", "success", 7, Some(8));
        assert!(beside[1].0 == Health::Warning && beside[1].1.contains("carma down"), "{beside:?}");
        let stopped = about("enabled", "inactive", "success", 0, None);
        assert_eq!(stopped[1], (Health::Warning, "sudo systemctl start carma.service".to_owned()));
    }

    #[test]
    fn no_service_and_no_systemd_are_notes() {
        let none = UnitFacts::default();
        let [found] = findings(&Service::Unit { user: true, facts: none }, None).try_into().unwrap();
        assert_eq!((found.health, found.fix.as_deref()), (Health::Note, Some("carma service install --user")));
        let [found] = findings(&Service::NoSystemd("this machine has no systemd".to_owned()), None).try_into().unwrap();
        assert_eq!(found.says, "this machine has no systemd, so the manager does not start at boot");
    }
}
