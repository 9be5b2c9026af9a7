//! The GPUs of this host for a manager or an agent, real or emulated.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use carma_emu::{Machine, VARIABLE};
use carma_gpu::mps::PROGRAM;
use carma_gpu::profiling::Options;
use carma_manager::engine::World;
use carma_manager::places::Places;

use crate::gpus::{self, find};

/// The GPUs, and the environment that jobs need to find them.
pub(crate) fn world() -> Result<(Option<Arc<carma_gpu::Driver>>, World)> {
    let (driver, found) = find()?;
    let profiling = gpus::profiler_options(&found);
    let description = found.to_string();
    let world = match found {
        gpus::World::Real => World {
            description,
            speed: 1.0,
            environment: BTreeMap::new(),
            search_paths: BTreeMap::new(),
            profiling,
            mps_folder: if rustix::process::geteuid().is_root() { "/run/carma/mps".into() } else { Places::own().state.join("mps") },
            mps_program: PROGRAM.into(),
        },
        gpus::World::Emulated(folder) => {
            let machine = Machine::open(&folder)?;
            World {
                description,
                speed: machine.clock()?.1,
                environment: BTreeMap::from([(VARIABLE.to_owned(), folder.display().to_string())]),
                search_paths: machine.search_paths().map(|(name, folder)| (name.to_owned(), folder)).into(),
                profiling,
                mps_folder: folder.join("mps"),
                mps_program: folder.join("bin").join(PROGRAM),
            }
        }
    };
    Ok((Some(Arc::new(driver)), world))
}

/// No GPUs. Where emulated ones are set up, the clock is theirs: agents on other servers may run on it.
pub(crate) fn without_gpus() -> Result<World> {
    let folder = std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let speed = folder.map(|folder| anyhow::Ok(Machine::open(&folder)?.clock()?.1)).transpose()?;
    Ok(World {
        description: "no GPUs".to_owned(),
        speed: speed.unwrap_or(1.0),
        environment: BTreeMap::new(),
        search_paths: BTreeMap::new(),
        profiling: Options::default(),
        mps_folder: PathBuf::new(),
        mps_program: PROGRAM.into(),
    })
}
