//! The batch system: pilots are requested, listed and cancelled by a thread of its own, because its programs may take half a minute.
//!
//! ```text
//!  engine ── orders ──► thread ──► sbatch, squeue, scancel
//!         ◄── reports ──
//! ```
//!
//! An error is no verdict: a controller that hangs may have taken the request. So pilots have names that no other has, and are looked for by name.

mod listing;
mod script;

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use self::listing::{FORMAT, parse};
pub(crate) use self::listing::{ListedPilot, PREFIX, PilotOutcome};
pub(crate) use self::script::{PilotPaths, arguments, script};
use crate::cluster::PoolSettings;
use crate::slurm::{Commands, SlurmError};

/// The time between two lists while pilots are about to start, and otherwise.
const FAST_POLL: Duration = Duration::from_secs(2);
const SLOW: Duration = Duration::from_secs(15);
/// How often a pilot is cancelled at most: hours of a batch system that does not answer.
const MOST_CANCELS: u32 = 1000;
/// How long after an order the list is read often.
const FAST_POLL_PERIOD: Duration = Duration::from_secs(60);

/// An order to the batch system.
#[derive(Debug)]
pub(crate) enum BatchOrder {
    /// Request a pilot.
    Submit { pilot: String, settings: Box<PoolSettings>, paths: PilotPaths },
    /// Cancel a pilot, by its name.
    Cancel { pilot: String },
    /// List pilots until the next order of this kind.
    Watch(bool),
    /// Ask whether a pilot could start, and when.
    Test { settings: Box<PoolSettings>, paths: PilotPaths, answer: tokio::sync::oneshot::Sender<Result<String, String>> },
}

/// A report of the batch system.
#[derive(Debug)]
pub(crate) enum BatchReport {
    /// A pilot was requested. An error does not mean that the batch system does not have it.
    Submitted { pilot: String, result: Result<String, String> },
    /// All pilots that the batch system knows, as of a moment after all earlier orders.
    Listed(Vec<ListedPilot>),
    /// The batch system did not answer.
    NotListed(String),
}

/// The thread of the batch system. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct BatchSystem(Sender<BatchOrder>);

impl BatchSystem {
    pub(crate) fn start(report: impl Fn(BatchReport) -> bool + Send + 'static) -> io::Result<Self> {
        let (orders, waiting) = channel();
        thread::Builder::new().name("slurm".to_owned()).spawn(move || run(&waiting, &report))?;
        Ok(Self(orders))
    }

    pub(crate) fn order(&self, order: BatchOrder) {
        let _ = self.0.send(order);
    }
}

fn run(orders: &Receiver<BatchOrder>, report: &impl Fn(BatchReport) -> bool) {
    let commands = Commands::default();
    let (mut watches, mut last_order) = (false, Instant::now());
    let mut next = Instant::now();
    // Pilots that are still to be cancelled, because the batch system did not answer, and how often it was asked.
    let mut cancelled: Vec<(String, u32)> = Vec::new();
    loop {
        let wait =
            if watches || !cancelled.is_empty() { next.saturating_duration_since(Instant::now()) } else { Duration::from_secs(3600) };
        match orders.recv_timeout(wait) {
            Ok(order) => {
                if !matches!(order, BatchOrder::Watch(_)) {
                    (last_order, next) = (Instant::now(), Instant::now() + FAST_POLL);
                }
                if let BatchOrder::Cancel { pilot } = order {
                    cancelled.push((pilot, 0));
                    cancel(&commands, &mut cancelled);
                } else if !carry_out(order, &commands, &mut watches, report) {
                    return;
                }
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
        }
        cancel(&commands, &mut cancelled);
        let listed = list(&commands).map_or_else(|error| BatchReport::NotListed(error.to_string()), BatchReport::Listed);
        if watches && !report(listed) {
            return;
        }
        next = Instant::now() + if last_order.elapsed() < FAST_POLL_PERIOD { FAST_POLL } else { SLOW };
    }
}

fn carry_out(order: BatchOrder, commands: &Commands, watches: &mut bool, report: &impl Fn(BatchReport) -> bool) -> bool {
    match order {
        BatchOrder::Watch(wanted) => *watches = wanted,
        BatchOrder::Submit { pilot, settings, paths } => {
            let result = submit(commands, &pilot, &settings, &paths).map_err(|error| error.to_string());
            return report(BatchReport::Submitted { pilot, result });
        }
        BatchOrder::Cancel { .. } => {}
        BatchOrder::Test { settings, paths, answer } => drop(answer.send(test(commands, &settings, &paths))),
    }
    true
}

/// Cancels pilots, and leaves those for which the batch system did not answer. One that is gone already is no error.
fn cancel(commands: &Commands, pilots: &mut Vec<(String, u32)>) {
    pilots.retain_mut(|(pilot, tries)| {
        *tries += 1;
        commands.run("scancel", &["--me", "--name", pilot]).is_err() && *tries < MOST_CANCELS
    });
}

fn submit(commands: &Commands, pilot: &str, settings: &PoolSettings, paths: &PilotPaths) -> Result<String, SlurmError> {
    let file = paths.script(pilot);
    let not_written = |error| SlurmError::NotStarted { program: file.display().to_string(), error };
    paths.write(&file, &script(pilot, settings, paths)).map_err(not_written)?;
    let arguments = arguments(pilot, settings, paths);
    let mut words: Vec<&str> = vec!["--parsable"];
    words.extend(arguments.iter().map(String::as_str));
    let file = file.to_string_lossy();
    words.push(&file);
    let printed = commands.run("sbatch", &words)?;
    // `123` or `123;cluster`, after lines that a site may add.
    let last = printed.lines().last().unwrap_or_default();
    Ok(last.split(';').next().unwrap_or_default().trim().to_owned())
}

/// What `sbatch --test-only` says. It prints to the error stream, and requests nothing.
fn test(commands: &Commands, settings: &PoolSettings, paths: &PilotPaths) -> Result<String, String> {
    let file = paths.script("test");
    paths.write(&file, &script("test", settings, paths)).map_err(|error| error.to_string())?;
    let mut words = vec!["-c".to_owned(), "exec sbatch --test-only \"$@\" 2>&1".to_owned(), "sbatch".to_owned()];
    words.extend(arguments("test", settings, paths));
    words.push(file.to_string_lossy().into_owned());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = commands.run("sh", &words);
    let _ = std::fs::remove_file(file);
    let clean = |text: &str| text.trim().trim_start_matches("sbatch: ").to_owned();
    match result {
        Ok(text) => Ok(clean(&text)),
        Err(SlurmError::Failed { message, .. }) => Err(clean(&message)),
        Err(error) => Err(error.to_string()),
    }
}

fn list(commands: &Commands) -> Result<Vec<ListedPilot>, SlurmError> {
    let printed = commands.run("squeue", &["--me", "--noheader", "--states=all", "--format", FORMAT])?;
    Ok(printed.lines().filter_map(parse).collect())
}

/// The folder for scripts and logs of pilots.
pub(crate) fn pilots_folder(state: &std::path::Path) -> PathBuf {
    state.join("pilots")
}
