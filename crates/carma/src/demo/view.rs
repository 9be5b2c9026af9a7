//! The demo's picture: two schedules side by side, in 80 columns.

use std::io::Write;

use anyhow::Result;
use carma_core::{Time, Verdict};
use carma_sim::{Moment, Run, RunSummary};

use crate::units::duration;

/// Columns of one schedule.
const WIDTH: usize = 32;

/// Why a job waited.
#[derive(Debug)]
pub(super) struct Why {
    pub(super) second: f64,
    pub(super) workload: String,
    pub(super) explanation: String,
}

/// Prints both schedules, what they come to, and why a job waited.
pub(super) fn print<'a>(
    names: &[String; 2],
    runs: &[Run; 2],
    workload: impl Fn(usize) -> &'a str,
    why: Option<&Why>,
    output: &mut impl Write,
) -> Result<()> {
    let [alone, shared] = runs;
    let longest = alone.ended.max(shared.ended);
    writeln!(output, "{} jobs on {} A100-40GB. Each digit: how many jobs a GPU has.\n", alone.jobs.len(), alone.gpus.len())?;
    writeln!(output, "       {:<w$}   {}", names[0], names[1], w = WIDTH + 1)?;
    for (place, (left, right)) in alone.gpus.iter().zip(&shared.gpus).enumerate() {
        let (left, right) = (lane(&left.moments, alone.ended, longest), lane(&right.moments, shared.ended, longest));
        writeln!(output, "GPU {place:<2} {left:<w$}   {right}", w = WIDTH + 1)?;
    }
    let scale = format!("0 h{:>w$}", format!("{:.1} h", longest.get() / 3600.0), w = WIDTH - 3);
    writeln!(output, "       {scale:<w$}   {scale}\n", w = WIDTH + 1)?;

    let summaries = [alone.summary(), shared.summary()];
    writeln!(output, "{:<26} {:>14} {:>14} {:>10}", "", "exclusive", "sharing", "ratio")?;
    row(output, "last job done", &summaries, |summary| summary.makespan)?;
    row(output, "mean wait", &summaries, |summary| summary.mean_wait)?;
    row(output, "mean time to completion", &summaries, |summary| summary.mean_jct)?;
    row(output, "mean time running", &summaries, |summary| summary.mean_execution)?;
    let [of_alone, of_shared] = &summaries;
    let energy = |summary: &RunSummary| format!("{:.2} kWh", summary.energy / 3.6e6);
    let ratio = of_shared.energy / of_alone.energy;
    writeln!(output, "{:<26} {:>14} {:>14} {ratio:>10.2}", "energy", energy(of_alone), energy(of_shared))?;
    writeln!(output, "{:<26} {:>14} {:>14}", "out of memory, recovered", of_alone.oom_attempts, of_shared.oom_attempts)?;
    if of_alone.failed + of_shared.failed > 0 {
        writeln!(output, "{:<26} {:>14} {:>14}", "failed, left out above", of_alone.failed, of_shared.failed)?;
    }
    for (place, job) in shared.jobs.iter().enumerate() {
        for pair in job.attempts.windows(2).filter(|pair| pair[0].verdict == Some(Verdict::OutOfMemory)) {
            let (when, gap) = (pair[1].launched, pair[0].ended.map_or(0.0, |ended| (pair[1].launched - ended).get()));
            writeln!(output, "\n{} ran out of memory beside others.", workload(place))?;
            writeln!(output, "It came back by itself after {}, {} into the run.", duration(gap), duration(when.get()))?;
        }
    }
    if let Some(Why { second, workload, explanation }) = why {
        writeln!(output, "\nWhy did {workload} wait, {} into the sharing run?\n{explanation}", duration(*second))?;
    }
    writeln!(output, "\nSimulated. The workloads' times, memory and counters were measured by others on")?;
    writeln!(output, "an A100; carma validate holds the simulator against measured runs.")?;
    Ok(())
}

fn row(output: &mut impl Write, name: &str, summaries: &[RunSummary; 2], of: impl Fn(&RunSummary) -> f64) -> Result<()> {
    let [alone, shared] = [of(&summaries[0]), of(&summaries[1])];
    let minutes = |seconds: f64| format!("{:.1} min", seconds / 60.0);
    let ratio = if alone > 0.0 { format!("{:.2}", shared / alone) } else { "-".to_owned() };
    Ok(writeln!(output, "{name:<26} {:>14} {:>14} {ratio:>10}", minutes(alone), minutes(shared))?)
}

/// A GPU's history, the busiest moment of each column.
fn lane(moments: &[Moment], ended: Time, longest: Time) -> String {
    let ends = moments.iter().skip(1).map(|moment| moment.since).chain([ended]);
    let spans: Vec<(f64, f64, usize)> =
        moments.iter().zip(ends).map(|(moment, end)| (moment.since.get(), end.get(), moment.processes)).collect();
    let column = |column: usize| {
        let at = |column: usize| column as f64 * longest.get() / WIDTH as f64;
        let (from, to) = (at(column), at(column + 1));
        spans.iter().filter(|(since, until, _)| *since < to && *until > from).map(|(_, _, processes)| *processes).max()
    };
    let digit = |jobs: Option<usize>| match jobs {
        None => ' ',
        Some(0) => '.',
        Some(jobs) => char::from_digit(jobs as u32, 10).unwrap_or('+'),
    };
    (0..WIDTH).map(|place| digit(column(place))).collect::<String>().trim_end().to_owned()
}
