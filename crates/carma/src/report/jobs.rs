//! The most expensive jobs, and the unsuccessful ones.

use carma_core::Outcome;
use carma_format::draw::Element;
use carma_manager::api::JobDetail;

use super::data::{ReportData, grouped};
use super::parts::{Column, or_dash, paragraph, percent, section, table};
use crate::manager::{identity, names};
use carma_format::{duration, energy};

/// Limit of listed jobs.
const MOST: usize = 10;

pub(super) fn largest(data: &ReportData) -> Element {
    let page = section("largest", "Largest jobs");
    let mut jobs: Vec<(&JobDetail, f64)> = data.jobs.iter().map(|job| (job, data.gpu_hours(job.attempts.iter()))).collect();
    jobs.retain(|(_, hours)| *hours > 0.0);
    jobs.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let all: f64 = jobs.iter().map(|(_, hours)| hours).sum();
    if jobs.is_empty() {
        return page.child(&paragraph("No job that was submitted in this period had a GPU."));
    }
    let rows = jobs.iter().take(MOST).map(|(job, hours)| {
        [
            identity(job.id, job.array),
            job.request.name.clone().unwrap_or_default(),
            job.owner.name.clone(),
            job.request.resources.gpus.to_string(),
            duration(job.attempts.iter().map(|attempt| data.ran(attempt)).sum()),
            format!("{hours:.1}"),
            percent(hours / all),
            or_dash(job.energy.map(|joules| energy(joules.0))),
            job.outcome().map_or_else(|| job.phase.to_string(), Outcome::brief),
        ]
    });
    let columns = [
        Column::Number("Job"),
        Column::Text("Name"),
        Column::Text("User"),
        Column::Number("GPUs"),
        Column::Number("Ran"),
        Column::Number("GPU hours"),
        Column::Number("of all"),
        Column::Number("Energy"),
        Column::Text("Outcome"),
    ];
    page.child(&table("Jobs with the most GPU time", columns, rows))
}

pub(super) fn failures(data: &ReportData) -> Element {
    let page = section("failures", "Failures");
    let failed = || data.jobs.iter().filter_map(|job| Some((job, job.outcome().filter(|outcome| !outcome.succeeded())?)));
    if failed().next().is_none() {
        return page.child(&paragraph("All finished jobs succeeded."));
    }
    let over = data.jobs.iter().filter(|job| job.outcome().is_some()).count();
    let rows = grouped(failed(), |(_, outcome)| outcome.kind()).into_iter().map(|(reason, jobs)| {
        let latest: Vec<_> = jobs.iter().rev().take(5).map(|(job, _)| job.label()).rev().collect();
        let users = grouped(jobs.iter(), |(job, _)| &job.owner.name);
        let users: Vec<&str> = users.iter().map(|(user, _)| *user).take(4).collect();
        [reason.to_owned(), jobs.len().to_string(), percent(jobs.len() as f64 / over as f64), users.join(", "), names(&latest)]
    });
    let columns = [
        Column::Text("Reason"),
        Column::Number("Jobs"),
        Column::Number("of all finished"),
        Column::Text("Users"),
        Column::Text("Latest jobs"),
    ];
    page.child(&table("Jobs that did not succeed, by reason", columns, rows))
}
