//! Replaying event logs.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;

use anyhow::{Context, Result};

/// Replays a log and prints the final state.
pub(crate) fn replay(file: &Path, output: &mut impl Write) -> Result<()> {
    let log = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    let scheduler = carma_core::replay(BufReader::new(log)).with_context(|| format!("{} does not replay", file.display()))?;
    let (events, scheduler) = scheduler;
    let over = scheduler.jobs().filter(|job| job.state.outcome().is_some()).count();
    // A manager's core forgets jobs that are over.
    let left = match scheduler.jobs().count() {
        0 => "no job is left".to_owned(),
        jobs => format!("of {jobs} jobs {over} are over"),
    };
    writeln!(output, "{events} events lead to the same decisions; {left} at {}", scheduler.now())?;
    Ok(())
}
