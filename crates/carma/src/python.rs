//! The Python package that the binary carries, and the interpreter that runs it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// Files of the package, by path.
const PACKAGE: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/python_package.rs"));

/// The folder where `make test-torch` installs PyTorch.
const DEVELOPMENT: &str = "target/torch/bin/python";

/// The package, unpacked for as long as this lives.
pub(crate) struct Package {
    folder: TempDir,
    interpreter: PathBuf,
}

impl Package {
    /// Unpacks it for an interpreter: the given one, that of `CARMA_PYTHON`, of the active environment, or `python3`.
    pub(crate) fn unpack(interpreter: Option<&Path>) -> Result<Self> {
        let folder = temporary_folder()?;
        for (name, content) in PACKAGE {
            let file = folder.path().join(name);
            if let Some(parent) = file.parent() {
                fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
            }
            fs::write(&file, content).with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(Self { folder, interpreter: find(interpreter) })
    }

    /// `python -m carma.memory ...`, ready for arguments.
    pub(crate) fn memory(&self) -> Command {
        let mut command = Command::new(&self.interpreter);
        let own = self.folder.path().to_path_buf();
        let path = env::join_paths(std::iter::once(own.clone()).chain(env::var_os("PYTHONPATH").iter().flat_map(env::split_paths)));
        command.args(["-m", "carma.memory"]).env("PYTHONPATH", path.unwrap_or_else(|_| own.into_os_string()));
        command
    }

    /// A digest of the package: every version has another.
    pub(crate) fn digest() -> String {
        let mut hash = Sha256::new();
        PACKAGE.iter().flat_map(|(name, content)| [name, content]).for_each(|text| hash.update(text));
        format!("{:x}", hash.finalize())
    }

    /// The interpreter.
    pub(crate) fn interpreter(&self) -> &Path {
        &self.interpreter
    }
}

/// A temporary folder. The variable `TMPDIR` of a job may name a folder of the host on which the job was submitted.
pub(crate) fn temporary_folder() -> Result<TempDir> {
    tempfile::tempdir().or_else(|_| tempfile::tempdir_in("/tmp")).context("cannot create a temporary folder")
}

fn find(given: Option<&Path>) -> PathBuf {
    let named = given.map(Path::to_path_buf).or_else(|| env::var_os("CARMA_PYTHON").map(PathBuf::from));
    let active = || env::var_os("VIRTUAL_ENV").or_else(|| env::var_os("CONDA_PREFIX")).map(|folder| Path::new(&folder).join("bin/python"));
    let development = || Some(PathBuf::from(DEVELOPMENT));
    let existing = |candidate: PathBuf| candidate.exists().then_some(candidate);
    named.or_else(|| active().and_then(existing)).or_else(|| development().and_then(existing)).unwrap_or_else(|| PathBuf::from("python3"))
}
