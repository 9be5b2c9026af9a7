//! The resource use of a manager, read repeatedly during a long run.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::super::up::ManagerProcess;

/// The last quarter of a run may use this many times what the second quarter used. The first quarter fills caches and the history.
const BOUND: f64 = 1.25;
/// Requests behind one reading of the latency.
const REQUESTS: usize = 9;

/// One reading.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// Resident memory, in MiB.
    memory: f64,
    descriptors: f64,
    threads: f64,
    /// Everything in the folder of the state, in MiB.
    disk: f64,
    /// The median of a few requests that the engine answers, in milliseconds.
    latency: f64,
}

impl Reading {
    fn of(up: &ManagerProcess) -> Self {
        let process = Path::new("/proc").join(up.pid().to_string());
        let entries = |name: &str| fs::read_dir(process.join(name)).unwrap().count() as f64;
        let status = fs::read_to_string(process.join("status")).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<f64>().ok());
        Self {
            memory: resident.unwrap() / 1024.0,
            descriptors: entries("fd"),
            threads: entries("task"),
            disk: disk(&up.state()) as f64 / f64::from(1 << 20),
            latency: latency(up).as_secs_f64() * 1e3,
        }
    }
}

fn latency(up: &ManagerProcess) -> Duration {
    let mut client = up.client();
    let mut times: Vec<Duration> = (0..REQUESTS)
        .map(|_| {
            let begin = Instant::now();
            client.status().unwrap();
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[REQUESTS / 2]
}

/// The space that a folder takes. Files may disappear meanwhile.
fn disk(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => disk(&entry.path()) + metadata.blocks() * 512,
            Ok(metadata) => metadata.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}

/// All readings of a run, printed as they are made.
#[derive(Default)]
pub(super) struct Readings(Vec<Reading>);

impl Readings {
    /// Reads once, at this many kills or jobs.
    pub(super) fn read(&mut self, up: &ManagerProcess, at: u64) {
        if self.0.is_empty() {
            eprintln!("{:>9} {:>12} {:>12} {:>8} {:>10} {:>11}", "at", "memory MiB", "descriptors", "threads", "disk MiB", "latency ms");
        }
        let reading = Reading::of(up);
        let Reading { memory, descriptors, threads, disk, latency } = reading;
        eprintln!("{at:>9} {memory:>12.1} {descriptors:>12} {threads:>8} {disk:>10.1} {latency:>11.2}");
        self.0.push(reading);
    }

    /// Nothing grows: the median of the last quarter is within a bound of that of the second quarter. The slack is for small numbers.
    pub(super) fn assert_flat(&self, disk: Disk) {
        self.compare("memory (MiB)", |reading| reading.memory, 8.0);
        self.compare("descriptors", |reading| reading.descriptors, 8.0);
        self.compare("threads", |reading| reading.threads, 4.0);
        self.compare("latency (ms)", |reading| reading.latency, 5.0);
        if disk == Disk::Pruned {
            self.compare("disk (MiB)", |reading| reading.disk, 8.0);
        }
    }

    fn compare(&self, what: &str, value: impl Fn(&Reading) -> f64, slack: f64) {
        let quarter = |number: usize| {
            let mut values: Vec<f64> = self.0[self.0.len() * number / 4..self.0.len() * (number + 1) / 4].iter().map(&value).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied()
        };
        let (Some(second), Some(last)) = (quarter(1), quarter(3)) else { return eprintln!("too few readings of {what}") };
        let bound = second * BOUND + slack;
        eprintln!("{what}: {second:.1} in the second quarter, {last:.1} in the last; at most {bound:.1}");
        assert!(last <= bound, "{what} grows: from {second:.1} to {last:.1}");
    }
}

/// Whether old jobs are deleted during the run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Disk {
    Pruned,
    Kept,
}
