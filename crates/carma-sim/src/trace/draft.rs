//! A trace under construction.

use std::collections::BTreeMap;

use carma_core::Seconds;

use super::error::shortened;
use super::timestamp::seconds_since_1970;
use super::{ReadLimits, Skip, Trace, TraceJob, TraceProblem};
use crate::catalogue::{Catalogue, WorkloadId};

/// Collects the jobs that a format reads.
pub(super) struct Draft<'a> {
    catalogue: &'a Catalogue,
    limit: usize,
    jobs: Vec<TraceJob>,
    skipped: BTreeMap<Skip, u64>,
    /// Whether times are dates. Dates count from the first submission, plain seconds from their own zero.
    dated: Option<bool>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(catalogue: &'a Catalogue, limits: &ReadLimits) -> Self {
        Self { catalogue, limit: limits.jobs, jobs: Vec::new(), skipped: BTreeMap::new(), dated: None }
    }

    pub(super) const fn catalogue(&self) -> &'a Catalogue {
        self.catalogue
    }

    /// A name for a job that has none: its index.
    pub(super) fn next_name(&self) -> String {
        (self.jobs.len() + 1).to_string()
    }

    pub(super) fn add(&mut self, job: TraceJob) -> Result<(), TraceProblem> {
        if self.jobs.len() == self.limit {
            return Err(TraceProblem::TooManyJobs(self.limit));
        }
        self.jobs.push(job);
        Ok(())
    }

    /// Adds a job of a log with its run time, or counts why it is skipped.
    pub(super) fn add_run(&mut self, job: TraceJob, ran: Result<Seconds, Skip>) -> Result<(), TraceProblem> {
        match ran {
            _ if job.gpus == 0 => self.skip(Skip::NoGpu),
            Err(why) => self.skip(why),
            Ok(Seconds::ZERO) => self.skip(Skip::NeverRan),
            Ok(time) => self.add(TraceJob { duration: Some(time), ..job })?,
        }
        Ok(())
    }

    pub(super) fn skip(&mut self, why: Skip) {
        *self.skipped.entry(why).or_default() += 1;
    }

    /// The workload with this name.
    pub(super) fn workload(&self, name: &str) -> Result<WorkloadId, TraceProblem> {
        self.catalogue.find(name).ok_or_else(|| TraceProblem::UnknownWorkload {
            name: shortened(name),
            nearest: self.catalogue.nearest(name).map(str::to_owned),
        })
    }

    /// The time of a submission: a date, or seconds; one trace cannot mix both.
    pub(super) fn moment(&mut self, what: &str, text: &str) -> Result<Seconds, TraceProblem> {
        let invalid = |expected| TraceProblem::invalid(what, text, expected);
        let (moment, dated) = if let Some(seconds) = seconds_since_1970(text) {
            (Seconds::from_secs(seconds), true)
        } else if text.parse::<f64>().is_ok() {
            (seconds(what, text)?, false)
        } else {
            return Err(invalid("a number of seconds or a date such as 2017-10-09 07:01:55"));
        };
        match (*self.dated.get_or_insert(dated), dated) {
            (true, false) => Err(invalid("a date, as the lines before have")),
            (false, true) => Err(invalid("a number of seconds, as the lines before have")),
            _ => Ok(moment),
        }
    }

    /// The trace, in order of submission.
    pub(super) fn finish(mut self) -> Result<Trace, TraceProblem> {
        if self.jobs.is_empty() {
            return Err(TraceProblem::Empty(self.skipped.values().sum()));
        }
        // Stable: jobs submitted at the same time stay in the order of the file.
        self.jobs.sort_by_key(|job| job.submitted);
        if self.dated == Some(true) {
            let first = self.jobs[0].submitted;
            for job in &mut self.jobs {
                job.submitted = difference(job.submitted, first);
            }
        }
        Ok(Trace { jobs: self.jobs, skipped: self.skipped })
    }
}

/// Run time of a job from its log, or why it is not known.
pub(super) fn time_between(start: Option<Seconds>, end: Option<Seconds>) -> Result<Result<Seconds, Skip>, TraceProblem> {
    match (start, end) {
        (None, _) => Ok(Err(Skip::NeverRan)),
        (Some(_), None) => Ok(Err(Skip::Unfinished)),
        (Some(start), Some(end)) if end < start => Err(TraceProblem::EndsBeforeStart),
        (Some(start), Some(end)) => Ok(Ok(difference(end, start))),
    }
}

/// Seconds from `earlier` to `later`; zero if negative.
pub(super) fn difference(later: Seconds, earlier: Seconds) -> Seconds {
    Seconds::new((later.get() - earlier.get()).max(0.0)).unwrap_or_default()
}

/// A duration in plain seconds.
pub(super) fn seconds(what: &str, text: &str) -> Result<Seconds, TraceProblem> {
    let number: f64 = text.parse().map_err(|_| TraceProblem::invalid(what, text, "a number of seconds"))?;
    Seconds::new(number).map_err(|_| TraceProblem::invalid(what, text, "a number of seconds from 0 to 9e12"))
}

/// A whole number. Tables written by data tools contain 1.0 for 1.
pub(super) fn count(what: &str, text: &str) -> Result<u32, TraceProblem> {
    let whole = text.strip_suffix(".0").unwrap_or(text);
    whole.parse().map_err(|_| TraceProblem::invalid(what, text, "a whole number from 0 to 4294967295"))
}
