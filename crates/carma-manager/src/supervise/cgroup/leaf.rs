//! Version 2 of cgroups limits only groups whose parent holds no processes. So a manager that is not a service moves into a leaf of its own
//! group, and the process of the jobs' unit into a leaf of that group. The groups of jobs are beside the leaf.

use std::fs;
use std::io;
use std::path::Path;

use super::hierarchy::Hierarchies;
use super::jobs_unit::{JOBS_UNIT, group_of_jobs, start_beside};

/// The name of the leaf.
pub(super) const LEAF: &str = "carma.manager";

/// The controllers that limit jobs.
const CONTROLLERS: [&str; 3] = ["memory", "cpu", "pids"];

/// Prepares the group of version 2 that holds the groups of jobs, as far as the system permits. Called once, when a manager starts.
pub fn prepare_group_of_jobs() {
    let Some(group) = Hierarchies::own().unified else { return };
    if let Err(error) = start_beside(&group) {
        tracing::warn!("cannot start {JOBS_UNIT}: with jobs below its own group, the service may not start again before they end: {error}");
    }
    let group = group_of_jobs(group);
    if let Err(error) = prepare(&group, &fs::read_to_string("/proc/self/comm").unwrap_or_default()) {
        tracing::debug!("{} cannot hold groups with limits: {error}", group.display());
    }
}

fn prepare(group: &Path, program: &str) -> io::Result<()> {
    let available = fs::read_to_string(group.join("cgroup.controllers"))?;
    let enabled = fs::read_to_string(group.join("cgroup.subtree_control"))?;
    let has = |list: &str, name: &str| list.split_whitespace().any(|controller| controller == name);
    let missing: Vec<&str> = CONTROLLERS.into_iter().filter(|name| has(&available, name) && !has(&enabled, name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let leaf = group.join(LEAF);
    fs::create_dir(&leaf).or_else(|error| if leaf.is_dir() { Ok(()) } else { Err(error) })?;
    let procs = leaf.join("cgroup.procs");
    let is_jobs_unit = group.ends_with(JOBS_UNIT);
    if !is_jobs_unit {
        fs::write(&procs, std::process::id().to_string())?;
    }
    // Shims of a manager before this one. Other processes are left where they are.
    for pid in fs::read_to_string(group.join("cgroup.procs"))?.lines() {
        if is_jobs_unit || fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == program) {
            let _ = fs::write(&procs, pid);
        }
    }
    // One after the other: the kernel takes all or none of a list.
    for controller in missing {
        fs::write(group.join("cgroup.subtree_control"), format!("+{controller}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with the files that a group has.
    fn group(available: &str, enabled: &str) -> tempfile::TempDir {
        let group = tempfile::tempdir().unwrap();
        for (file, text) in [("cgroup.controllers", available), ("cgroup.subtree_control", enabled), ("cgroup.procs", "")] {
            fs::write(group.path().join(file), text).unwrap();
        }
        group
    }

    #[test]
    fn the_manager_leaves_its_group_and_enables_what_is_missing() {
        let group = group("cpuset cpu memory", "cpu\n");
        prepare(group.path(), "carma\n").unwrap();
        let moved = fs::read_to_string(group.path().join(LEAF).join("cgroup.procs")).unwrap();
        assert_eq!(moved, std::process::id().to_string());
        assert_eq!(fs::read_to_string(group.path().join("cgroup.subtree_control")).unwrap(), "+memory");
    }

    #[test]
    fn the_process_of_the_jobs_unit_leaves_its_group() {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path().join(JOBS_UNIT);
        fs::create_dir(&group).unwrap();
        for (file, text) in [("cgroup.controllers", "memory"), ("cgroup.subtree_control", ""), ("cgroup.procs", "4711\n")] {
            fs::write(group.join(file), text).unwrap();
        }
        prepare(&group, "carma\n").unwrap();
        assert_eq!(fs::read_to_string(group.join(LEAF).join("cgroup.procs")).unwrap(), "4711");
    }

    #[test]
    fn ready_groups_and_groups_without_controllers_are_unchanged() {
        for (available, enabled) in [("cpu memory pids", "cpu memory pids"), ("", "")] {
            let group = group(available, enabled);
            prepare(group.path(), "carma\n").unwrap();
            assert!(!group.path().join(LEAF).exists());
        }
    }
}
