//! Predicted against measured memory.

use carma_format::draw::{Anchor, Chart, Scale, Unit};

/// Points of measured and predicted memory in MiB, on logarithmic axes. On the diagonal they agree; below it the prediction is too low.
pub fn scatter(points: &[(f64, f64)], title: &str) -> String {
    const SIZE: f64 = 480.0;
    const EDGE: f64 = 60.0;
    let mut chart = Chart::new("scatter", title, SIZE + 20.0);
    chart.height = SIZE;
    chart.text("strong", Anchor::Middle, (chart.width / 2.0, 20.0), title);
    let shown = || {
        points.iter().filter(|(measured, predicted)| *measured > 0.0 && *predicted > 0.0 && measured.is_finite() && predicted.is_finite())
    };
    let (low, high) = shown().fold((f64::MAX, 1.0_f64), |(low, high), (x, y)| (low.min(*x).min(*y), high.max(*x).max(*y)));
    let low = if low < high { low } else { high / 2.0 };
    let across = Scale::logarithmic((low, high), (EDGE, SIZE - EDGE), Unit::Number);
    let up = Scale::logarithmic((low, high), (SIZE - EDGE, EDGE), Unit::Number);
    let at = |x: f64, y: f64| (across.place(x), up.place(y));
    chart.line("axis", at(low, low), at(high, low));
    chart.line("axis", at(low, low), at(low, high));
    chart.line("limit", at(low, low), at(high, high));
    // Powers of two, as memory sizes are.
    let mut tick = 2.0_f64.powf(low.log2().ceil());
    while tick <= high {
        let label = if tick >= 1024.0 { format!("{} GB", tick / 1024.0) } else { format!("{tick} MB") };
        let ((x, bottom), (left, y)) = (at(tick, low), at(low, tick));
        chart.line("axis", (x, bottom), (x, bottom + 4.0));
        chart.text("small", Anchor::Middle, (x, bottom + 18.0), &label);
        chart.line("axis", (left - 4.0, y), (left, y));
        chart.text("small", Anchor::End, (left - 6.0, y + 4.0), &label);
        tick *= 2.0;
    }
    chart.text("quiet", Anchor::Middle, (SIZE / 2.0, SIZE - 16.0), "measured");
    chart.text("quiet", Anchor::Middle, (EDGE, EDGE - 22.0), "predicted");
    for (measured, predicted) in shown() {
        chart.dot("s1", at(*measured, *predicted));
    }
    chart.stand_alone()
}
