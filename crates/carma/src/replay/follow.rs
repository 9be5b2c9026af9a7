//! Jobs submitted at their times, and tracked to their ends.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use carma_core::JobId;
use carma_manager::api::{JobDetail, TimedUpdate, Update};
use carma_manager::client::Client;
use carma_manager::store::{Phase, UnixMillis};

use super::plan::Planned;
use crate::manager::JobEnds;

/// Finished jobs, and the energy of all GPUs from the first submission to the last end.
#[derive(Debug)]
pub(crate) struct Replayed {
    /// In the order of the trace.
    pub(crate) jobs: Vec<JobDetail>,
    /// Unset: some GPUs do not report it.
    pub(crate) joules: Option<f64>,
}

/// Updates during the replay of a trace.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ReplayUpdate<'a> {
    /// A job of the trace changed.
    Job(&'a TimedUpdate),
    /// Every change before this time has been reported.
    Until(UnixMillis),
}

/// Submits each job at its time, sped up by a factor, and waits until all jobs have ended. Every change of these jobs is reported.
pub(crate) fn replay(client: &mut Client, planned: &[Planned], speed: f64, mut report: impl FnMut(ReplayUpdate<'_>)) -> Result<Replayed> {
    let updates = subscribe(client.another()?)?;
    let before = joules(client)?;
    let begun = Instant::now();
    let mut tracked = TrackedJobs::default();
    for Planned { after, submit } in planned {
        let due = begun + Duration::from_secs_f64(after.get() / speed);
        while let Some(left) = due.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            match updates.recv_timeout(left) {
                Ok(change) => tracked.receive(change, &mut report),
                Err(RecvTimeoutError::Timeout) => {}
                // Without updates, sleep.
                Err(RecvTimeoutError::Disconnected) => thread::sleep(left),
            }
        }
        let accepted = client.submit(submit).context("a job of the trace was not accepted")?;
        tracked.jobs.extend(accepted.jobs);
        tracked.report_known(&mut report);
    }
    // A manager that restarts drops our subscription, but answers waiting requests.
    while tracked.finished.len() < tracked.jobs.len()
        && let Ok(change) = updates.recv()
    {
        tracked.receive(change, &mut report);
    }
    let jobs = tracked.jobs.iter().copied();
    let jobs = JobEnds { client, jobs, until: None }.filter_map(Result::transpose).collect::<Result<Vec<_>, _>>()?;
    let joules = before.zip(joules(client)?).map(|(before, after)| after - before);
    Ok(Replayed { jobs, joules })
}

/// Our jobs, and the finished ones.
#[derive(Debug, Default)]
struct TrackedJobs {
    jobs: Vec<JobId>,
    finished: BTreeSet<JobId>,
    /// Changes that may be of our jobs: they arrive before the answer to the submission.
    unassigned: Vec<TimedUpdate>,
}

impl TrackedJobs {
    fn receive(&mut self, change: TimedUpdate, report: &mut impl FnMut(ReplayUpdate<'_>)) {
        if change.update == Update::Gpus {
            // The manager sends this regularly. Changes that are still unassigned are older.
            if self.unassigned.is_empty() {
                report(ReplayUpdate::Until(change.at));
            }
            return;
        }
        self.unassigned.push(change);
        self.report_known(report);
    }

    fn report_known(&mut self, report: &mut impl FnMut(ReplayUpdate<'_>)) {
        for change in std::mem::take(&mut self.unassigned) {
            let Update::Job { job, state, .. } = change.update else { continue };
            if self.jobs.contains(&job) {
                report(ReplayUpdate::Job(&change));
                if state == Phase::Done {
                    self.finished.insert(job);
                }
            } else if self.jobs.last().is_none_or(|last| job > *last) {
                self.unassigned.push(change);
            }
        }
    }
}

/// The manager's updates from now on, from a thread that ends with the manager.
fn subscribe(mut client: Client) -> Result<Receiver<TimedUpdate>> {
    let (ready, subscribed) = channel();
    let (sender, updates) = channel();
    let run = move || match client.events(None) {
        Err(error) => drop(ready.send(Err(error))),
        Ok(events) => {
            let _ = ready.send(Ok(()));
            let mut changes = events.map_while(Result::ok).filter_map(|event| serde_json::from_str(&event.data).ok());
            // Ends at the first update after the receiver is dropped.
            let _ = changes.find(|change: &TimedUpdate| sender.send(change.clone()).is_err());
        }
    };
    thread::Builder::new().name("updates".to_owned()).spawn(run)?;
    subscribed.recv().context("the event stream did not start")??;
    Ok(updates)
}

/// Energy of all GPUs so far.
fn joules(client: &mut Client) -> Result<Option<f64>> {
    Ok(client.gpus()?.iter().map(|gpu| gpu.energy.map(|energy| energy.0)).sum())
}
