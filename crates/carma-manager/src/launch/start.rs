//! Starting a shim in the background.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::plan::Plan;
use crate::attempt::Order;
use crate::supervise::{AttemptFolder, FolderError, LaunchServer, LaunchServerError};

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
    /// The launch server did not start it.
    #[error(transparent)]
    Server(#[from] LaunchServerError),
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

    /// Hands the attempt to a shim, and returns when the shim runs in the background.
    pub fn launch(self, plan: Plan, server: &LaunchServer) -> Result<AttemptFolder, LaunchError> {
        let Self { folder, lock } = self;
        let Plan { order, script } = plan;
        let owner = order.user.as_ref().map(|user| (user.uid, user.gid));
        if let Some(script) = &script {
            write_script(&folder.script(), script, owner).map_err(|source| LaunchError::Folder { path: folder.script(), source })?;
        }
        if order.afterwards.is_some() {
            let path = folder.container_folder();
            create_user_folder(&path, owner).map_err(|source| LaunchError::Folder { path, source })?;
        }
        if let Some(path) = order.checkpoint_folder.clone().filter(|path| !path.exists()) {
            create_user_folder(&path, owner).map_err(|source| LaunchError::Folder { path, source })?;
        }
        folder.create_order(&Order { lease: server.lease().map(Path::to_owned), ..order })?;
        server.start_supervisors(&folder, &lock)?;
        Ok(folder)
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
