//! `seed-history FOLDER`: fills the store of a stopped manager with a synthetic history.

use std::path::PathBuf;

use anyhow::Result;
use carma_manager::places::Places;
use carma_manager::store::{Store, UnixMillis};
use carma_seed::{HistoryOptions, seed};
use clap::Parser;

/// Fill a manager's store with jobs that never ran, for tests and benchmarks
/// of views. The history ends now; each job is marked as made up.
#[derive(Debug, Parser)]
#[command(name = "seed-history")]
struct Arguments {
    /// The manager's state folder, as given to carma up --state.
    folder: PathBuf,
    /// Jobs, all finished.
    #[arg(long, default_value_t = 10_000)]
    jobs: u64,
    /// Days over which they were submitted.
    #[arg(long, default_value_t = 30)]
    days: u64,
    /// GPUs they ran on, of 40 GiB each.
    #[arg(long, default_value_t = 64)]
    gpus: u16,
    /// The same seed gives the same history.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> Result<()> {
    let Arguments { folder, jobs, days, gpus, seed: number } = Arguments::parse();
    let store = Store::open(Places::at(&folder).database())?;
    let seeded = seed(&store, &HistoryOptions { jobs, days, gpus, seed: number, until: UnixMillis::now() })?;
    println!("{} jobs with {} attempts on {gpus} GPUs, and {} minutes of these", seeded.jobs, seeded.attempts, seeded.minutes);
    Ok(())
}
