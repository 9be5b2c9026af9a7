//! The data of a report, from the manager.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use carma_core::{UserId, Verdict};
use carma_core::{mean, percentile};
use carma_manager::api::{
    AttemptDetail, EnergyKind, EnergyQuery, EnergyReport, GpuDetail, HistoryQuery, JobDetail, SampleQuery, Status, WhatIf,
};
use carma_manager::client::Client;
use carma_manager::store::UnixMillis;
use jiff::Timestamp;
use jiff::civil::Date;

use super::period::Period;
use super::samples::GpuSamples;
use crate::manager::span;
use crate::{progress, what_if};

/// Everything a report shows.
#[derive(Debug)]
pub(super) struct ReportData {
    /// The requested time, and the part of it with data.
    pub(super) requested: Period,
    pub(super) period: Period,
    /// Only this user's jobs.
    pub(super) user: Option<String>,
    pub(super) status: Status,
    pub(super) gpus: Vec<(GpuDetail, GpuSamples)>,
    /// By when they were submitted.
    pub(super) jobs: Vec<JobDetail>,
    /// Price and carbon intensity. The energy itself is that of the jobs above, so that all parts of the report cover the same.
    pub(super) energy: EnergyReport,
    /// The same jobs simulated, or why not.
    pub(super) what_if: Result<WhatIf, String>,
    /// The command that makes it again.
    pub(super) command: String,
    /// The manager's settings of decisions now.
    pub(super) settings: String,
}

/// The request.
#[derive(Debug)]
pub(super) struct ReportRequest {
    pub(super) period: Period,
    pub(super) user: Option<UserId>,
    pub(super) command: String,
    pub(super) settings: String,
}

impl ReportData {
    pub(super) fn gather(client: &mut Client, status: Status, request: ReportRequest) -> Result<Self> {
        let ReportRequest { period: requested, user, command, settings } = request;
        let (since, until) = (Some(requested.since), Some(requested.until));
        let query = HistoryQuery { user, since, until, ..HistoryQuery::default() };
        let mut jobs: Vec<JobDetail> = progress::collect_counted("reading jobs", client.export(&query)?)?;
        jobs.sort_by_key(|job| (job.submitted, job.id));
        let gpus = client.gpus()?;
        let bar = progress::bar(gpus.len(), "reading GPUs");
        let mut minutes = Vec::new();
        for gpu in &gpus {
            minutes.push(client.samples(&gpu.device.to_string(), &SampleQuery { since, until })?);
            bar.step();
        }
        drop(bar);
        let seen = minutes.iter().filter_map(|minutes| minutes.first()).map(|first| UnixMillis(first.minute.0 * 60_000));
        let first = jobs.first().map(|job| job.submitted).into_iter().chain(seen).min();
        // A manager that is younger than the requested period leaves no empty half of a chart.
        let period = Period { since: first.map_or(requested.since, |first| first.max(requested.since)), ..requested.clone() };
        let gpus = gpus.into_iter().zip(&minutes).map(|(gpu, minutes)| (gpu, GpuSamples::of(minutes, &period))).collect();
        let energy = client.energy(&EnergyQuery { by: EnergyKind::User, ahead: 0, user, since, until })?;
        let what_if = match user {
            Some(_) => Err("the jobs of one user cannot be simulated without the jobs that shared their GPUs".to_owned()),
            None => what_if::what_if(client, &jobs, &["exclusive".to_owned()]).map_err(|error| format!("{error:#}")),
        };
        let name = |uid: UserId| jobs.first().map_or_else(|| uid.to_string(), |job| job.owner.name.clone());
        Ok(Self { requested, period, user: user.map(name), status, gpus, energy, what_if, command, settings, jobs })
    }

    /// Number of servers with GPUs.
    pub(super) fn servers(&self) -> usize {
        self.gpus.iter().map(|(gpu, _)| gpu.device.server()).collect::<BTreeSet<_>>().len()
    }

    /// The name of a GPU; with its node, if it is not in the manager's host.
    pub(super) fn gpu_name(gpu: &GpuDetail) -> String {
        gpu.node.as_ref().map_or_else(|| gpu.device.to_string(), |node| format!("{} on {node}", gpu.device))
    }

    /// Energy of all attempts.
    pub(super) fn joules(&self) -> f64 {
        self.attempts().filter_map(|(_, attempt)| attempt.energy).map(|energy| energy.0).fold(0.0, std::ops::Add::add)
    }

    /// Attempts with energy by user, and their energy, the most first.
    pub(super) fn users(&self) -> Vec<(&str, f64, Vec<&AttemptDetail>)> {
        let mut users = Vec::new();
        for (name, found) in grouped(self.attempts().filter(|(_, attempt)| attempt.energy.is_some()), |(job, _)| &job.owner.name) {
            let attempts: Vec<&AttemptDetail> = found.into_iter().map(|(_, attempt)| attempt).collect();
            users.push((name, attempts.iter().filter_map(|attempt| attempt.energy).map(|energy| energy.0).sum::<f64>(), attempts));
        }
        users.sort_by(|(_, one, _), (_, other, _)| other.total_cmp(one));
        users
    }

    /// Energy by the day on which attempts ended, or now, in the order of days.
    pub(super) fn days(&self) -> Vec<(String, f64)> {
        let mut days: BTreeMap<Date, f64> = BTreeMap::new();
        for (_, attempt) in self.attempts() {
            let ended = attempt.ended.unwrap_or(self.status.now).0;
            let at = Timestamp::from_millisecond(ended.cast_signed()).unwrap_or_default().to_zoned(self.period.zone.clone());
            if let Some(energy) = attempt.energy {
                *days.entry(at.date()).or_default() += energy.0;
            }
        }
        days.into_iter().map(|(day, joules)| (day.to_string(), joules)).collect()
    }

    /// All attempts, with their jobs.
    pub(super) fn attempts(&self) -> impl Iterator<Item = (&JobDetail, &AttemptDetail)> {
        self.jobs.iter().flat_map(|job| job.attempts.iter().map(move |attempt| (job, attempt)))
    }

    /// Seconds that an attempt has run.
    pub(super) fn ran(&self, attempt: &AttemptDetail) -> f64 {
        span(attempt.launched, attempt.ended.unwrap_or(self.status.now))
    }

    /// Hours that jobs had GPUs, each GPU of each job counted.
    pub(super) fn gpu_hours<'a>(&self, attempts: impl Iterator<Item = &'a AttemptDetail>) -> f64 {
        attempts.map(|attempt| self.ran(attempt) * attempt.placement.devices.len() as f64 / 3600.0).fold(0.0, std::ops::Add::add)
    }
}

/// Seconds that a job waited for its first start; unset if it never started.
pub(super) fn waited(job: &JobDetail) -> Option<f64> {
    job.attempts.first().map(|first| span(job.submitted, first.launched))
}

pub(super) fn out_of_memory(attempt: &AttemptDetail) -> bool {
    attempt.verdict == Some(Verdict::OutOfMemory)
}

/// Sorted values, for quantiles and classes.
#[derive(Debug, Clone)]
pub(super) struct Spread(Vec<f64>);

impl Spread {
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        Self(values)
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn share(&self, share: f64) -> f64 {
        percentile(&self.0, share)
    }

    pub(super) fn mean(&self) -> f64 {
        mean(&self.0)
    }

    pub(super) fn most(&self) -> f64 {
        self.0.last().copied().unwrap_or_default()
    }

    /// Counts per class; upper bounds are exclusive, the last class has none.
    pub(super) fn classes(&self, bounds: &[f64]) -> Vec<usize> {
        let mut counts = vec![0; bounds.len() + 1];
        for value in &self.0 {
            counts[bounds.partition_point(|bound| bound <= value)] += 1;
        }
        counts
    }
}

/// Things by a name of theirs, the most first.
pub(super) fn grouped<'a, T>(things: impl Iterator<Item = T>, name: impl Fn(&T) -> &'a str) -> Vec<(&'a str, Vec<T>)> {
    let mut groups: BTreeMap<&str, Vec<T>> = BTreeMap::new();
    for thing in things {
        groups.entry(name(&thing)).or_default().push(thing);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, things)| std::cmp::Reverse(things.len()));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_classes_by_their_bounds() {
        let spread = Spread::of([5.0, 0.0, 10.0, 99.0].into_iter());
        assert_eq!(spread.classes(&[5.0, 10.0]), [1, 1, 2]);
        assert_eq!((spread.count(), spread.most()), (4, 99.0));
        assert_eq!(Spread::of([].into_iter()).classes(&[1.0]), [0, 0]);
    }

    #[test]
    fn the_largest_group_comes_first() {
        assert_eq!(grouped(["a", "b", "b"].into_iter(), |name| name), [("b", vec!["b", "b"]), ("a", vec!["a"])]);
    }
}
