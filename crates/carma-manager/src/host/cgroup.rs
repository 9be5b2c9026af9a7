//! The memory limit of the control group of all jobs: less than the host's memory in a container or a limited service.

use std::fs;
use std::path::Path;

use carma_core::MiB;

use crate::supervise::group_of_jobs;

/// The memory that a control group may use, and what is left of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryLimit {
    pub limit: MiB,
    pub available: MiB,
}

/// The files of a cgroup version.
struct Version {
    /// The controller's folder under the mount.
    folder: &'static str,
    limit: &'static str,
    used: &'static str,
    /// The line of `memory.stat` that counts what the kernel can reclaim.
    reclaimable: &'static str,
}

const V1: Version =
    Version { folder: "memory", limit: "memory.limit_in_bytes", used: "memory.usage_in_bytes", reclaimable: "total_inactive_file" };
const V2: Version = Version { folder: "", limit: "memory.max", used: "memory.current", reclaimable: "inactive_file" };

/// The tightest limit of the group in `/proc/self/cgroup` and all above it; none where nothing is limited. `mount` is
/// `/sys/fs/cgroup`.
pub(super) fn memory_limit(own_groups: &str, mount: &Path) -> Option<MemoryLimit> {
    let (version, path) = group(own_groups)?;
    let base = mount.join(version.folder);
    let own = base.join(path.trim_start_matches('/'));
    // In a container the path may be the host's, and the mount is our group itself.
    let own = group_of_jobs(if own.is_dir() { own } else { base.clone() });
    own.ancestors()
        .take_while(|folder| folder.starts_with(&base))
        .filter_map(|folder| of(&version, folder))
        .min_by_key(|group| group.available)
}

/// The version that controls memory, and our group's path in it.
fn group(own_groups: &str) -> Option<(Version, &str)> {
    let entries = || own_groups.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let of_v1 = entries().find(|(controllers, _)| controllers.split(',').any(|controller| controller == "memory"));
    of_v1.map(|(_, path)| (V1, path)).or_else(|| entries().find(|(controllers, _)| controllers.is_empty()).map(|(_, path)| (V2, path)))
}

fn of(version: &Version, folder: &Path) -> Option<MemoryLimit> {
    /// Version 1 shows a huge number where there is no limit.
    const NO_LIMIT: u64 = 1 << 60;
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let limit: u64 = read(version.limit)?.trim().parse().ok().filter(|limit| *limit < NO_LIMIT)?;
    let used: u64 = read(version.used)?.trim().parse().ok()?;
    let stat = read("memory.stat").unwrap_or_default();
    let given_back = stat.lines().find_map(|line| line.strip_prefix(version.reclaimable)?.trim().parse().ok()).unwrap_or(0);
    Some(MemoryLimit { limit: MiB(limit >> 20), available: MiB(limit.saturating_sub(used.saturating_sub(given_back)) >> 20) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group folder with these sizes in MiB.
    fn group_folder(folder: &Path, version: &Version, limit: &str, used: u64, reclaimable: u64) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(version.limit), format!("{limit}\n")).unwrap();
        fs::write(folder.join(version.used), format!("{}\n", used << 20)).unwrap();
        fs::write(folder.join("memory.stat"), format!("anon 12\n{} {}\n", version.reclaimable, reclaimable << 20)).unwrap();
    }

    #[test]
    fn the_tightest_limit_above_counts() {
        let mount = tempfile::tempdir().unwrap();
        let slice = mount.path().join("system.slice");
        group_folder(&slice, &V2, &(1000_u64 << 20).to_string(), 900, 100);
        group_folder(&slice.join("carma.service"), &V2, "max", 800, 0);
        let allowed = Some(MemoryLimit { limit: MiB(1000), available: MiB(200) });
        assert_eq!(memory_limit("0::/system.slice/carma.service\n", mount.path()), allowed);
        assert_eq!(memory_limit("0::/elsewhere\n", mount.path()), None);
        group_folder(&slice.join("carma-jobs.service"), &V2, &(500_u64 << 20).to_string(), 400, 0);
        let of_jobs = Some(MemoryLimit { limit: MiB(500), available: MiB(100) });
        assert_eq!(memory_limit("0::/system.slice/carma.service\n", mount.path()), of_jobs);
    }

    #[test]
    fn containers_of_version_1_see_their_group_as_the_mount() {
        let mount = tempfile::tempdir().unwrap();
        let own = "4:memory:/docker/0a1b\n3:cpuset:/\n0::/\n";
        group_folder(&mount.path().join("memory"), &V1, &(512_u64 << 20).to_string(), 100, 50);
        assert_eq!(memory_limit(own, mount.path()), Some(MemoryLimit { limit: MiB(512), available: MiB(462) }));
        group_folder(&mount.path().join("memory"), &V1, "9223372036854771712", 100, 50);
        assert_eq!(memory_limit(own, mount.path()), None);
        assert_eq!(memory_limit("", mount.path()), None);
    }
}
