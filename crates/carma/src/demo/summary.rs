//! The demo's results.

use std::io::Write;

use anyhow::Result;
use carma_core::Verdict;
use carma_manager::api::JobDetail;

use crate::manager::devices;
use crate::replay::table::{self, Column};
use crate::replay::{Figures, Replayed, SEEDS};
use carma_format::{duration, memory};

/// Both runs, the simulator's prediction of the second, and how jobs that ran out of memory recovered.
pub(super) fn write(alone: &Figures, shared: &Replayed, predicted: &Figures, output: &mut impl Write) -> Result<()> {
    let sharing = Figures::from(shared);
    let columns = [
        Column::Names,
        Column::Run("exclusive", alone),
        Column::Run("sharing", &sharing),
        Column::Ratio(&sharing, alone),
        Column::Run("predicted", predicted),
    ];
    writeln!(output)?;
    table::write(columns, output)?;
    writeln!(output, "\nratio: sharing / exclusive; below 1, sharing is better.")?;
    writeln!(output, "predicted: the simulator's prediction of the sharing run (mean of {SEEDS} seeds).")?;
    for job in &shared.jobs {
        recoveries(job, output)?;
    }
    Ok(())
}

/// How a job recovered.
fn recoveries(job: &JobDetail, output: &mut impl Write) -> Result<()> {
    for pair in job.attempts.windows(2).filter(|pair| pair[0].verdict == Some(Verdict::OutOfMemory)) {
        let [failed, next] = pair else { continue };
        let name = job.request.name.as_deref().unwrap_or_default();
        let declared = job.request.resources.memory.map(memory).unwrap_or_default();
        let reserved = next.placement.devices.first().map(|granted| memory(granted.reserved)).unwrap_or_default();
        let gap = failed.ended.map_or(0.0, |ended| next.launched.0.saturating_sub(ended.0) as f64 / 1000.0);
        let gpus = devices(next.placement.devices.iter().map(|granted| granted.device));
        writeln!(output, "\nJob {} ({name}) declared {declared} and {}.", job.id.0, Verdict::OutOfMemory)?;
        writeln!(output, "CARMA restarted it {} later on GPU {gpus} with {reserved} reserved.", duration(gap))?;
    }
    Ok(())
}
