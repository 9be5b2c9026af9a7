//! Starting a shim that nobody waits for.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use thiserror::Error;

use super::plan::Plan;
use crate::supervise::{AttemptFolder, FolderError};

/// Why an attempt could not be handed to a shim.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// Its folder could not be made.
    #[error("{path}: {source}")]
    Folder {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Its order could not be written.
    #[error(transparent)]
    Order(#[from] FolderError),
    /// The program could not be run.
    #[error("cannot run {program} as a shim: {source}")]
    Program {
        /// Which.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It ran, and did not become a shim.
    #[error("the shim did not start: {0}")]
    Refused(String),
}

/// Makes a new folder for an attempt, locked from its first moment on: until this is dropped or launched, nobody takes the attempt for lost.
#[derive(Debug)]
pub struct Prepared {
    folder: AttemptFolder,
    lock: File,
}

impl Prepared {
    /// Makes the folder; refused where there is one already, as an attempt is run once.
    pub fn new(folder: AttemptFolder) -> Result<Self, LaunchError> {
        let path = folder.path();
        // Others may pass through, so that a job can run its script; what is inside is readable to its owner alone.
        let mut builder = DirBuilder::new();
        builder.mode(0o711);
        let above = path.parent().map_or(Ok(()), |above| DirBuilder::new().recursive(true).mode(0o711).create(above));
        let lock = above.and_then(|()| builder.create(path)).and_then(|()| {
            let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(folder.lock_file())?;
            lock.lock()?;
            Ok(lock)
        });
        let lock = lock.map_err(|source| LaunchError::Folder { path: path.to_owned(), source })?;
        Ok(Self { folder, lock })
    }

    /// The folder.
    pub fn folder(&self) -> &AttemptFolder {
        &self.folder
    }

    /// Hands the attempt to a shim, which is what `program` becomes when called with `shim` and the folder, and returns when it is on its own.
    pub fn launch(self, plan: &Plan, program: &Path) -> Result<AttemptFolder, LaunchError> {
        let folder = self.folder;
        let owner = plan.order.user.as_ref().map(|user| (user.uid, user.gid));
        if let Some(script) = &plan.script {
            write_script(&folder.script(), script, owner).map_err(|source| LaunchError::Folder { path: folder.script(), source })?;
        }
        if plan.order.afterwards.is_some() {
            let path = folder.container_folder();
            own_folder(&path, owner).map_err(|source| LaunchError::Folder { path, source })?;
        }
        if let Some(path) = plan.checkpoints.clone().filter(|path| !path.exists()) {
            own_folder(&path, owner).map_err(|source| LaunchError::Folder { path, source })?;
        }
        folder.write_order(&plan.order)?;
        let refused = |source| LaunchError::Program { program: program.to_owned(), source };
        let log = OpenOptions::new().append(true).create(true).mode(0o600).open(folder.supervisor_log()).map_err(refused)?;
        let mut command = Command::new(program);
        command.arg("shim").arg(folder.path()).current_dir("/");
        // In a group of its own, the keys that end a manager in a terminal do not end it.
        command.process_group(0).stdin(Stdio::from(self.lock)).stdout(Stdio::null()).stderr(Stdio::from(log));
        if command.status().map_err(refused)?.success() {
            return Ok(folder);
        }
        Err(LaunchError::Refused(fs::read_to_string(folder.supervisor_log()).unwrap_or_default().trim().to_owned()))
    }
}

fn write_script(path: &Path, script: &str, owner: Option<(u32, u32)>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o700).open(path)?;
    file.write_all(script.as_bytes())?;
    file.set_permissions(PermissionsExt::from_mode(0o700))?;
    owner.map_or(Ok(()), |(user, group)| chown(path, Some(user), Some(group)))
}

/// A folder in which its owner may make files, as nobody else may.
fn own_folder(path: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)?;
    owner.map_or(Ok(()), |(user, group)| chown(path, Some(user), Some(group)))
}
