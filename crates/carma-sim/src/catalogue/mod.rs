//! The workload catalogue: measured behaviour of each workload alone on a GPU, with its source.

mod file;
mod resolve;
mod solo;

pub use file::CatalogueError;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use carma_core::{Fraction, MiB, Seconds, Watts};

/// Index of a workload in its catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkloadId(pub(crate) usize);

/// A training job as measured alone on its GPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// The network.
    pub model: String,
    /// The dataset.
    pub dataset: String,
    /// Batch size.
    pub batch: Option<u32>,
    /// Passes over the dataset.
    pub epochs: Option<u32>,
    /// Its family: workloads of one family differ only in batch size and length.
    pub family: String,
    /// Time alone, from launch to exit.
    pub seconds: Seconds,
    /// Behaviour of each rank on its GPU.
    pub ranks: Vec<RankProfile>,
    /// Its other names.
    pub aliases: Vec<String>,
    /// Source of the measurement: a key of [`Catalogue::sources`].
    pub source: String,
    /// Further remarks.
    pub note: Option<String>,
}

/// Behaviour of one rank on its GPU. Counters are means over the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankProfile {
    /// Peak memory.
    pub peak: MiB,
    /// Share of time an SM was active, over all SMs.
    pub smact: Fraction,
    /// Resident warps over the maximum.
    pub smocc: Fraction,
    /// Share of time DRAM was busy.
    pub drama: Fraction,
    /// Share of time at least one kernel ran.
    pub utilisation: Fraction,
    /// Mean power, if measured.
    pub power: Option<Watts>,
}

impl Workload {
    /// Number of GPUs, one per rank.
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
    /// Those that jobs may name, and that are never drawn at random.
    named_only: BTreeSet<WorkloadId>,
}

impl Catalogue {
    /// The workload with this id.
    pub fn get(&self, id: WorkloadId) -> &Workload {
        &self.workloads[id.0]
    }

    /// All workloads, in the order of the files.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (WorkloadId, &Workload)> {
        self.workloads.iter().enumerate().map(|(place, workload)| (WorkloadId(place), workload))
    }

    /// The workloads that are drawn at random where a job names none.
    pub fn drawn(&self) -> impl Iterator<Item = (WorkloadId, &Workload)> {
        self.iter().filter(|(id, _)| !self.named_only.contains(id))
    }

    /// Sources of the measurements, by the key in the workloads.
    pub fn sources(&self) -> &BTreeMap<String, String> {
        &self.sources
    }
}
