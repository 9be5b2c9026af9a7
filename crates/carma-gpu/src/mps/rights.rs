//! Daemons of other users.

use std::os::unix::fs::MetadataExt;
use std::{fs, io};

use rustix::process::geteuid;

use super::control::{LOCK_FILE, MpsControl};
use super::error::MpsError;
use crate::liveness::Process;
use crate::ownership::{process_user, user_name};

impl MpsControl {
    /// There is no daemon, or we have no access to it.
    pub(super) fn absent(&self) -> MpsError {
        let owner = match fs::metadata(self.pipes().join(LOCK_FILE)) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.pipes().ancestors().find_map(|folder| fs::metadata(folder).ok()).map(|folder| user_name(folder.uid()))
            }
            _ => self.daemon().as_ref().and_then(foreign_owner),
        };
        owner.map_or_else(|| MpsError::NotRunning(self.pipes().to_owned()), |owner| MpsError::Forbidden { owner })
    }

    /// The daemon does not take a command from us.
    pub(super) fn forbidden(&self) -> MpsError {
        let owner = self.daemon().and_then(|daemon| process_user(daemon.pid())).map_or_else(|| "another user".to_owned(), user_name);
        MpsError::Forbidden { owner }
    }
}

/// The owner of a process that is not ours to end.
pub(super) fn foreign_owner(process: &Process) -> Option<String> {
    let (user, us) = (process_user(process.pid())?, geteuid());
    (!us.is_root() && user != us.as_raw()).then(|| user_name(user))
}
