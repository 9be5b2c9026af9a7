//! The unit of systemd whose group holds the groups of jobs, beside the service of the manager.
//!
//! systemd starts a service in the group of the service, and the kernel permits no process in a group that has enabled controllers for groups
//! below it. With jobs below its own group, the service could not start again before they all end.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::geteuid;

/// The service of the manager.
const SERVICE: &str = "carma.service";

/// The unit of the jobs, which is only stopped with the host.
pub(super) const JOBS_UNIT: &str = "carma-jobs.service";

/// The group that limits a manager's jobs: that of the jobs' unit, if the manager is a service and the unit runs, and otherwise its own.
pub(crate) fn group_of_jobs(own: PathBuf) -> PathBuf {
    let jobs = own.with_file_name(JOBS_UNIT);
    if own.ends_with(SERVICE) && jobs.is_dir() { jobs } else { own }
}

/// Starts the unit if this is the group of the service: no jobs' unit was found beside it.
pub(super) fn start_beside(group: &Path) -> io::Result<()> {
    if !group.ends_with(SERVICE) {
        return Ok(());
    }
    let output = command(group, geteuid().is_root()).stdin(Stdio::null()).output()?;
    if output.status.success() { Ok(()) } else { Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned())) }
}

/// The process of the unit keeps the group while no job runs. Stopping the unit leaves jobs alone, as stopping the manager does.
fn command(group: &Path, root: bool) -> Command {
    let slice =
        group.parent().filter(|parent| parent.extension() == Some(OsStr::new("slice"))).and_then(Path::file_name).and_then(OsStr::to_str);
    let mut command = Command::new("systemd-run");
    command.args((!root).then_some("--user")).args(["--quiet", "--unit", JOBS_UNIT, "--description", "Jobs of CARMA"]);
    command.args(slice.map(|slice| format!("--slice={slice}")));
    for property in ["Delegate=yes", "KillMode=process", "OOMPolicy=continue", "TasksMax=infinity"] {
        command.args(["--property", property]);
    }
    command.args(["sleep", "infinity"]);
    command
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn jobs_of_a_service_are_beside_it_once_their_unit_runs() {
        let slice = tempfile::tempdir().unwrap();
        let group = |name: &str| slice.path().join(name);
        assert_eq!(group_of_jobs(group(SERVICE)), group(SERVICE));
        fs::create_dir(group(JOBS_UNIT)).unwrap();
        assert_eq!(group_of_jobs(group(SERVICE)), group(JOBS_UNIT));
        assert_eq!(group_of_jobs(group("session-1.scope")), group("session-1.scope"));
    }

    #[test]
    fn the_unit_is_in_the_slice_of_the_service() {
        let arguments = |group: &str, root| {
            let command = command(Path::new(group), root);
            command.get_args().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        let of_root = arguments("/sys/fs/cgroup/lab.slice/carma.service", true);
        assert!(of_root.starts_with("--quiet --unit carma-jobs.service") && of_root.contains(" --slice=lab.slice "), "{of_root}");
        let of_user = arguments("/sys/fs/cgroup/user@1000.service/carma.service", false);
        assert!(of_user.starts_with("--user --quiet") && !of_user.contains("--slice"), "{of_user}");
    }
}
