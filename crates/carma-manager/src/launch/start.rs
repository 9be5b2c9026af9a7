//! Starting a shim in the background.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use thiserror::Error;

use super::plan::Plan;
use crate::supervise::{AttemptFolder, FolderError, Lifeline};

/// Why an attempt could not be handed to a shim.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// Its folder could not be made.
    #[error("{path}: {source}")]
    Folder {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Its order could not be written.
    #[error(transparent)]
    Order(#[from] FolderError),
    /// The program could not be run.
    #[error("cannot run {program} as a shim: {source}")]
    Program {
        /// The program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It ran, and did not become a shim.
    #[error("the shim did not start: {0}")]
    Refused(String),
}

/// A new folder for an attempt, locked from the beginning: until this is dropped or launched, the attempt does not count as lost.
#[derive(Debug)]
pub struct Prepared {
    folder: AttemptFolder,
    lock: File,
}

impl Prepared {
    /// Creates the folder; an error if it exists, as an attempt runs once.
    pub fn new(folder: AttemptFolder) -> Result<Self, LaunchError> {
        let path = folder.path();
        // Others may traverse it, so that a job can run its script. Its files are readable by their owner only.
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

    /// Hands the attempt to a shim (`program shim FOLDER`), and returns when the shim runs in the background.
    pub fn launch(self, plan: &Plan, program: &Path) -> Result<AttemptFolder, LaunchError> {
        self.launch_on(plan, program, None)
    }

    /// The same for an attempt that ends with its lifeline.
    pub(crate) fn launch_on(self, plan: &Plan, program: &Path, lifeline: Option<&Lifeline>) -> Result<AttemptFolder, LaunchError> {
        let folder = self.folder;
        let owner = plan.order.user.as_ref().map(|user| (user.uid, user.gid));
        if let Some(script) = &plan.script {
            write_script(&folder.script(), script, owner).map_err(|source| LaunchError::Folder { path: folder.script(), source })?;
        }
        if plan.order.afterwards.is_some() {
            let path = folder.container_folder();
            create_user_folder(&path, owner).map_err(|source| LaunchError::Folder { path, source })?;
        }
        if let Some(path) = plan.order.checkpoint_folder.clone().filter(|path| !path.exists()) {
            create_user_folder(&path, owner).map_err(|source| LaunchError::Folder { path, source })?;
        }
        folder.write_order(&plan.order)?;
        let refused = |source| LaunchError::Program { program: program.to_owned(), source };
        let log = OpenOptions::new().append(true).create(true).mode(0o600).open(folder.supervisor_log()).map_err(refused)?;
        let mut command = Command::new(program);
        command.arg("shim").arg(folder.path()).current_dir("/");
        // In its own process group, Ctrl-C in the manager's terminal does not end it.
        command
            .process_group(0)
            .stdin(Stdio::from(self.lock))
            .stdout(lifeline.map_or_else(|| Ok(Stdio::null()), Lifeline::end_for_guards).map_err(refused)?)
            .stderr(Stdio::from(log));
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

/// A folder in which only its owner may create files.
fn create_user_folder(path: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)?;
    owner.map_or(Ok(()), |(user, group)| chown(path, Some(user), Some(group)))
}
