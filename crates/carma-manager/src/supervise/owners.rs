//! The attempt that a process belongs to, if any.

use std::collections::HashMap;
use std::fs;

use carma_core::AttemptId;

use super::processes::parent;
use super::state::Supervised;

/// Attempts by control group, shim and container. A snapshot: make a new one when attempts start.
#[derive(Debug, Default)]
pub struct Owners {
    cgroups: HashMap<String, AttemptId>,
    shims: HashMap<i32, AttemptId>,
    containers: HashMap<String, AttemptId>,
    /// There is a container whose id is not known yet.
    has_nameless: bool,
}

impl Owners {
    /// The snapshot of these attempts.
    pub fn of<'a>(attempts: impl IntoIterator<Item = (AttemptId, &'a Supervised)>) -> Self {
        let mut owners = Self::default();
        for (attempt, supervised) in attempts {
            owners.cgroups.extend(supervised.cgroup_name().map(|name| (name.to_owned(), attempt)));
            owners.shims.extend(supervised.shim().map(|shim| (shim, attempt)));
            let container = supervised.folder().container_name();
            owners.has_nameless |= container.is_none() && supervised.folder().container_folder().exists();
            owners.containers.extend(container.map(|name| (name, attempt)));
        }
        owners
    }

    /// Whether all containers are known: a daemon names one some time after its attempt starts.
    pub fn is_complete(&self) -> bool {
        !self.has_nameless
    }

    /// The attempt that a process belongs to: by its control group, its container or its ancestors.
    pub fn owner_of(&self, pid: u32) -> Option<AttemptId> {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        self.by_group(&groups).or_else(|| {
            let ancestors = std::iter::successors(pid.try_into().ok(), |pid| parent(*pid));
            ancestors.take_while(|pid| *pid > 1).find_map(|pid| self.shims.get(&pid).copied())
        })
    }

    fn by_group(&self, groups: &str) -> Option<AttemptId> {
        let ours = groups.split(['/', '\n']).find_map(|name| self.cgroups.get(name));
        // Docker and Podman put the container's id into the name of its control group.
        let container = || groups.split(['/', '\n', '-', '.', ':']).find_map(|word| self.containers.get(word));
        ours.or_else(container).copied()
    }
}

#[cfg(test)]
mod tests {
    use carma_core::JobId;

    use super::*;

    #[test]
    fn containers_and_control_groups_identify_the_attempt() {
        let attempt = |job| AttemptId { job: JobId(job), number: 1 };
        let container = "3f4a".repeat(16);
        let owners = Owners {
            cgroups: [("carma-1-1-77-12345".to_owned(), attempt(1))].into(),
            containers: [(container.clone(), attempt(2))].into(),
            ..Owners::default()
        };
        assert_eq!(owners.by_group("3:cpu:/\n0::/user.slice/carma-1-1-77-12345/below\n"), Some(attempt(1)));
        assert_eq!(owners.by_group(&format!("0::/system.slice/docker-{container}.scope\n")), Some(attempt(2)));
        assert_eq!(owners.by_group(&format!("12:devices:/docker/{container}\n")), Some(attempt(2)));
        assert_eq!(owners.by_group("0::/carma-1-1-77-1234\n"), None);
    }
}
