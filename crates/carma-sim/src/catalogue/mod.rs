//! The workload catalogue: what each workload does to a GPU when it has it alone, as plain facts with their source.

mod file;
mod resolve;
mod solo;

pub use file::CatalogueError;

use std::collections::{BTreeMap, HashMap};

use carma_core::{Fraction, MiB, Seconds, Watts};

/// A workload's place in its catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkloadId(pub(crate) usize);

/// A training job as it is when it has its GPUs alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// The network.
    pub model: String,
    /// What it is trained on.
    pub dataset: String,
    /// Samples a step.
    pub batch: Option<u32>,
    /// Passes over the dataset.
    pub epochs: Option<u32>,
    /// Workloads of one family differ in batch size and length only.
    pub family: String,
    /// Time alone, from launch to exit.
    pub seconds: Seconds,
    /// What each rank does to its GPU.
    pub ranks: Vec<RankProfile>,
    /// Other names of it.
    pub aliases: Vec<String>,
    /// Who measured it: a key of [`Catalogue::sources`].
    pub source: String,
    /// What else there is to know.
    pub note: Option<String>,
}

/// What one rank does to its GPU. Counters are means over the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankProfile {
    /// The most memory it takes.
    pub peak: MiB,
    /// Share of time an SM was active, over all SMs.
    pub smact: Fraction,
    /// Resident warps over the maximum.
    pub smocc: Fraction,
    /// Share of time DRAM was busy.
    pub drama: Fraction,
    /// Share of time at least one kernel ran.
    pub utilisation: Fraction,
    /// Mean power, where measured.
    pub power: Option<Watts>,
}

impl Workload {
    /// GPUs it takes, one a rank.
    pub fn gpus(&self) -> u32 {
        self.ranks.len() as u32
    }
}

/// All workloads that can be simulated.
///
/// ```
/// use carma_sim::Catalogue;
/// let catalogue = Catalogue::shipped();
/// // CARMA's task names and shortened runs lead to the same workload.
/// assert_eq!(catalogue.find("Xception2"), catalogue.find("xception_imagenet_bs64_maxbatches1200"));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Catalogue {
    workloads: Vec<Workload>,
    sources: BTreeMap<String, String>,
    names: HashMap<String, WorkloadId>,
}

impl Catalogue {
    /// The workload at a place.
    pub fn get(&self, id: WorkloadId) -> &Workload {
        &self.workloads[id.0]
    }

    /// All of them, in the order of the files.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (WorkloadId, &Workload)> {
        self.workloads.iter().enumerate().map(|(place, workload)| (WorkloadId(place), workload))
    }

    /// Who measured what, by the key the workloads name.
    pub fn sources(&self) -> &BTreeMap<String, String> {
        &self.sources
    }
}
