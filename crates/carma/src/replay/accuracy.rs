//! How good predicted starts and ends were: what the manager showed against what happened.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Result;
use carma_core::{JobId, percentile};
use carma_format::{left, right, write_table};
use carma_manager::api::{JobDetail, PredictedTime, QueueRow};
use carma_manager::client::Client;
use carma_manager::store::UnixMillis;
use serde::Serialize;

use crate::manager::now;

/// How often the queue is read.
const PERIOD: Duration = Duration::from_millis(200);
/// What happens sooner than this counts as this far away: errors are shares of it.
const SHORTEST: f64 = 60.0;

/// A prediction of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Start,
    EndOfWaiting,
    EndOfRunning,
}

/// A prediction as it was shown.
#[derive(Debug, Clone, Copy)]
struct Shown {
    job: JobId,
    at: UnixMillis,
    event: Event,
    predicted: PredictedTime,
}

/// How good predictions of one kind were.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Accuracy {
    /// Which predictions.
    what: &'static str,
    /// Jobs for which one was shown, of those to which it happened later than a minute after.
    jobs: usize,
    /// Predictions that are judged.
    predictions: usize,
    /// The median of errors, as shares of the real time from the prediction on.
    median_error: f64,
    /// The share of real times in the shown interval.
    inside: f64,
    /// The share of real times before it; the others are after it.
    early: f64,
    /// The median of the ratio of the interval's end to its beginning, a minute added to both.
    width: f64,
}

/// Reads the queue again and again.
#[derive(Debug)]
pub(super) struct Watch {
    thread: JoinHandle<Vec<Shown>>,
    stop: Arc<AtomicBool>,
}

impl Watch {
    pub(super) fn start(client: &Client) -> Result<Self> {
        let (mut client, stop) = (client.another()?, Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let watch = move || {
            let mut shown = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                // A manager that restarts answers later.
                if let (Ok(at), Ok(queue)) = (now(&mut client), client.whole_queue(None)) {
                    shown.extend(queue.jobs.iter().flat_map(|row| of_row(row, at)));
                }
                thread::sleep(PERIOD);
            }
            shown
        };
        Ok(Self { thread: thread::Builder::new().name("predictions".to_owned()).spawn(watch)?, stop })
    }

    /// Compares what was shown with what happened to these jobs.
    pub(super) fn judge(self, jobs: &[JobDetail]) -> Vec<Accuracy> {
        self.stop.store(true, Ordering::Relaxed);
        judged(&self.thread.join().unwrap_or_default(), jobs)
    }
}

fn of_row(row: &QueueRow, at: UnixMillis) -> impl Iterator<Item = Shown> {
    let end = if row.devices.is_empty() { Event::EndOfWaiting } else { Event::EndOfRunning };
    let job = row.id;
    let shown = move |(event, predicted): (Event, Option<PredictedTime>)| Some(Shown { job, at, event, predicted: predicted? });
    [(Event::Start, row.starts), (end, row.ends)].into_iter().filter_map(shown)
}

fn judged(shown: &[Shown], jobs: &[JobDetail]) -> Vec<Accuracy> {
    let rows = [
        ("start, as first shown", Event::Start, true),
        ("start, at any time", Event::Start, false),
        ("end of a waiting job, as first shown", Event::EndOfWaiting, true),
        ("end of a running job, as first shown", Event::EndOfRunning, true),
        ("end of a running job, at any time", Event::EndOfRunning, false),
    ];
    rows.into_iter().map(|(what, event, first)| accuracy(what, event, first, shown, jobs)).collect()
}

fn accuracy(what: &'static str, event: Event, first: bool, shown: &[Shown], jobs: &[JobDetail]) -> Accuracy {
    let (mut errors, mut widths, mut inside, mut early, mut judged_jobs) = (Vec::new(), Vec::new(), 0, 0, 0);
    for job in jobs {
        let of_job = shown.iter().filter(|shown| shown.job == job.id && shown.event == event);
        let mut judged = false;
        for prediction in of_job.take(if first { 1 } else { usize::MAX }) {
            let Some(real) = happened(job, prediction) else { continue };
            let PredictedTime { earliest, likely, latest } = prediction.predicted;
            judged = true;
            errors.push((likely.get() - real).abs() / real.max(SHORTEST));
            widths.push((latest.get() + SHORTEST) / (earliest.get() + SHORTEST));
            early += usize::from(real < earliest.get());
            inside += usize::from((earliest.get()..=latest.get()).contains(&real));
        }
        judged_jobs += usize::from(judged);
    }
    for values in [&mut errors, &mut widths] {
        values.sort_unstable_by(f64::total_cmp);
    }
    let count = errors.len();
    Accuracy {
        what,
        jobs: judged_jobs,
        predictions: count,
        median_error: percentile(&errors, 0.5),
        inside: inside as f64 / count.max(1) as f64,
        early: early as f64 / count.max(1) as f64,
        width: percentile(&widths, 0.5),
    }
}

/// How many seconds after the prediction it really happened.
fn happened(job: &JobDetail, shown: &Shown) -> Option<f64> {
    let later = |time: UnixMillis| time.0.checked_sub(shown.at.0).map(|milliseconds| milliseconds as f64 / 1000.0);
    match shown.event {
        Event::Start => job.attempts.iter().find_map(|attempt| later(attempt.launched)),
        Event::EndOfWaiting | Event::EndOfRunning => later(job.ended?),
    }
}

/// A table for people.
pub(super) fn write(accuracy: &[Accuracy], output: &mut impl Write) -> io::Result<()> {
    let columns = [
        left("PREDICTED", 37),
        right("JOBS", 5),
        right("SHOWN", 6),
        right("ERROR", 6),
        right("INSIDE", 7),
        right("EARLY", 6),
        right("WIDTH", 6),
    ];
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let row = |of: &Accuracy| {
        let figures = if of.predictions == 0 {
            ["-"; 4].map(str::to_owned)
        } else {
            [percent(of.median_error), percent(of.inside), percent(of.early), format!("{:.1}", of.width)]
        };
        let [error, inside, early, width] = figures;
        [of.what.to_owned(), of.jobs.to_string(), of.predictions.to_string(), error, inside, early, width]
    };
    writeln!(output)?;
    write_table(columns, &accuracy.iter().map(row).collect::<Vec<_>>(), output)?;
    writeln!(output, "\nERROR: the median, as a share of the real time after the prediction (at least a minute).")?;
    writeln!(output, "INSIDE: share of real times in the shown interval; EARLY: before it; the others are after it.")?;
    writeln!(output, "WIDTH: the interval's end divided by its beginning, each plus a minute.")
}

#[cfg(test)]
mod tests {
    use carma_core::Seconds;

    use super::*;
    use crate::manager::sample;

    #[test]
    fn the_real_time_is_compared_with_what_was_shown() {
        let job = sample();
        let at = UnixMillis(job.attempts[0].launched.0 - 100_000);
        let predicted = |earliest, likely, latest| {
            let [earliest, likely, latest] = [earliest, likely, latest].map(Seconds::from_secs);
            PredictedTime { earliest, likely, latest }
        };
        let shown = |after: u64, predicted| Shown { job: job.id, at: UnixMillis(at.0 + after), event: Event::Start, predicted };
        let shown = [shown(0, predicted(80, 120, 140)), shown(50_000, predicted(60, 80, 90))];
        let all = judged(&shown, std::slice::from_ref(&job));
        let figures = |of: &Accuracy| (of.jobs, of.predictions, (of.median_error * 100.0).round(), of.inside, of.early);
        assert_eq!(figures(&all[0]), (1, 1, 20.0, 1.0, 0.0), "120 s instead of 100 s");
        assert_eq!(figures(&all[1]), (1, 2, 35.0, 0.5, 0.5), "and 80 s instead of 50 s, which counts as a minute");
        assert_eq!(figures(&all[2]), (0, 0, 0.0, 0.0, 0.0));
    }
}
