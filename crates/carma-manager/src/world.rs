//! Real or emulated GPUs, and the environment that a job needs for them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use carma_gpu::profiling::Options;

/// The kind of GPUs.
#[derive(Debug, Clone)]
pub struct World {
    /// A description.
    pub description: String,
    /// How much faster than real time their clock runs.
    pub speed: f64,
    /// Variables that a job needs to find them.
    pub environment: BTreeMap<String, String>,
    /// Folders to put first in these path variables of a job.
    pub search_paths: BTreeMap<String, PathBuf>,
    /// Where their profiling counters come from.
    pub profiling: Options,
    /// The folder for MPS daemons.
    pub mps_folder: PathBuf,
    /// The MPS control program.
    pub mps_program: PathBuf,
}

impl World {
    /// Whether the GPUs are emulated: real ones need no variables.
    pub fn is_emulated(&self) -> bool {
        !self.environment.is_empty()
    }

    /// Changes the environment of a job so that it finds the GPUs.
    pub(crate) fn prepare(&self, environment: &mut BTreeMap<String, String>) {
        environment.extend(self.environment.clone());
        for (name, folder) in &self.search_paths {
            let folder = folder.display().to_string();
            let listed = environment.get(name).map(String::as_str).unwrap_or_default();
            let others = listed.split(':').filter(|other| !other.is_empty() && *other != folder);
            let all: Vec<&str> = std::iter::once(folder.as_str()).chain(others).collect();
            environment.insert(name.clone(), all.join(":"));
        }
    }
}
