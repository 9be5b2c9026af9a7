//! The environment of programs on a machine.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Machine, VARIABLE};

/// Variables that list folders, and the part of a machine that belongs into each.
const PATHS: [(&str, &str); 3] = [("LD_LIBRARY_PATH", "lib"), ("PATH", "bin"), ("PYTHONPATH", "lib/python")];

impl Machine {
    /// The environment of a program on this machine.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let before = |(name, part): (&'static str, &str)| {
            let first = self.folder.join(part);
            // A present entry is not repeated.
            let others = others(name, &first);
            (name, env::join_paths(std::iter::once(first).chain(others)).unwrap_or_default())
        };
        [(VARIABLE, self.folder.clone().into())].into_iter().chain(PATHS.map(before)).collect()
    }

    /// Folders to put in front of the lists in these variables, for callers that build environments of other processes.
    pub fn search_paths(&self) -> [(&'static str, PathBuf); 3] {
        PATHS.map(|(name, part)| (name, self.folder.join(part)))
    }

    /// The environment without the machine of this folder; unset variables have no value.
    pub fn environment_without(folder: &Path) -> Vec<(&'static str, Option<OsString>)> {
        let without = |(name, part): (&'static str, &str)| {
            (name, env::join_paths(others(name, &folder.join(part))).ok().filter(|paths| !paths.is_empty()))
        };
        [(VARIABLE, None)].into_iter().chain(PATHS.map(without)).collect()
    }
}

/// The folders in a variable but one.
fn others(name: &str, one: &Path) -> Vec<PathBuf> {
    let all = env::var_os(name).unwrap_or_default();
    env::split_paths(&all).filter(|path| !path.as_os_str().is_empty() && path != one).collect()
}
