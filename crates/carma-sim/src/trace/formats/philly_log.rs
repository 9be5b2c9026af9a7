//! Philly's job log: a JSON array of jobs with their attempts. Read job by job: the whole log need not fit in memory.

use std::fmt;
use std::io::{BufRead, BufReader};

use carma_core::Seconds;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::super::draft::{Draft, time_between};
use super::super::{Skip, TraceJob, TraceProblem};
use super::{Format, Kind};

/// Philly's log.
pub(super) const FORMAT: Format = Format { name: "Philly", kind: Kind::Json(|reader, draft| read(reader, draft)) };

#[derive(Deserialize)]
struct Job {
    jobid: String,
    #[serde(default)]
    vc: Option<String>,
    #[serde(default)]
    user: Option<String>,
    submitted_time: Option<String>,
    #[serde(default)]
    attempts: Vec<Attempt>,
}

#[derive(Deserialize)]
struct Attempt {
    #[serde(default)]
    start_time: Option<String>,
    #[serde(default)]
    end_time: Option<String>,
    #[serde(default)]
    detail: Vec<Server>,
}

#[derive(Deserialize)]
struct Server {
    /// Only the number matters; the names are dropped.
    #[serde(default)]
    gpus: Vec<IgnoredAny>,
}

/// Reads all jobs; an error has a line number.
fn read(reader: impl BufRead, draft: &mut Draft<'_>) -> Result<(), (Option<u64>, TraceProblem)> {
    let mut log = Log { draft, problem: None };
    // JSON is read byte by byte, which is fast only from a buffer of a concrete type.
    let mut deserializer = serde_json::Deserializer::from_reader(BufReader::new(reader));
    let read = (&mut log).deserialize(&mut deserializer).and_then(|()| deserializer.end());
    read.map_err(|error| {
        let line = Some(error.line() as u64).filter(|line| *line > 0);
        (line, log.problem.take().unwrap_or_else(|| problem(error)))
    })
}

fn problem(error: serde_json::Error) -> TraceProblem {
    if error.is_io() {
        return std::io::Error::from(error).into();
    }
    let text = error.to_string();
    // The error already has the line.
    TraceProblem::Json(text.rsplit_once(" at line ").map_or(text.as_str(), |(problem, _)| problem).to_owned())
}

/// Collects the jobs and keeps the problem of an invalid one, since the reader's own error can only be text.
struct Log<'a, 'b> {
    draft: &'a mut Draft<'b>,
    problem: Option<TraceProblem>,
}

impl<'de> DeserializeSeed<'de> for &mut Log<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for &mut Log<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of jobs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut jobs: A) -> Result<(), A::Error> {
        while let Some(job) = jobs.next_element::<Job>()? {
            if let Err(problem) = take(job, self.draft) {
                self.problem = Some(problem);
                return Err(A::Error::custom("wrong job"));
            }
        }
        Ok(())
    }
}

/// Converts an entry to a job: its time is the sum over attempts, its GPUs are those of the last attempt that had any.
fn take(job: Job, draft: &mut Draft<'_>) -> Result<(), TraceProblem> {
    let mut time = Seconds::ZERO;
    let mut unfinished = false;
    for attempt in &job.attempts {
        let start = moment(draft, "start_time", attempt.start_time.as_deref())?;
        let end = moment(draft, "end_time", attempt.end_time.as_deref())?;
        match time_between(start, end)? {
            Ok(more) => time = time + more,
            Err(why) => unfinished |= why == Skip::Unfinished,
        }
    }
    let count = |attempt: &Attempt| attempt.detail.iter().map(|server| server.gpus.len()).sum::<usize>();
    let gpus = job.attempts.iter().rev().map(count).find(|gpus| *gpus > 0).unwrap_or(0) as u32;
    if time == Seconds::ZERO {
        draft.skip(if unfinished { Skip::Unfinished } else { Skip::NeverRan });
        return Ok(());
    }
    let submitted = moment(draft, "submitted_time", job.submitted_time.as_deref())?;
    let submitted = submitted.ok_or_else(|| TraceProblem::Missing("submitted_time".to_owned()))?;
    let owner = job.user.or(job.vc);
    draft.add_run(TraceJob { name: job.jobid, submitted, gpus, workload: None, duration: None, owner }, Ok(time))
}

/// The log writes unknown values as null or as "None".
fn moment(draft: &mut Draft<'_>, what: &str, text: Option<&str>) -> Result<Option<Seconds>, TraceProblem> {
    text.filter(|text| !matches!(*text, "None" | "")).map(|text| draft.moment(what, text)).transpose()
}
