//! Slurm's programs, and the authentication daemon that they use.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::daemon::Daemon;
use crate::Missing;

/// Starts munged, with a key of its own in a private folder; its socket is open to all users.
pub(super) fn munged(folder: &Path) -> io::Result<Daemon> {
    let private = folder.join("munge");
    fs::create_dir(&private)?;
    fs::set_permissions(&private, fs::Permissions::from_mode(0o700))?;
    let key = private.join("key");
    let random = io::Read::take(fs::File::open("/dev/urandom")?, 128);
    fs::write(&key, io::Read::bytes(random).collect::<io::Result<Vec<u8>>>()?)?;
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
    let mut command = Command::new("munged");
    command.env("PATH", path()).args(["--foreground", "--force", "--num-threads=2"]);
    let mut option = |name: &str, path: PathBuf| {
        command.arg(format!("--{name}={}", path.display()));
    };
    option("socket", folder.join("munge.sock"));
    option("key-file", key);
    option("pid-file", private.join("munged.pid"));
    option("seed-file", private.join("seed"));
    option("log-file", private.join("log"));
    Daemon::start(command, &folder.join("log/munged.words"))
}

/// The PATH with the folders of daemons, which plain users often lack.
pub(super) fn path() -> OsString {
    let own = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&own).chain(["/usr/sbin".into(), "/sbin".into()]);
    env::join_paths(folders).unwrap_or(own)
}

/// Requires a program of Slurm.
pub(super) fn installed(program: &str) -> Result<(), Missing> {
    let found = env::split_paths(&path()).any(|folder| folder.join(program).is_file());
    if found { Ok(()) } else { Err(Missing::Program(program.to_owned())) }
}

/// Requires control groups of version 1 that root may write: with version 2, this needs a systemd to ask.
pub(super) fn control_groups() -> Result<(), Missing> {
    crate::root()?;
    let probe = Path::new("/sys/fs/cgroup/devices").join(format!("probe-{}", std::process::id()));
    let writable = fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe));
    writable.map_err(|_| Missing::ControlGroups)
}
