//! Jobs submitted at their times, and followed to their ends.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use carma_core::JobId;
use carma_manager::api::{JobDetail, Told, Update};
use carma_manager::client::Client;
use carma_manager::store::{Phase, UnixMillis};

use super::plan::Planned;
use crate::manager::Ends;

/// Jobs that are over, and what all GPUs took from the first submission to the last end.
#[derive(Debug)]
pub(crate) struct Replayed {
    /// In the order of the trace.
    pub(crate) jobs: Vec<JobDetail>,
    /// Unset: not all GPUs tell.
    pub(crate) joules: Option<f64>,
}

/// What is reported while a trace is replayed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Heard<'a> {
    /// A job of the trace changed.
    Job(&'a Told),
    /// Every change before this time has been reported.
    Until(UnixMillis),
}

/// Submits each job at its time, sped up by a factor, and waits until all jobs have ended. Every change of these jobs is reported.
pub(crate) fn replay(client: &mut Client, planned: &[Planned], speed: f64, mut heard: impl FnMut(Heard<'_>)) -> Result<Replayed> {
    let updates = listen(client.another()?)?;
    let before = joules(client)?;
    let begun = Instant::now();
    let mut followed = Followed::default();
    for Planned { after, submit } in planned {
        let due = begun + Duration::from_secs_f64(after.get() / speed);
        while let Some(left) = due.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            match updates.recv_timeout(left) {
                Ok(told) => followed.hear(told, &mut heard),
                Err(RecvTimeoutError::Timeout) => {}
                // Whoever is not told has to wait.
                Err(RecvTimeoutError::Disconnected) => thread::sleep(left),
            }
        }
        let accepted = client.submit(submit).context("a job of the trace was not accepted")?;
        followed.jobs.extend(accepted.jobs);
        followed.look_again(&mut heard);
    }
    // A manager that goes away and comes back does not tell us of it, and answers those who wait.
    while followed.over.len() < followed.jobs.len()
        && let Ok(told) = updates.recv()
    {
        followed.hear(told, &mut heard);
    }
    let jobs = followed.jobs.iter().copied();
    let jobs = Ends { client, jobs, until: None }.filter_map(Result::transpose).collect::<Result<Vec<_>, _>>()?;
    let joules = before.zip(joules(client)?).map(|(before, after)| after - before);
    Ok(Replayed { jobs, joules })
}

/// Our jobs among all, and those that are over.
#[derive(Debug, Default)]
struct Followed {
    jobs: Vec<JobId>,
    over: BTreeSet<JobId>,
    /// Updates of jobs that may be ours: they come before the answer that says so.
    unclear: Vec<Told>,
}

impl Followed {
    fn hear(&mut self, told: Told, heard: &mut impl FnMut(Heard<'_>)) {
        if told.update == Update::Gpus {
            // The manager sends this regularly. Updates that are still unclear are older.
            if self.unclear.is_empty() {
                heard(Heard::Until(told.at));
            }
            return;
        }
        self.unclear.push(told);
        self.look_again(heard);
    }

    fn look_again(&mut self, heard: &mut impl FnMut(Heard<'_>)) {
        for told in std::mem::take(&mut self.unclear) {
            let Update::Job { job, state, .. } = told.update else { continue };
            if self.jobs.contains(&job) {
                heard(Heard::Job(&told));
                if state == Phase::Done {
                    self.over.insert(job);
                }
            } else if self.jobs.last().is_none_or(|last| job > *last) {
                self.unclear.push(told);
            }
        }
    }
}

/// What the manager tells, from now on, by a thread that ends when it does.
fn listen(mut client: Client) -> Result<Receiver<Told>> {
    let (listening, listens) = channel();
    let (updates, told) = channel();
    let run = move || match client.events(None) {
        Err(error) => drop(listening.send(Err(error))),
        Ok(events) => {
            let _ = listening.send(Ok(()));
            let mut told = events.map_while(Result::ok).filter_map(|event| serde_json::from_str(&event.data).ok());
            // Until nobody wants more of it, which the next look at the GPUs shows.
            let _ = told.find(|told: &Told| updates.send(told.clone()).is_err());
        }
    };
    thread::Builder::new().name("updates".to_owned()).spawn(run)?;
    listens.recv().context("nobody listens")??;
    Ok(told)
}

/// Energy of all GPUs so far.
fn joules(client: &mut Client) -> Result<Option<f64>> {
    Ok(client.gpus()?.iter().map(|gpu| gpu.energy.map(|energy| energy.0)).sum())
}
