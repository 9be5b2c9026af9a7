//! A run's summary, for people.

use std::io::Write;

use anyhow::Result;
use carma_core::Outcome;
use carma_format::{count, duration, energy, labelled};
use carma_sim::{LowerBounds, Run, RunSummary, UserSummary};

use crate::origin::sentence;

/// Where values begin.
const COLUMN: usize = 25;

/// Prints a run in a few lines.
pub(super) fn print(summary: &RunSummary, bounds: LowerBounds, output: &mut impl Write) -> Result<()> {
    let RunSummary { makespan, mean_wait, mean_execution, mean_jct, p50_jct, p95_jct, .. } = *summary;
    let mut line = |name: &str, value: String| writeln!(output, "{}", labelled(&format!("  {name}"), COLUMN, &value));
    let never = if summary.never_started > 0 { format!(" ({} never started)", summary.never_started) } else { String::new() };
    line("jobs", format!("{} succeeded, {} did not{never}", summary.succeeded, summary.failed))?;
    line("makespan", format!("{} (critical path {})", duration(makespan), duration(bounds.critical_path)))?;
    line("waiting, mean", duration(mean_wait))?;
    line("execution, mean", duration(mean_execution))?;
    line("completion, mean", format!("{} (p50 {}, p95 {})", duration(mean_jct), duration(p50_jct), duration(p95_jct)))?;
    line("slowdown, mean", format!("{:.2} (worst {:.2})", summary.mean_slowdown, summary.worst_slowdown))?;
    let oom = format!("{} attempts, {} of them within their reservation", summary.oom_attempts, summary.oom_victims);
    line(Outcome::OutOfMemory.kind(), oom)?;
    line("retries", format!("{}, for any reason", summary.retries))?;
    line("SMACT, SMOCC, DRAMA", format!("{:.3}, {:.3}, {:.3}", summary.smact, summary.smocc, summary.drama))?;
    line("memory", format!("{:.0} MiB a device", summary.memory_mib))?;
    line("GPUs in use", format!("{:.1} % of the time", 100.0 * summary.active))?;
    line("energy", energy(summary.energy))?;
    line("energy-delay product", format!("{:.2} kWh h", summary.energy_delay / 3.6e6 / 3600.0))?;
    Ok(())
}

/// Limit of listed jobs that never ended.
const MOST_WAITING: usize = 3;

/// Why jobs never ended, a sentence for each of the first.
pub(crate) fn waiting(run: &Run) -> Vec<String> {
    let all: Vec<&String> = run.jobs.iter().filter_map(|job| job.waits_for.as_ref()).collect();
    let more = all.len().saturating_sub(MOST_WAITING);
    let first = all.iter().take(MOST_WAITING).map(|waits| format!("{}.", sentence(waits)));
    first.chain((more > 0).then(|| format!("{} more never ended.", count(more, "job")))).collect()
}

/// Limit of listed users.
const MOST_USERS: usize = 20;

/// Prints a line per user, if the trace names several.
pub(super) fn print_users(users: &[UserSummary], output: &mut impl Write) -> Result<()> {
    for user in users.iter().take(MOST_USERS).filter(|_| users.len() > 1) {
        let UserSummary { user, jobs, mean_wait, mean_jct, p95_jct, .. } = user;
        let name: String = if user.is_empty() { "no user".to_owned() } else { user.chars().take(17).collect() };
        let (wait, mean, p95) = (duration(*mean_wait), duration(*mean_jct), duration(*p95_jct));
        let value = format!("waiting {wait}, completion {mean} (p95 {p95})");
        writeln!(output, "{}", labelled(&format!("  {name} ({jobs})"), COLUMN, &value))?;
    }
    Ok(())
}
