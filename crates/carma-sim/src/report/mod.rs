//! Comparisons to look at: a page that is one file, or its charts as SVG files.
//!
//! The same input gives the same bytes. Nothing here asks for anything from a network, and all text from outside is escaped.

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
use crate::draw::Chart;
use crate::trace::Trace;

/// More GPUs than this are not drawn one by one.
const MOST_GPUS: usize = 16;
/// Rectangles in one Gantt chart: more cannot be told apart.
const MOST_ATTEMPTS: usize = 2000;
/// Rectangles in all Gantt charts of a page, about 250 bytes each.
const PAGE_ATTEMPTS: usize = 10_000;
/// Points of one line over time, one for every pixel or so.
const MOST_POINTS: usize = 800;
/// Points of all lines over time of a page, about 12 bytes each.
const PAGE_POINTS: usize = 120_000;

/// Charts over time are as wide as the page, and begin and end at the same places so that they can be read below each other.
const WIDTH: f64 = 960.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 912.0;

/// A comparison as one HTML file: no script, no other file, light or dark as the reader likes, and fit for print.
///
/// It has the table, what to bear in mind, bars of the main ratios, the distribution of completion times, for each contender what
/// ran on which GPU and how the GPUs stood, and sweeps where there are any. It stays below some 5 MB: what is left out is said.
pub fn html(comparison: &Comparison) -> String {
    page::page(comparison, &charts::Charts::of(comparison))
}

/// The charts of [`html`] as files that stand alone on a light ground: names and contents.
///
/// These are `bars.svg`, `jct-cdf.svg`, `gantt-<policy>.svg`, `timeline-<policy>.svg` where a timeline was kept, and
/// `sweep-<setting>.svg`.
pub fn svgs(comparison: &Comparison) -> Vec<(String, String)> {
    charts::Charts::of(comparison).iter().map(file).collect()
}

/// Charts of a trace as SVG files: `arrivals.svg`, `durations.svg` where times are known, and `gpu-demand.svg`.
pub fn trace_charts(trace: &Trace, catalogue: &Catalogue) -> Vec<(String, String)> {
    workload::charts(trace, catalogue).iter().map(file).collect()
}

fn file(chart: &Chart) -> (String, String) {
    (format!("{}.svg", chart.name), chart.stand_alone())
}
