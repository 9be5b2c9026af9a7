//! Metrics for Prometheus: all values are collected on request.
//!
//! ```text
//!  engine ──► Facts ───────────────┐
//!  store  ──► Tallies (they last) ─┼──► page() ──► text
//!  /proc  ──► Process ─────────────┘
//! ```

mod counted;
mod dcgm;
mod exposition;
mod facts;
mod gpus;
mod jobs;
mod manager;
mod process;
mod servers;
mod value;

pub use exposition::CONTENT_TYPE;
pub use facts::{Facts, GpuFacts, JobFacts, PoolFacts};
pub use process::Process;

use carma_core::MiB;

use crate::configuration::MetricsConfig;
use crate::tally::Tallies;
use exposition::Page;

/// Drivers keep less memory than this for contexts without any process.
pub(crate) const ORPHANED: MiB = MiB(1024);

/// Limit of series of one metric for jobs: no healthy machine runs more at once.
const MAX_SERIES: usize = 2000;

/// The sources of metrics.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The state of the engine.
    pub facts: Facts,
    /// The counts in the store.
    pub tallies: Tallies,
    /// Size of the store in bytes.
    pub store_size: u64,
    /// The manager's process.
    pub process: Option<Process>,
    /// Name of the host.
    pub host: String,
}

/// All metrics, in the format of Prometheus.
pub fn page(sources: &Sources, settings: &MetricsConfig) -> String {
    let Sources { facts, tallies, store_size, process, host } = sources;
    let mut page = Page::default();
    manager::write(&mut page, facts, *store_size, *process);
    servers::write(&mut page, facts);
    gpus::write(&mut page, &facts.gpus, host);
    jobs::write(&mut page, facts, settings.job_names);
    counted::write(&mut page, tallies, settings.job_names);
    if settings.dcgm_names {
        dcgm::write(&mut page, &facts.gpus, host);
    }
    page.into_text()
}
