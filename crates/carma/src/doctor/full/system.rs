//! The kernel, control groups, and the driver's library.

use std::fs;

use carma_gpu::{Driver, LibraryFunction};
use carma_manager::supervise::enforceable;

use super::check::Check;

/// The folder of control groups.
const GROUPS: &str = "/sys/fs/cgroup";

pub(super) fn checks() -> Vec<Check> {
    let kernel = rustix::system::uname();
    let release = kernel.release().to_string_lossy().into_owned();
    let root = rustix::process::geteuid().is_root();
    let controllers = fs::read_to_string(format!("{GROUPS}/cgroup.controllers"));
    let mut checks = vec![
        Check::held("host", "the kernel is known", format!("Linux {release}, {}", kernel.machine().to_string_lossy())),
        Check::of(root, "host", "CARMA runs as root, and sees the processes of all users", if root { "root" } else { "an ordinary user" }),
    ];
    checks.push(match &controllers {
        Ok(list) => Check::held("host", "control groups are of version 2", format!("controllers: {}", list.trim())),
        Err(_) => {
            Check::failed("host", "control groups are of version 2", format!("{GROUPS} has no cgroup.controllers: version 1, or none"))
        }
    });
    let dmem = controllers.as_ref().is_ok_and(|list| list.split_whitespace().any(|name| name == "dmem"));
    checks.push(Check::of(
        dmem,
        "host",
        "the kernel limits device memory (dmem, Linux 6.14)",
        if dmem { "dmem is there" } else { "no dmem" },
    ));
    let missing = enforceable().missing();
    let shown = if missing.is_empty() { "memory, cores, processes and GPUs".to_owned() } else { format!("not {}", missing.join(", ")) };
    checks.push(Check::of(missing.is_empty(), "host", "limits of jobs can be enforced from here", shown));
    let hidden = fs::read_to_string("/proc/mounts").is_ok_and(|mounts| {
        mounts.lines().any(|line| {
            line.contains(" /proc proc ")
                && (line.contains("hidepid=1") || line.contains("hidepid=2") || line.contains("hidepid=invisible"))
        })
    });
    checks.push(Check::of(
        !hidden,
        "host",
        "/proc shows the processes of all users",
        if hidden { "mounted with hidepid" } else { "no hidepid" },
    ));
    checks
}

/// The functions that the driver's library has.
pub(super) fn library(driver: &Driver) -> Vec<Check> {
    let check = |LibraryFunction { name, purpose, exists }: LibraryFunction| {
        Check::of(exists, "library", format!("it has {name}"), format!("for {purpose}"))
    };
    driver.functions().into_iter().map(check).collect()
}
