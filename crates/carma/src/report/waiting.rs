//! How long jobs waited until they first started.

use carma_format::draw::Element;

use super::data::{ReportData, Spread, grouped, waited};
use super::parts::{Column, classes, figure, note, paragraph, percent, section, table};
use carma_format::{count, duration};

const BOUNDS: [f64; 7] = [10.0, 60.0, 600.0, 3600.0, 4.0 * 3600.0, 12.0 * 3600.0, 86_400.0];
const NAMES: [&str; 8] = ["< 10 s", "< 1 min", "< 10 min", "< 1 h", "< 4 h", "< 12 h", "< 1 d", "longer"];

pub(super) fn waiting(data: &ReportData) -> Element {
    let page = section("waiting", "Waiting");
    let waits = Spread::of(data.jobs.iter().filter_map(waited));
    if waits.count() == 0 {
        return page.child(&paragraph("No job started in this period."));
    }
    let counted: Vec<(String, f64)> =
        NAMES.iter().zip(waits.classes(&BOUNDS)).map(|(name, jobs)| ((*name).to_owned(), jobs as f64)).collect();
    let label = "Jobs by their wait before the first start";
    let chart = classes("waits", label, "Jobs, by their wait", &counted, |jobs| count(jobs as usize, "job"));
    let rows = grouped(data.jobs.iter(), |job| &job.owner.name).into_iter().map(|(user, jobs)| {
        let waits = Spread::of(jobs.iter().filter_map(|job| waited(job)));
        let started = waits.count();
        let at_once = jobs.iter().filter_map(|job| waited(job)).filter(|wait| *wait < BOUNDS[0]).count();
        let shown = |value: f64| if started == 0 { "–".to_owned() } else { duration(value) };
        [
            user.to_owned(),
            jobs.len().to_string(),
            started.to_string(),
            if started == 0 { "–".to_owned() } else { percent(at_once as f64 / started as f64) },
            shown(waits.share(0.5)),
            shown(waits.mean()),
            shown(waits.share(0.95)),
            shown(waits.most()),
        ]
    });
    let columns = [
        Column::Text("User"),
        Column::Number("Jobs"),
        Column::Number("Started"),
        Column::Number("within 10 s"),
        Column::Number("Median wait"),
        Column::Number("Mean"),
        Column::Number("95th percentile"),
        Column::Number("Longest"),
    ];
    page.child(&figure(&chart))
        .child(&note("Time from submission to the first start. It includes the time in which jobs were held or waited for dependencies."))
        .child(&table("Waits by user", columns, rows))
}
