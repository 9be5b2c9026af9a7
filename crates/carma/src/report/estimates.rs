//! Errors of the memory estimates of jobs.

use carma_core::{MiB, Verdict};
use carma_format::draw::Element;
use carma_manager::api::JobDetail;

use crate::estimator::learn;

use super::data::{ReportData, Spread, grouped};
use super::parts::{Column, classes, figure, note, or_dash, paragraph, percent, section, table};
use carma_format::count;

const BOUNDS: [f64; 8] = [-0.5, -0.25, -0.1, 0.0, 0.1, 0.25, 0.5, 1.0];
const NAMES: [&str; 9] = ["half or less", "to −25 %", "to −10 %", "to 0", "to +10 %", "to +25 %", "to +50 %", "to twice", "more"];

/// A job with an estimate and a measurement.
struct ComparedJob<'a> {
    source: &'a str,
    /// Excess over the estimate, as a share of it.
    error: f64,
    /// It stayed under its bound, if it had one.
    within: Option<bool>,
    /// The unused share of the bound.
    left: Option<f64>,
}

pub(super) fn estimates(data: &ReportData) -> Element {
    let page = section("estimates", "Estimates of memory");
    let jobs: Vec<ComparedJob<'_>> = data.jobs.iter().filter_map(compared).collect();
    if jobs.is_empty() {
        return page.child(&paragraph("No successful job has both an estimate and a measured peak."));
    }
    let errors = Spread::of(jobs.iter().map(|job| job.error));
    let counted: Vec<(String, f64)> =
        NAMES.iter().zip(errors.classes(&BOUNDS)).map(|(name, jobs)| ((*name).to_owned(), jobs as f64)).collect();
    let label = "Jobs by the difference of measured and expected memory";
    let chart = classes("errors", label, "Jobs by the error of their estimate", &counted, |jobs| count(jobs as usize, "job"));
    let rows = grouped(jobs.iter(), |job| job.source).into_iter().map(|(source, jobs)| {
        let errors = Spread::of(jobs.iter().map(|job| job.error));
        let sizes = Spread::of(jobs.iter().map(|job| job.error.abs()));
        let bounded: Vec<bool> = jobs.iter().filter_map(|job| job.within).collect();
        let within = bounded.iter().filter(|within| **within).count() as f64 / bounded.len().max(1) as f64;
        let left = Spread::of(jobs.iter().filter_map(|job| job.left));
        [
            source.to_owned(),
            jobs.len().to_string(),
            signed(errors.share(0.5)),
            percent(sizes.share(0.5)),
            percent(sizes.share(0.9)),
            or_dash((!bounded.is_empty()).then(|| percent(within))),
            or_dash((left.count() > 0).then(|| percent(left.share(0.5)))),
        ]
    });
    let columns = [
        Column::Text("Source"),
        Column::Number("Jobs"),
        Column::Number("Median error"),
        Column::Number("Median absolute error"),
        Column::Number("90 % below"),
        Column::Number("Within the upper bound"),
        Column::Number("Median margin to the bound"),
    ];
    let page = page.child(&figure(&chart)).child(&table("Errors by source", columns, rows)).child(&note(
        "Jobs that succeeded: the most memory seen on any of their GPUs against what was expected, or declared. An error of +10 % is a job that took a tenth \
         more than was expected.",
    ));
    match calibration(data) {
        Some(learned) => page.child(&learned).child(&note(
            "Corrections that these jobs give to later estimates: MiB added for the CUDA context, a factor of the convolution workspace, and the ratio \
             of measured to corrected memory that 95 % of the jobs do not exceed. carma estimator learn prints the same.",
        )),
        None => page,
    }
}

/// What the measured jobs say about the estimators on each kind of GPU.
fn calibration(data: &ReportData) -> Option<Element> {
    let gpus: Vec<_> = data.gpus.iter().map(|(gpu, _)| gpu.clone()).collect();
    let learned = learn::calibrations(&data.jobs, &gpus);
    let rows: Vec<_> = learned
        .all()
        .map(|(estimator, gpu, found)| {
            [
                estimator.to_owned(),
                gpu.to_owned(),
                found.samples.to_string(),
                format!("{:+.0} MiB", found.context).replace('-', "−"),
                format!("× {:.2}", found.workspace),
                or_dash(found.bound.map(|bound| format!("× {bound:.2}"))),
                percent(found.error_before),
                percent(found.error_after),
            ]
        })
        .collect();
    let columns = [
        Column::Text("Estimator"),
        Column::Text("GPU"),
        Column::Number("Jobs"),
        Column::Number("Context"),
        Column::Number("Workspace"),
        Column::Number("Bound"),
        Column::Number("Median error before"),
        Column::Number("After"),
    ];
    (!rows.is_empty()).then(|| table("Calibration", columns, rows))
}

fn compared(job: &JobDetail) -> Option<ComparedJob<'_>> {
    let ran = job.attempts.iter().rfind(|attempt| attempt.verdict == Some(Verdict::Succeeded))?;
    let peak = ran.peaks.iter().copied().max().filter(|peak| *peak > MiB::ZERO)?;
    let expected = job.estimate.expected.or(job.estimate.declared).filter(|expected| *expected > MiB::ZERO)?;
    let bound = job.estimate.upper.or(job.estimate.declared);
    Some(ComparedJob {
        source: job.estimate.source.as_deref().unwrap_or("declared"),
        error: peak.0 as f64 / expected.0 as f64 - 1.0,
        within: bound.map(|bound| peak <= bound),
        left: bound.filter(|bound| peak <= *bound).map(|bound| 1.0 - peak.0 as f64 / bound.0 as f64),
    })
}

fn signed(share: f64) -> String {
    carma_format::change(share, 0).replace('-', "−")
}
