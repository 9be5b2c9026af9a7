//! Ratios to exclusive side by side: makespan, mean completion time, energy.

use super::axis::across;
use super::palette::Colours;
use super::scale::{Scale, Unit};
use super::svg::{Anchor, Chart};
use crate::compare::{Comparison, spread};
use crate::summary::RunSummary;

const WIDTH: f64 = 960.0;
const NAMES: f64 = 168.0;
const PANEL: f64 = 240.0;
const GAP: f64 = 24.0;
const TOP: f64 = 34.0;
const ROW: f64 = 26.0;

type Measure = (&'static str, fn(&RunSummary) -> f64);

const MEASURES: [Measure; 3] = [
    ("Makespan", |summary| summary.makespan),
    ("Mean job completion time", |summary| summary.mean_jct),
    ("Energy", |summary| summary.energy),
];

/// Three panels with a bar for each contender, and a whisker of one standard deviation over seeds on both sides.
pub(super) fn bars(comparison: &Comparison, colours: &Colours) -> Chart {
    let label = "Makespan, mean job completion time and energy of each policy as shares of exclusive's";
    let mut chart = Chart::new("bars", label, WIDTH);
    let bottom = TOP + ROW * comparison.contenders.len() as f64;
    for (row, contender) in comparison.contenders.iter().enumerate() {
        chart.cut_text("", Anchor::End, (NAMES - 8.0, middle(row) + 4.0), &contender.name, 24);
    }
    let whole = comparison.contenders.first().map(|exclusive| exclusive.summaries.as_slice()).unwrap_or_default();
    for (place, (name, measure)) in MEASURES.into_iter().enumerate() {
        let left = NAMES + place as f64 * (PANEL + GAP);
        let whole = spread(whole, measure).0;
        let share = |value: f64| if whole > 0.0 { value / whole } else { 1.0 };
        let shares: Vec<(f64, f64)> = comparison.contenders.iter().map(|contender| spread(&contender.summaries, measure)).collect();
        let shares: Vec<(f64, f64)> =
            shares.into_iter().map(|(mean, deviation)| (share(mean), if whole > 0.0 { deviation / whole } else { 0.0 })).collect();
        let most = shares.iter().map(|(mean, deviation)| mean + deviation).fold(1.0, f64::max);
        // Room for the figures behind the longest bar.
        let scale = Scale::linear((0.0, most * 1.3), (left, left + PANEL), Unit::Number);
        chart.text("strong", Anchor::Start, (left, TOP - 14.0), name);
        across(&mut chart, &scale, (TOP, bottom), "");
        for (row, (contender, (mean, deviation))) in comparison.contenders.iter().zip(&shares).enumerate() {
            bar(&mut chart, &scale, middle(row), (*mean, *deviation), (&contender.name, colours.class(&contender.name)));
        }
        let one = scale.place(1.0);
        chart.line("mark", (one, TOP - 4.0), (one, bottom));
        if place == 0 {
            for bound in [comparison.bounds.critical_path, comparison.bounds.work_over_capacity].map(share) {
                chart.line("limit", (scale.place(bound), TOP - 4.0), (scale.place(bound), bottom));
            }
        }
    }
    let words =
        "Dashed grey: exclusive = 1. Dashed red: critical path, and work over capacity. Whiskers: ± one standard deviation over seeds.";
    chart.text("small quiet", Anchor::Start, (NAMES, bottom + 36.0), words);
    chart.height = bottom + 48.0;
    chart
}

fn middle(row: usize) -> f64 {
    TOP + ROW * (row as f64 + 0.5)
}

fn bar(chart: &mut Chart, scale: &Scale, y: f64, (mean, deviation): (f64, f64), (name, class): (&str, &str)) {
    let (left, end) = (scale.start, scale.place(mean));
    chart.rectangle(&format!("bar {class}"), (left, y - 8.0), (end - left, 16.0), &format!("{name}: {mean:.3} ± {deviation:.3}"));
    let mut behind = end;
    if deviation > 0.0 {
        let [low, high] = [mean - deviation, mean + deviation].map(|value| scale.place(value));
        chart.line("whisker", (low, y), (high, y));
        chart.line("whisker", (low, y - 4.0), (low, y + 4.0));
        chart.line("whisker", (high, y - 4.0), (high, y + 4.0));
        behind = high;
    }
    chart.text("small", Anchor::Start, (behind + 5.0, y + 4.0), &format!("{mean:.2}"));
}
