//! What an engine is given.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use carma_gpu::Driver;
use carma_gpu::profiling::Options;

use crate::configuration::Configuration;
use crate::places::Places;

/// Everything an engine needs to know before it starts.
#[derive(Debug)]
pub struct Setup {
    /// Where things are kept.
    pub places: Places,
    /// The rules.
    pub configuration: Configuration,
    /// The GPUs' driver; unset where there are none, and jobs for the CPU alone are run.
    pub driver: Option<Arc<Driver>>,
    /// What kind of GPUs they are.
    pub world: World,
    /// The program that becomes shims and estimators: this one.
    pub program: PathBuf,
    /// Watch and explain, and launch nothing.
    pub observes: bool,
    /// Write down every event and decision, for replay.
    pub record: Option<PathBuf>,
}

/// What kind of GPUs there are.
#[derive(Debug, Clone)]
pub struct World {
    /// In words.
    pub words: String,
    /// How much faster than ours their time passes.
    pub speed: f64,
    /// What a job needs in its environment to find them.
    pub environment: BTreeMap<String, String>,
    /// Folders that belong in front of what these variables of a job list.
    pub search_paths: BTreeMap<String, PathBuf>,
    /// Where their counters are had.
    pub profiling: Options,
    /// Where MPS daemons have their folders.
    pub mps_folder: PathBuf,
    /// The program of MPS.
    pub mps_program: PathBuf,
}

impl World {
    /// Lets a job with this environment find the GPUs.
    pub(super) fn prepare(&self, environment: &mut BTreeMap<String, String>) {
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
