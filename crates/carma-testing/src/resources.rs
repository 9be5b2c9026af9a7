//! Resources that not every machine has.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{env, fs};

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};

use crate::Missing;

/// The id of the user and group `nobody`.
pub const NOBODY: u32 = 65_534;

/// The folder of published measurements, which are not part of the project.
pub fn published_data() -> Result<PathBuf, Missing> {
    env::var_os("CARMA_DATA").map(PathBuf::from).filter(|folder| folder.is_dir()).ok_or(Missing::PublishedData)
}

/// The folder of NVIDIA's programs and headers, which are not part of the project (`make nvidia`).
pub fn nvidia() -> Result<PathBuf, Missing> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/nvidia");
    if folder.join("fetched").exists() { Ok(folder) } else { Err(Missing::NvidiaPrograms(folder)) }
}

/// Requires a program in PATH.
pub fn program(name: &str) -> Result<(), Missing> {
    let is_in = |folder: PathBuf| folder.join(name).is_file();
    let found = env::split_paths(&env::var_os("PATH").unwrap_or_default()).any(is_in);
    if found { Ok(()) } else { Err(Missing::Program(name.to_owned())) }
}

/// Requires root.
pub fn root() -> Result<(), Missing> {
    if fs::metadata("/proc/self").is_ok_and(|this| this.uid() == 0) { Ok(()) } else { Err(Missing::Root) }
}

/// A command as the user `nobody`.
pub fn as_nobody(program: &Path) -> Result<Command, Missing> {
    let command = |program: &OsStr| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &NOBODY.to_string(), "--regid", &NOBODY.to_string(), "--clear-groups", "--"]).arg(program);
        command
    };
    root()?;
    self::program("setpriv")?;
    let tested = command("test".as_ref()).arg("-x").arg(program).stderr(Stdio::null()).status();
    if tested.is_ok_and(|status| status.success()) {
        Ok(command(program.as_os_str()))
    } else {
        Err(Missing::SharedProgram(program.to_owned()))
    }
}

/// A control group of the test, in either version, which is removed with this.
pub struct ControlGroup(PathBuf);

impl ControlGroup {
    /// Makes a group that processes can be put into.
    pub fn new(name: &str) -> Result<Self, Missing> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let point = |line: &str| {
            let (mount, source) = line.split_once(" - ")?;
            source.starts_with("cgroup").then(|| mount.split(' ').nth(4).map(PathBuf::from))?
        };
        let made = mounts.lines().filter_map(point).find_map(|point| {
            let path = point.join(format!("carma-test-{}-{name}", std::process::id()));
            (fs::create_dir(&path).is_ok() && path.join("cgroup.procs").exists()).then_some(path)
        });
        made.map(Self).ok_or(Missing::ControlGroups)
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The file that puts a process into it.
    pub fn procs(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Processes that were just killed leave it within milliseconds.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A thread of this process as another user, from the view of the kernel: sockets that it connects carry the user's credentials.
///
/// # Panics
///
/// The thread panics without root.
pub fn thread_as<T: Send + 'static>(user: u32, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    thread::spawn(move || {
        // In this order: without root's rights, the groups cannot be changed.
        let changed =
            set_thread_groups(&[]).and_then(|()| set_thread_gid(Gid::from_raw(user))).and_then(|()| set_thread_uid(Uid::from_raw(user)));
        changed.unwrap_or_else(|error| panic!("cannot become user {user}: {error}"));
        work()
    })
}
