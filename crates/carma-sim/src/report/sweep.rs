//! Results for each value of a setting.

use std::fmt::Write;

use crate::compare::{Curve, CurvePoint};
use carma_format::draw::{Chart, Colours, Element, Scale, Unit, across, coordinate, legend, up};
use carma_format::number;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 48.0;
const PANEL: (f64, f64) = (280.0, 170.0);
const GAP: (f64, f64) = (72.0, 84.0);

type Measure = (&'static str, fn(&CurvePoint) -> f64, Unit);

const MEASURES: [Measure; 4] = [
    ("Makespan (exclusive = 1)", |point| point.makespan_ratio, Unit::Number),
    ("Mean job completion time (exclusive = 1)", |point| point.mean_jct_ratio, Unit::Number),
    ("Energy (exclusive = 1)", |point| point.energy_ratio, Unit::Number),
    ("Attempts that ran out of memory", |point| point.oom_attempts, Unit::Count),
];

/// Four panels with a curve for each policy.
pub(super) fn sweep(setting: &str, slug: &str, curves: &[&Curve], colours: &Colours) -> Chart {
    let mut chart = Chart::new(&format!("sweep-{slug}"), &format!("What comes of each value of {setting}"), WIDTH);
    let entries = curves.iter().map(|curve| (curve.policy.as_str(), colours.class(&curve.policy)));
    let top = legend(&mut chart, (LEFT, 6.0), WIDTH - LEFT, entries) + 34.0;
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let low = points().map(|point| point.value).fold(f64::INFINITY, f64::min);
    let high = points().map(|point| point.value).fold(f64::NEG_INFINITY, f64::max);
    for (place, (title, value, unit)) in MEASURES.into_iter().enumerate() {
        let left = LEFT + (place % 2) as f64 * (PANEL.0 + GAP.0);
        let top = top + (place / 2) as f64 * (PANEL.1 + GAP.1);
        let across_scale = Scale::linear((low, high), (left, left + PANEL.0), Unit::Number);
        let most = points().map(value).fold(if unit == Unit::Count { 3.0 } else { 1.0 }, f64::max);
        let up_scale = Scale::linear((0.0, most * 1.05), (top + PANEL.1, top), unit);
        across(&mut chart, &across_scale, (top, top + PANEL.1), setting);
        up(&mut chart, &up_scale, (left, left + PANEL.0), title);
        for curve in curves {
            draw_curve(&mut chart, curve, value, (&across_scale, &up_scale), colours.class(&curve.policy));
        }
    }
    chart.height = top + 2.0 * PANEL.1 + GAP.1 + 46.0;
    chart
}

fn draw_curve(chart: &mut Chart, curve: &Curve, value: fn(&CurvePoint) -> f64, (across, up): (&Scale, &Scale), class: &str) {
    let mut path = String::new();
    for point in &curve.points {
        let letter = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{letter}{} {}", coordinate(across.place(point.value)), coordinate(up.place(value(point))));
    }
    chart.path(&format!("line {class}"), &path);
    for point in &curve.points {
        let centre = [("cx", across.place(point.value)), ("cy", up.place(value(point))), ("r", 3.0)];
        let words = format!("{}, {} = {}: {}", curve.policy, curve.setting, number(point.value), number(value(point)));
        chart.draw(&Element::of_class("circle", &format!("dot {class}")).at(centre).tooltip(&words));
    }
}
