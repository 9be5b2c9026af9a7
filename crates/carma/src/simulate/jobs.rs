//! The result of each job, for programs.

use std::io::Write;

use anyhow::Result;
use carma_sim::{Catalogue, Origin, PolicyOrigin, Run, Trace};
use serde::Serialize;

/// One job.
#[derive(Debug, Serialize)]
pub(super) struct JobLine<'a> {
    job: usize,
    name: String,
    workload: String,
    gpus: u32,
    submitted_s: f64,
    started_s: Option<f64>,
    ended_s: Option<f64>,
    waiting_s: Option<f64>,
    execution_s: f64,
    alone_s: f64,
    slowdown: Option<f64>,
    attempts: usize,
    oom_attempts: usize,
    /// GPUs of the last attempt, joined by spaces.
    on_gpus: String,
    outcome: String,
    // In each row, so that rows of several files can be put together.
    estimator: &'a str,
    seed: u64,
    servers: &'a str,
    settings: &'a str,
    carma: &'a str,
    command: &'a str,
    inputs: &'a str,
    /// What a job that never ended waits for.
    waits_for: &'a str,
}

/// What all jobs of a run have in common.
pub(super) struct RunFacts<'a> {
    pub(super) seed: u64,
    pub(super) servers: &'a str,
    pub(super) origin: &'a Origin,
    pub(super) policy: &'a PolicyOrigin,
    pub(super) inputs: &'a str,
}

/// All jobs, in order of submission.
pub(super) fn lines<'a>(run: &'a Run, trace: &Trace, catalogue: &Catalogue, facts: &RunFacts<'a>) -> Vec<JobLine<'a>> {
    let RunFacts { seed, servers, origin, policy, inputs } = *facts;
    let line = |(place, (record, job)): (usize, (&'a carma_sim::JobRecord, &carma_sim::TraceJob))| JobLine {
        job: place + 1,
        name: job.name.clone(),
        workload: job.workload.map(|workload| catalogue.get(workload).name.clone()).unwrap_or_default(),
        gpus: job.gpus,
        submitted_s: record.submitted.get(),
        started_s: record.attempts.first().map(|attempt| attempt.launched.get()),
        ended_s: record.ended.map(carma_core::Time::get),
        waiting_s: record.waiting().map(to_millisecond),
        execution_s: to_millisecond(record.execution()),
        alone_s: to_millisecond(record.alone),
        slowdown: record.slowdown().map(to_millisecond),
        attempts: record.attempts.len(),
        oom_attempts: record.out_of_memory(),
        on_gpus: record
            .attempts
            .last()
            .map(|last| last.gpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
            .unwrap_or_default(),
        outcome: record
            .outcome
            .as_ref()
            .map_or_else(|| if record.attempts.is_empty() { "never started" } else { "never finished" }.to_owned(), ToString::to_string),
        estimator: &policy.estimator,
        seed,
        servers,
        settings: &policy.settings,
        carma: &origin.carma,
        command: &origin.command,
        inputs,
        waits_for: record.waits_for.as_deref().unwrap_or_default(),
    };
    run.jobs.iter().zip(&trace.jobs).enumerate().map(line).collect()
}

fn to_millisecond(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// As a table with a header.
pub(super) fn write_csv(lines: &[JobLine<'_>], output: impl Write) -> Result<()> {
    let mut table = csv::Writer::from_writer(output);
    lines.iter().try_for_each(|line| table.serialize(line))?;
    Ok(table.flush()?)
}
