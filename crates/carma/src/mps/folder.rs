//! The folder of a GPU's MPS daemon: its pipes, its logs, and the state to restore afterwards.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use carma_gpu::mps::{MpsControl, PROGRAM};
use carma_gpu::{ComputeModeChange, DeviceUuid};

use crate::gpus::World;

/// The folder of one GPU's daemon.
pub(crate) struct MpsFolder {
    gpu: DeviceUuid,
    folder: PathBuf,
    program: PathBuf,
}

impl MpsFolder {
    /// Root's daemons are for all users; a user's own are in a private folder.
    pub(crate) fn new(world: &World, gpu: &DeviceUuid) -> Self {
        let user = rustix::process::geteuid();
        let (base, program) = match world {
            World::Emulated(folder) => (folder.join("mps"), folder.join("bin").join(PROGRAM)),
            World::Real if user.is_root() => (PathBuf::from("/run/carma/mps"), PathBuf::from(PROGRAM)),
            World::Real => {
                let own = std::env::var_os("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join("carma/mps"));
                (own.unwrap_or_else(|| format!("/tmp/carma-mps-{}", user.as_raw()).into()), PathBuf::from(PROGRAM))
            }
        };
        Self { gpu: gpu.clone(), folder: base.join(gpu.as_str()), program }
    }

    pub(crate) fn control(&self) -> MpsControl {
        MpsControl::new(self.gpu.clone(), self.folder.join("pipes"), self.folder.join("logs")).with_program(&self.program)
    }

    fn change(&self) -> PathBuf {
        self.folder.join("compute-mode.json")
    }

    /// Saves a change of the compute mode until any process stops the daemon.
    pub(super) fn save(&self, change: &ComputeModeChange) -> Result<()> {
        // After a restart of the daemon, the first saved mode counts.
        if self.change().exists() {
            return Ok(());
        }
        fs::write(self.change(), serde_json::to_vec(change)?).with_context(|| format!("cannot write {}", self.change().display()))
    }

    pub(super) fn saved(&self) -> Result<Option<ComputeModeChange>> {
        match fs::read(self.change()) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text).with_context(|| format!("{} is damaged", self.change().display()))?)),
            Err(_) => Ok(None),
        }
    }

    pub(super) fn forget(&self) {
        let _ = fs::remove_file(self.change());
    }
}
