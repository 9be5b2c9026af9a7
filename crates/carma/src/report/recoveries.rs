//! Jobs that ran out of memory: their estimates, their losses, and their outcomes.

use carma_core::{MiB, Outcome};
use carma_format::draw::Element;
use carma_manager::api::JobDetail;

use super::data::{ReportData, out_of_memory};
use super::parts::{Column, note, or_dash, paragraph, section, table};
use crate::manager::identity;
use carma_format::{count, duration, memory};

/// More rows are not read.
const MOST_ROWS: usize = 20;

pub(super) fn recoveries(data: &ReportData) -> Element {
    let page = section("memory", "Out of memory");
    let met: Vec<&JobDetail> = data.jobs.iter().filter(|job| job.attempts.iter().any(out_of_memory)).collect();
    if met.is_empty() {
        return page.child(&paragraph("No job ran out of GPU memory."));
    }
    let lost =
        |job: &JobDetail| -> f64 { job.attempts.iter().filter(|attempt| out_of_memory(attempt)).map(|attempt| data.ran(attempt)).sum() };
    let attempts = met.iter().map(|job| job.attempts.iter().filter(|attempt| out_of_memory(attempt)).count()).sum();
    let recovered = met.iter().filter(|job| job.outcome().is_some_and(Outcome::succeeded)).count();
    let gpu_hours = data.gpu_hours(met.iter().flat_map(|job| &job.attempts).filter(|attempt| out_of_memory(attempt)));
    let text = format!(
        "{} of {} ran out of GPU memory; {} succeeded after all. Their work until then was lost: {} of run time, {gpu_hours:.2} GPU hours.",
        count(attempts, "attempt"),
        count(met.len(), "job"),
        recovered,
        duration(met.iter().map(|job| lost(job)).sum())
    );
    let row = |job: &&JobDetail| {
        let peak = job.attempts.iter().flat_map(|attempt| &attempt.peaks).max().copied().filter(|peak| *peak > MiB::ZERO);
        let reserved = job.attempts.first().and_then(|first| first.placement.devices.iter().map(|granted| granted.reserved).max());
        [
            identity(job.id, job.array),
            job.request.name.clone().unwrap_or_default(),
            job.owner.name.clone(),
            or_dash(job.estimate.expected.or(job.estimate.declared).map(memory)),
            job.estimate.source.clone().unwrap_or_else(|| "none".to_owned()),
            or_dash(reserved.map(memory)),
            or_dash(peak.map(memory)),
            duration(lost(job)),
            job.outcome.clone().unwrap_or_else(|| job.phase.to_string()),
        ]
    };
    let columns = [
        Column::Number("Job"),
        Column::Text("Name"),
        Column::Text("User"),
        Column::Number("Expected"),
        Column::Text("Source"),
        Column::Number("Reserved at first"),
        Column::Number("Peak"),
        Column::Number("Lost"),
        Column::Text("Outcome"),
    ];
    let mut latest = met.clone();
    latest.reverse();
    let page = page.child(&paragraph(&text)).child(&table(
        "Jobs that ran out of memory, the latest first",
        columns,
        latest.iter().take(MOST_ROWS).map(row),
    ));
    match met.len().saturating_sub(MOST_ROWS) {
        0 => page,
        more => page.child(&note(&format!("And {more} more."))),
    }
}
