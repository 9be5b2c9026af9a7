//! Distribution of completion times: one curve per contender.

use std::fmt::Write;

use crate::compare::Comparison;
use crate::simulation::JobRecord;
use carma_core::percentile;
use carma_format::draw::{Chart, Colours, Scale, Unit, across, coordinate, legend, up};

const WIDTH: f64 = 640.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 600.0;
const HEIGHT: f64 = 250.0;
/// Steps of a curve; more are not distinguishable.
const STEPS: usize = 400;
/// Ratio of the longest time to the median from which a linear axis has most jobs at its left edge.
const SKEWED: f64 = 12.0;

/// Share of jobs that ended within a time. Jobs that never ended keep a curve below 100 %.
pub(super) fn completion_times(comparison: &Comparison, colours: &Colours) -> Chart {
    let mut chart = Chart::new("jct-cdf", "Share of jobs completed within a time of their submission, for each policy", WIDTH);
    let times: Vec<(&str, usize, Vec<f64>)> = comparison
        .contenders
        .iter()
        .map(|contender| {
            let mut times: Vec<f64> = contender.example.jobs.iter().filter_map(JobRecord::completion).collect();
            times.sort_unstable_by(f64::total_cmp);
            (contender.name.as_str(), contender.example.jobs.len(), times)
        })
        .collect();
    let top = legend(&mut chart, (LEFT, 6.0), RIGHT - LEFT, times.iter().map(|(name, ..)| (*name, colours.class(name)))) + 34.0;
    let bottom = top + HEIGHT;
    let longest = times.iter().filter_map(|(.., times)| times.last().copied()).fold(0.0, f64::max);
    let shortest = times.iter().filter_map(|(.., times)| times.first().copied()).fold(f64::INFINITY, f64::min);
    let median = times.iter().map(|(.., times)| percentile(times, 0.5)).fold(0.0, f64::max);
    let across_scale = if median > 0.0 && longest / median > SKEWED {
        Scale::logarithmic((shortest.max(1.0), longest), (LEFT, RIGHT), Unit::Time)
    } else {
        Scale::linear((0.0, longest), (LEFT, RIGHT), Unit::Time)
    };
    let up_scale = Scale::linear((0.0, 100.0), (bottom, top), Unit::Number);
    across(&mut chart, &across_scale, (top, bottom), "time from submission to end");
    up(&mut chart, &up_scale, (LEFT, RIGHT), "% of jobs");
    for (name, jobs, times) in &times {
        chart.path(&format!("line {}", colours.class(name)), &steps(times, *jobs, &across_scale, &up_scale));
    }
    chart.height = bottom + 44.0;
    chart
}

fn steps(times: &[f64], jobs: usize, across: &Scale, up: &Scale) -> String {
    let mut path = format!("M{} {}", coordinate(across.start), coordinate(up.start));
    let every = times.len().div_ceil(STEPS).max(1);
    for (done, time) in (1..).zip(times) {
        if done % every == 0 || done == times.len() {
            let share = 100.0 * done as f64 / jobs.max(1) as f64;
            let _ = write!(path, "H{}V{}", coordinate(across.place(*time)), coordinate(up.place(share)));
        }
    }
    let _ = write!(path, "H{}", coordinate(across.end));
    path
}
