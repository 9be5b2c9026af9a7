//! Reports of comparisons: one self-contained page, or the charts as SVG files.
//!
//! The same input gives the same bytes. Reports load nothing from the network, and all external text is escaped.

mod bars;
mod charts;
mod distribution;
mod gantt;
mod page;
mod sweep;
mod table;
mod timeline;
mod workload;

use crate::catalogue::Catalogue;
use crate::compare::Comparison;
use crate::trace::Trace;
use carma_format::draw::Chart;

/// Above this number, GPUs are not drawn individually.
const MOST_GPUS: usize = 16;
/// Maximum rectangles in one Gantt chart: more are not distinguishable.
const MOST_ATTEMPTS: usize = 2000;
/// Maximum rectangles in all Gantt charts of a page, about 250 bytes each.
const PAGE_ATTEMPTS: usize = 10_000;
/// Maximum points of one line over time, about one per pixel.
const MOST_POINTS: usize = 800;
/// Maximum points of all lines over time on a page, about 12 bytes each.
const PAGE_POINTS: usize = 120_000;

/// Charts over time are as wide as the page. Their time axes align, so that they can be compared.
const WIDTH: f64 = 960.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 912.0;

/// A comparison as one HTML file: no script, no other files, light or dark by the reader's preference, printable.
///
/// It has the table, caveats, bars of the main ratios, the distribution of completion times, a Gantt chart and a timeline of each
/// contender, and sweeps if there are any. It stays below about 5 MB and states what it omits.
pub fn html(comparison: &Comparison) -> String {
    page::page(comparison, &charts::Charts::of(comparison))
}

/// The charts of [`html`] as standalone files on a light background: names and contents. Each says in its metadata how it was made.
///
/// These are `bars.svg`, `jct-cdf.svg`, `gantt-<policy>.svg`, `timeline-<policy>.svg` if a timeline was recorded, and
/// `sweep-<setting>.svg`.
pub fn svgs(comparison: &Comparison) -> Vec<(String, String)> {
    let origin = comparison.origin.lines().join("; ");
    charts::Charts::of(comparison).iter().map(|chart| file(chart, &origin)).collect()
}

/// Charts of a trace as SVG files: `arrivals.svg`, `durations.svg` if times are known, and `gpu-demand.svg`.
pub fn trace_charts(trace: &Trace, catalogue: &Catalogue) -> Vec<(String, String)> {
    workload::charts(trace, catalogue).iter().map(|chart| file(chart, "")).collect()
}

fn file(chart: &Chart, origin: &str) -> (String, String) {
    (format!("{}.svg", chart.name), chart.with_metadata(origin))
}
