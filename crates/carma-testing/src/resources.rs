//! Resources that not every machine has.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::Missing;

/// The id of the user and group `nobody`.
pub const NOBODY: u32 = 65_534;

/// The folder of published measurements, which are not part of the project.
pub fn published_data() -> Result<PathBuf, Missing> {
    env::var_os("CARMA_DATA").map(PathBuf::from).filter(|folder| folder.is_dir()).ok_or(Missing::PublishedData)
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
