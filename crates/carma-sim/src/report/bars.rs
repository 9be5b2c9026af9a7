//! Ratios to exclusive side by side: makespan, mean completion time, energy.

use crate::compare::{Comparison, spread};
use crate::summary::RunSummary;
use carma_format::draw::{Anchor, Chart, Colours, Scale, Unit, across};

const WIDTH: f64 = 960.0;
const NAMES: f64 = 168.0;
const PANEL: f64 = 240.0;
const GAP: f64 = 24.0;
/// Column of the numeric values: to the right of all bars, where no line crosses them.
const FIGURES: f64 = 42.0;
const TOP: f64 = 34.0;
const ROW: f64 = 26.0;

type Measure = (&'static str, fn(&RunSummary) -> f64);

const MEASURES: [Measure; 3] = [
    ("Makespan", |summary| summary.makespan),
    ("Mean job completion time", |summary| summary.mean_jct),
    ("Energy", |summary| summary.energy),
];

/// Three panels with a bar for each contender, and a whisker of one standard deviation of single runs on both sides.
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
        let both = |(mean, deviation): (f64, f64)| (share(mean), if whole > 0.0 { deviation / whole } else { 0.0 });
        let shares: Vec<(f64, f64)> = comparison.contenders.iter().map(|contender| both(spread(&contender.summaries, measure))).collect();
        let most = shares.iter().map(|(mean, deviation)| mean + deviation).fold(1.0, f64::max);
        let scale = Scale::linear((0.0, most * 1.02), (left, left + PANEL - FIGURES), Unit::Number);
        chart.text("strong", Anchor::Start, (left, TOP - 14.0), name);
        across(&mut chart, &scale, (TOP, bottom), "");
        for (row, (contender, (mean, _))) in comparison.contenders.iter().zip(&shares).enumerate() {
            let class = format!("bar {}", colours.class(&contender.name));
            let words = format!("{}: {mean:.3}", contender.name);
            chart.rectangle(&class, (left, middle(row) - 8.0), (scale.place(*mean) - left, 16.0), &words);
        }
        // Drawn over the bars, which would hide it.
        chart.line("mark", (scale.place(1.0), TOP - 4.0), (scale.place(1.0), bottom));
        if place == 0 {
            for (bound, style) in [(comparison.bounds.critical_path, "limit"), (comparison.bounds.work_over_capacity, "limit dotted")] {
                let x = scale.place(share(bound));
                chart.line(style, (x, TOP - 4.0), (x, bottom));
            }
        }
        for (row, (mean, deviation)) in shares.iter().enumerate() {
            figure(&mut chart, &scale, middle(row), (*mean, *deviation));
        }
    }
    let words = "Grey: exclusive = 1. Red: critical path (dashed) and work over capacity (dotted). Whiskers: ± one standard deviation of single runs.";
    chart.text("small quiet", Anchor::Start, (NAMES, bottom + 36.0), words);
    chart.height = bottom + 48.0;
    chart
}

fn middle(row: usize) -> f64 {
    TOP + ROW * (row as f64 + 0.5)
}

/// The whisker of a bar, and its value.
fn figure(chart: &mut Chart, scale: &Scale, y: f64, (mean, deviation): (f64, f64)) {
    let [low, high] = [mean - deviation, mean + deviation].map(|value| scale.place(value));
    // Shorter whiskers are not visible.
    if high - low >= 1.0 {
        chart.line("whisker", (low, y), (high, y));
        chart.line("whisker", (low, y - 4.0), (low, y + 4.0));
        chart.line("whisker", (high, y - 4.0), (high, y + 4.0));
    }
    chart.text("small", Anchor::End, (scale.end + FIGURES - 6.0, y + 4.0), &format!("{mean:.2}"));
}
