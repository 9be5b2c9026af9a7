//! The demo's picture: two schedules side by side, in 80 columns.

use std::io::Write;

use anyhow::Result;

use super::trace::TRACE;
use super::world::{Recovery, Run, Times, Why};

/// Columns of one schedule.
const WIDTH: usize = 32;

/// Prints both schedules, what they come to, and why a job waited.
pub(super) fn print(names: &[String; 2], runs: &[Run; 2], output: &mut impl Write) -> Result<()> {
    let [alone, shared] = runs;
    let longest = alone.makespan().max(shared.makespan()).max(1);
    let gpus = alone.occupancy.len();
    writeln!(output, "{} jobs on {gpus} A100-40GB. Each digit: how many jobs a GPU has.\n", TRACE.len())?;
    writeln!(output, "       {:<w$}   {}", names[0], names[1], w = WIDTH + 1)?;
    for (gpu, (left, right)) in alone.occupancy.iter().zip(&shared.occupancy).enumerate() {
        writeln!(output, "GPU {gpu:<2} {:<w$}   {}", lane(left, longest), lane(right, longest), w = WIDTH + 1)?;
    }
    let scale = format!("0 h{:>w$}", format!("{:.1} h", f64::from(longest) / 3600.0), w = WIDTH - 3);
    writeln!(output, "       {scale:<w$}   {scale}\n", w = WIDTH + 1)?;

    writeln!(output, "{:<26} {:>14} {:>14} {:>10}", "", "exclusive", "sharing", "ratio")?;
    row(output, "last job done", runs, |run| f64::from(run.makespan()))?;
    row(output, "mean wait", runs, |run| mean(run, |times, _| times.started - times.submitted))?;
    row(output, "mean time to completion", runs, |run| mean(run, |times, ended| ended - times.submitted))?;
    row(output, "mean time running", runs, |run| mean(run, |times, ended| ended - times.started))?;
    writeln!(output, "{:<26} {:>14} {:>14}", "out of memory, recovered", alone.recoveries.len(), shared.recoveries.len())?;
    let failed = |run: &Run| run.jobs.iter().filter(|times| times.ended.is_none()).count();
    if failed(alone) + failed(shared) > 0 {
        writeln!(output, "{:<26} {:>14} {:>14}", "failed, left out above", failed(alone), failed(shared))?;
    }
    for Recovery { second, workload, floor, whole_gpu } in &shared.recoveries {
        let to = if *whole_gpu { "an idle GPU".to_owned() } else { format!("a GPU with {floor} free") };
        writeln!(output, "\n{second} s into the sharing run, {workload} ran out of")?;
        writeln!(output, "memory. It came back by itself, to {to}.")?;
    }
    if let Some(Why { second, workload, explanation }) = &shared.why {
        writeln!(output, "\nWhy did {workload} wait, {second} s into the sharing run?\n{explanation}")?;
    }
    writeln!(output, "\nThe workloads' times, memory and counters were measured by others on an A100.")?;
    writeln!(output, "How jobs slow each other down is a rough rule here: this shows decisions and")?;
    writeln!(output, "predicts nothing.")?;
    Ok(())
}

fn row(output: &mut impl Write, name: &str, runs: &[Run; 2], of: impl Fn(&Run) -> f64) -> Result<()> {
    let [alone, shared] = [of(&runs[0]), of(&runs[1])];
    let minutes = |seconds: f64| format!("{:.1} min", seconds / 60.0);
    let ratio = if alone > 0.0 { format!("{:.2}", shared / alone) } else { "-".to_owned() };
    Ok(writeln!(output, "{name:<26} {:>14} {:>14} {ratio:>10}", minutes(alone), minutes(shared))?)
}

/// Over the jobs that did their work.
fn mean(run: &Run, of: impl Fn(&Times, u32) -> u32) -> f64 {
    let done: Vec<f64> = run.jobs.iter().filter_map(|times| Some(f64::from(of(times, times.ended?)))).collect();
    done.iter().sum::<f64>() / done.len().max(1) as f64
}

/// A GPU's history, the busiest moment of each column.
fn lane(history: &[usize], longest: u32) -> String {
    let column = |column: usize| {
        let at = |column: usize| (column * longest as usize).div_ceil(WIDTH).min(history.len());
        history[at(column)..at(column + 1)].iter().max().copied()
    };
    let digit = |jobs: Option<usize>| match jobs {
        None => ' ',
        Some(0) => '.',
        Some(jobs) => char::from_digit(jobs as u32, 10).unwrap_or('+'),
    };
    (0..WIDTH).map(|place| digit(column(place))).collect::<String>().trim_end().to_owned()
}
