//! Metrics for Prometheus: everything is put together when somebody asks.
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
mod tally;
mod value;

pub use exposition::CONTENT_TYPE;
pub use facts::{Facts, GpuFacts, RunningJob};
pub use process::Process;
pub(crate) use tally::kind_of;
pub use tally::{Histogram, Tallies, Tally};

use crate::configuration::MetricsSettings;
use exposition::Page;

/// Most series of one metric that there are for jobs: more run at once on no machine that is well.
const MOST_SERIES: usize = 2000;

/// What metrics are made from.
#[derive(Debug, Clone)]
pub struct Sources {
    /// What the engine knows.
    pub facts: Facts,
    /// What the store has counted.
    pub tallies: Tallies,
    /// How large the store is, in bytes.
    pub store_size: u64,
    /// The manager's process.
    pub process: Option<Process>,
    /// What the host is called.
    pub host: String,
}

/// All metrics, as Prometheus reads them.
pub fn page(sources: &Sources, settings: &MetricsSettings) -> String {
    let Sources { facts, tallies, store_size, process, host } = sources;
    let mut page = Page::default();
    manager::write(&mut page, facts, *store_size, *process);
    gpus::write(&mut page, &facts.gpus);
    jobs::write(&mut page, facts, settings.job_names);
    counted::write(&mut page, tallies, settings.job_names);
    if settings.dcgm_names {
        dcgm::write(&mut page, &facts.gpus, host);
    }
    page.into_text()
}
