//! `carma wait`: waits until jobs have ended.

use std::io::Write;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use carma_core::{JobId, Outcome, Seconds};
use carma_manager::api::{JobDetail, WaitQuery};
use carma_manager::client::{Client, ClientError};
use carma_manager::submission::time_limit;
use clap::Args;

use super::common::{AnswerArguments, JOB_NAMES, resolve, write_json};
use carma_format::printable;

/// Longest tolerated absence of a manager; a wait survives its restart.
const RESTART_TIMEOUT: Duration = Duration::from_secs(60);
/// Duration of one long poll.
const LONG_POLL: Duration = Duration::from_secs(30);
/// The exit code of `timeout`.
const TIMED_OUT: u8 = 124;

#[derive(Debug, Args)]
#[command(after_help = format!("{JOB_NAMES} The number of an array means all its jobs.\n\n\
Exit codes: 0 if all jobs succeeded; the exit code of the job if one failed; 1 if \
several failed or one ended otherwise; 124 after the timeout.\n\n\
Example:\n  carma wait last && carma logs last"))]
pub(crate) struct Arguments {
    /// The jobs.
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
    /// Maximum time to wait: minutes, or 90s, 12h, 1:30:00.
    #[arg(short, long, value_name = "TIME", value_parser = timeout)]
    timeout: Option<Seconds>,
    /// Do not print how the jobs ended.
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    #[command(flatten)]
    answer: AnswerArguments,
}

pub(super) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<ExitCode> {
    let client = &mut arguments.answer.manager.connect()?;
    let mut jobs = Vec::new();
    for name in &arguments.jobs {
        jobs.extend(resolve(client, name)?);
    }
    let until = arguments.timeout.map(|timeout| Instant::now() + Duration::from_secs_f64(timeout.get()));
    let mut finished = Vec::new();
    for end in (JobEnds { client, jobs: jobs.into_iter(), until }) {
        let Some(job) = end? else {
            eprintln!("carma: timeout: not all jobs have ended");
            return Ok(ExitCode::from(TIMED_OUT));
        };
        if !arguments.quiet && !arguments.answer.json {
            writeln!(output, "{}", end_text(&job))?;
            output.flush()?;
        }
        finished.push(job);
    }
    if arguments.answer.json {
        write_json(&finished, output)?;
    }
    Ok(exit_code(finished.iter().filter_map(JobDetail::outcome)))
}

/// How a job ended, for people.
pub(crate) fn end_text(job: &JobDetail) -> String {
    let declaration = job.declaration.as_ref().map_or_else(String::new, |text| format!(" ({text})"));
    printable(&format!("{}: {}{declaration}", job.label(), job.state))
}

fn timeout(text: &str) -> Result<Seconds, String> {
    time_limit(text).map_err(|problem| problem.to_string())?.ok_or_else(|| "omit it to wait without a limit".to_owned())
}

/// Finished jobs, one after the other; none for a job that still runs or waits at the timeout.
pub(crate) struct JobEnds<'a, Jobs> {
    pub(crate) client: &'a mut Client,
    pub(crate) jobs: Jobs,
    pub(crate) until: Option<Instant>,
}

impl<Jobs: Iterator<Item = JobId>> Iterator for JobEnds<'_, Jobs> {
    type Item = Result<Option<JobDetail>, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        let job = self.jobs.next()?;
        Some(self.wait_for(job))
    }
}

impl<Jobs> JobEnds<'_, Jobs> {
    fn wait_for(&mut self, job: JobId) -> Result<Option<JobDetail>, ClientError> {
        let mut last_answer = Instant::now();
        loop {
            let left = self.until.map_or(LONG_POLL, |until| until.saturating_duration_since(Instant::now()).min(LONG_POLL));
            match self.client.wait(job, WaitQuery { seconds: Some(left.as_secs_f64().ceil() as u32) }) {
                Ok(detail) if detail.outcome().is_some() => return Ok(Some(detail)),
                Ok(_) => last_answer = Instant::now(),
                Err(error) if !error.is_absence() || last_answer.elapsed() > RESTART_TIMEOUT => return Err(error),
                Err(_) => thread::sleep(Duration::from_millis(250)),
            }
            if self.until.is_some_and(|until| until <= Instant::now()) {
                return Ok(None);
            }
        }
    }
}

/// The exit code after jobs with these outcomes.
pub(crate) fn exit_code<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> ExitCode {
    ExitCode::from(code(outcomes))
}

fn code<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> u8 {
    let mut failures = outcomes.filter(|outcome| !outcome.succeeded());
    match (failures.next(), failures.next()) {
        (None, _) => 0,
        (Some(Outcome::Failed { code }), None) => u8::try_from(*code).unwrap_or(1).max(1),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_has_its_code_and_several_have_one() {
        let [fine, three, signal, odd] =
            [Outcome::Succeeded, Outcome::Failed { code: 3 }, Outcome::Failed { code: 137 }, Outcome::Failed { code: -1 }];
        let of = |outcomes: &[&Outcome]| code(outcomes.iter().copied());
        assert_eq!([of(&[]), of(&[&fine]), of(&[&fine, &three]), of(&[&three, &three])], [0, 0, 3, 1]);
        assert_eq!([of(&[&signal]), of(&[&odd]), of(&[&Outcome::Cancelled])], [137, 1, 1]);
    }
}
