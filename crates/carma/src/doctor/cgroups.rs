//! The findings about control groups: which version, which controllers, and what CARMA does without them. Pure.

use carma_manager::supervise::{Enforced, GroupSupport, GroupVersion};

use super::findings::{Finding, Health, finding};

/// What is known about control groups.
#[derive(Debug)]
pub(super) struct Groups {
    /// Those of the manager, or of this process if no manager runs here.
    pub(super) support: GroupSupport,
    /// What the manager cannot enforce, in its words; without one, what this process could not.
    pub(super) not_enforced: Vec<String>,
    /// A manager was asked.
    pub(super) of_manager: bool,
    /// The manager is root's, or would be.
    pub(super) root: bool,
}

impl Groups {
    pub(super) fn of_this_process(enforced: Enforced, support: GroupSupport, root: bool) -> Self {
        let not_enforced = enforced.missing().into_iter().map(str::to_owned).collect();
        Self { support, not_enforced, of_manager: false, root }
    }
}

/// The controllers, and what is not enforced without them.
const CONTROLLERS: [(&str, &str); 3] = [
    ("memory", "--host-mem is counted, not enforced"),
    ("cpu", "--cpus is counted, not enforced"),
    ("pids", "the number of processes has no limit"),
];

/// All findings about control groups.
pub(super) fn findings(groups: &Groups) -> Vec<Finding> {
    let mut all = about_version(groups);
    all.push(about_limits(groups));
    all
}

fn about_version(Groups { support, root, .. }: &Groups) -> Vec<Finding> {
    let service =
        if *root { "carma service install: the unit delegates all controllers" } else { "the service of root gets all controllers" };
    match support.version {
        Some(GroupVersion::Two) => {
            let missing: Vec<&(&str, &str)> =
                CONTROLLERS.iter().filter(|(name, _)| !support.controllers.iter().any(|controller| controller == name)).collect();
            let place = support.group.as_ref().map(|group| format!(" at {}", group.display())).unwrap_or_default();
            if missing.is_empty() {
                return vec![finding(Health::Ok, format!("control groups of version 2 with memory, cpu and pids{place}"), None)];
            }
            missing
                .into_iter()
                .map(|(name, without)| {
                    finding(Health::Warning, format!("the controller {name} is not delegated{place}: {without}"), Some(service))
                })
                .collect()
        }
        Some(GroupVersion::One) => {
            let says = "control groups of version 1: limits of jobs work, but GPU memory limits of the driver need version 2";
            vec![finding(Health::Note, says, Some("boot with systemd.unified_cgroup_hierarchy=1"))]
        }
        None => {
            let says =
                "no control groups: the processes of a job are found by their parents, and limits of host resources are only counted";
            vec![finding(Health::Warning, says, Some("mount cgroup2 at /sys/fs/cgroup; in a container, let it have its own group"))]
        }
    }
}

/// Control groups may be the manager's only if it has a group of its own.
fn about_limits(Groups { not_enforced, of_manager, root, .. }: &Groups) -> Finding {
    // Limits of GPU memory are the driver's, and a finding about GPUs.
    let not_enforced: Vec<&str> = not_enforced.iter().map(String::as_str).filter(|limit| !limit.starts_with("GPU memory")).collect();
    if not_enforced.is_empty() {
        return finding(Health::Ok, "limits of jobs are enforced by control groups", None);
    }
    let by = if *of_manager { "by the manager" } else { "from here" };
    let says = format!("limits of jobs that are not enforced {by}: {}", not_enforced.join(", "));
    let fix = if *root { "run the manager as a service: carma service install" } else { "the service of root enforces all of them" };
    finding(Health::Warning, says, Some(fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(version: Option<GroupVersion>, controllers: &[&str], not_enforced: &[&str]) -> Groups {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let support = GroupSupport { version, group: Some("/sys/fs/cgroup/x".into()), controllers: owned(controllers) };
        Groups { support, not_enforced: owned(not_enforced), of_manager: true, root: true }
    }

    fn texts(groups: &Groups) -> Vec<(Health, String)> {
        findings(groups).into_iter().map(|finding| (finding.health, finding.says)).collect()
    }

    #[test]
    fn a_service_has_all_controllers() {
        let all = texts(&groups(Some(GroupVersion::Two), &["cpuset", "cpu", "memory", "pids"], &[]));
        assert_eq!(all.iter().map(|(health, _)| *health).collect::<Vec<_>>(), [Health::Ok, Health::Ok], "{all:?}");
        let gpu_memory = groups(Some(GroupVersion::Two), &["cpu", "memory", "pids"], &["GPU memory (needs driver 615 or later)"]);
        assert_eq!(texts(&gpu_memory)[1].0, Health::Ok, "that is the driver's");
    }

    #[test]
    fn each_missing_controller_says_what_happens_without_it() {
        let all = texts(&groups(Some(GroupVersion::Two), &["memory"], &["cores (--cpus)"]));
        assert_eq!(all.len(), 3, "{all:?}");
        assert_eq!(
            all[0],
            (Health::Warning, "the controller cpu is not delegated at /sys/fs/cgroup/x: --cpus is counted, not enforced".to_owned())
        );
        assert!(all[1].1.contains("pids"));
        assert_eq!(all[2].1, "limits of jobs that are not enforced by the manager: cores (--cpus)");
    }

    #[test]
    fn no_groups_are_a_warning_and_version_1_a_note() {
        assert_eq!(texts(&groups(None, &[], &["host memory (--host-mem)"]))[0].0, Health::Warning);
        assert_eq!(texts(&groups(Some(GroupVersion::One), &[], &[]))[0].0, Health::Note);
    }
}
