//! `carma export`: everything about many jobs, for programs.

use std::io::Write;

use anyhow::{Result, ensure};
use carma_core::{Fraction, Metric, MiB, Utilisation};
use carma_manager::api::{AttemptDetail, HistoryQuery, JobDetail};
use carma_manager::attempt::Exit;
use carma_manager::request::JobCommand;
use carma_manager::store::{Phase, UnixMillis};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use carma_format::quoted;

use super::common::{Manager, TimeRange, UserFilter};
use super::text::span;

#[derive(Debug, Args)]
#[command(after_help = "\
CSV has one row per attempt, and one per job that never started. Times are UTC. \
Several GPUs or peaks are separated by spaces. gpu_seconds is the run time of an \
attempt times its GPUs. JSON has one job per line. Jobs of other users are exported \
with the data that you may see. `carma what-if` simulates the jobs of a manager.\n\n\
Example:\n  carma export --since 30d > jobs.csv")]
pub(crate) struct Arguments {
    /// The format of the output.
    #[arg(long, value_enum, default_value_t = Form::Csv)]
    format: Form,
    /// Also write the environment of each job, which may hold tokens and other secrets (JSON only).
    #[arg(long)]
    environment: bool,
    #[command(flatten)]
    users: UserFilter,
    /// Only jobs in this state.
    #[arg(long)]
    state: Option<Phase>,
    #[command(flatten)]
    range: TimeRange,
    #[command(flatten)]
    manager: Manager,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Form {
    /// One row per attempt.
    Csv,
    /// One job per line.
    Json,
}

pub(super) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    ensure!(!arguments.environment || matches!(arguments.format, Form::Json), "--environment needs --format json: CSV has no environment");
    let mut client = arguments.manager.connect()?;
    let (since, until) = arguments.range.span(&mut client)?;
    let query = HistoryQuery { user: arguments.users.user(), state: arguments.state, since, until, ..HistoryQuery::default() };
    let mut jobs = client.export(&query)?;
    match arguments.format {
        Form::Json => jobs.try_for_each(|job| Ok(writeln!(output, "{}", in_json(job?, arguments.environment)?)?)),
        Form::Csv => {
            let mut table = csv::WriterBuilder::new().has_headers(false).from_writer(output);
            table.write_record(COLUMNS)?;
            for job in jobs {
                rows(&job?).try_for_each(|row| table.serialize(row))?;
            }
            Ok(table.flush()?)
        }
    }
}

/// A job on one line, with or without its environment.
fn in_json(mut job: JobDetail, environment: bool) -> Result<String> {
    if !environment {
        job.request.environment.clear();
    }
    Ok(serde_json::to_string(&job)?)
}

macro_rules! row {
    ($($(#[$doc:meta])* $column:ident: $kind:ty,)*) => {
        /// The columns, with or without rows.
        const COLUMNS: [&str; [$(stringify!($column)),*].len()] = [$(stringify!($column)),*];

        /// A row of the table. Columns may be added at the end; none is renamed or removed.
        #[derive(Debug, Serialize)]
        struct Row {
            $($(#[$doc])* $column: $kind,)*
        }
    };
}

row! {
    job: u64,
    array: Option<u64>,
    index: Option<u32>,
    name: Option<String>,
    user: String,
    state: String,
    outcome: Option<String>,
    submitted: String,
    ended: Option<String>,
    gpus: u32,
    priority: i32,
    declared_mib: Option<u64>,
    expected_mib: Option<u64>,
    upper_mib: Option<u64>,
    estimated_by: Option<String>,
    attempt: Option<u32>,
    devices: String,
    reserved_mib: String,
    launched: Option<String>,
    attempt_ended: Option<String>,
    verdict: Option<String>,
    exit_code: Option<i32>,
    signal: Option<i32>,
    peak_mib: String,
    smact: Option<f64>,
    smocc: Option<f64>,
    drama: Option<f64>,
    utilisation: Option<f64>,
    joules: Option<f64>,
    /// Time of the attempt times its GPUs; a shared GPU counts in full for each job.
    gpu_seconds: Option<f64>,
    /// The command as a shell reads it; of a script its arguments.
    command: String,
    /// The parameters of a sweep: `lr=0.1 seed=3`.
    parameters: String,
}

fn rows(job: &JobDetail) -> impl Iterator<Item = Row> {
    let attempts = job.attempts.iter().map(Some);
    let never = job.attempts.is_empty().then_some(None);
    attempts.chain(never).map(|attempt| row(job, attempt))
}

fn row(job: &JobDetail, attempt: Option<&AttemptDetail>) -> Row {
    let exit = attempt.and_then(|attempt| attempt.exit.as_ref());
    let utilisation = attempt.map_or(Utilisation::NONE, |attempt| attempt.utilisation).map(|share| share.map(Fraction::get));
    let granted = || attempt.into_iter().flat_map(|attempt| &attempt.placement.devices);
    Row {
        job: job.id.0,
        array: job.array.map(|place| place.array.0),
        index: job.array.map(|place| place.index),
        name: job.request.name.clone(),
        user: job.owner.name.clone(),
        state: job.phase.to_string(),
        outcome: job.outcome().map(tag),
        submitted: instant(job.submitted),
        ended: job.ended.map(instant),
        gpus: job.request.resources.gpus,
        priority: job.request.schedule.priority.0,
        declared_mib: job.estimate.declared.map(|MiB(size)| size),
        expected_mib: job.estimate.expected.map(|MiB(size)| size),
        upper_mib: job.estimate.upper.map(|MiB(size)| size),
        estimated_by: job.estimate.source.clone(),
        attempt: attempt.map(|attempt| attempt.attempt.number),
        devices: spaced(granted().map(|granted| granted.device)),
        reserved_mib: spaced(granted().map(|granted| granted.reserved.0)),
        launched: attempt.map(|attempt| instant(attempt.launched)),
        attempt_ended: attempt.and_then(|attempt| attempt.ended).map(instant),
        verdict: attempt.and_then(|attempt| attempt.verdict.as_ref()).map(tag),
        exit_code: if let Some(Exit::Code(code)) = exit { Some(*code) } else { None },
        signal: if let Some(Exit::Signal(signal)) = exit { Some(*signal) } else { None },
        peak_mib: spaced(attempt.into_iter().flat_map(|attempt| &attempt.peaks).map(|MiB(peak)| peak)),
        smact: utilisation[Metric::Smact],
        smocc: utilisation[Metric::Smocc],
        drama: utilisation[Metric::Drama],
        utilisation: utilisation[Metric::Utilisation],
        joules: attempt.and_then(|attempt| attempt.energy).map(|energy| energy.0),
        gpu_seconds: attempt.and_then(gpu_seconds),
        command: command(&job.request.command),
        parameters: spaced(
            job.request.array.iter().flat_map(|element| &element.parameters).map(|(name, value)| format!("{name}={}", quoted(value))),
        ),
    }
}

fn command(command: &JobCommand) -> String {
    let (begin, words) = match command {
        JobCommand::Program(words) => (None, words),
        JobCommand::Script { arguments, .. } => (Some("script".to_owned()), arguments),
    };
    spaced(begin.into_iter().chain(words.iter().map(|word| quoted(word))))
}

/// Unset while it runs.
fn gpu_seconds(attempt: &AttemptDetail) -> Option<f64> {
    Some(span(attempt.launched, attempt.ended?) * attempt.placement.devices.len() as f64)
}

/// The API's name of a variant, without its fields.
fn tag(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        Ok(Value::Object(fields)) => fields.into_iter().map(|(word, _)| word).collect(),
        _ => String::new(),
    }
}

fn spaced(values: impl Iterator<Item: ToString>) -> String {
    values.map(|value| value.to_string()).collect::<Vec<_>>().join(" ")
}

fn instant(UnixMillis(at): UnixMillis) -> String {
    i64::try_from(at).ok().and_then(|at| Timestamp::from_millisecond(at).ok()).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::super::show::sample;
    use super::*;

    #[test]
    fn the_environment_of_a_job_is_written_only_on_request() {
        let mut job = sample();
        job.request.environment.insert("HF_TOKEN".to_owned(), "secret".to_owned());
        assert!(!in_json(job.clone(), false).unwrap().contains("HF_TOKEN"));
        assert!(in_json(job, true).unwrap().contains("secret"));
    }

    #[test]
    fn every_attempt_is_a_row_and_a_job_without_one_too() {
        let tried = sample();
        let never = JobDetail { attempts: Vec::new(), ..sample() };
        let mut table = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
        table.write_record(COLUMNS).unwrap();
        rows(&tried).chain(rows(&never)).for_each(|row| table.serialize(row).unwrap());
        insta::assert_snapshot!("export", String::from_utf8(table.into_inner().unwrap()).unwrap());
    }
}
