//! Axes and legends.

use super::scale::Scale;
use super::svg::{Anchor, Chart};

/// Gridlines from `top` to `bottom` with their values below; a title under them where there is one.
pub fn across(chart: &mut Chart, scale: &Scale, (top, bottom): (f64, f64), title: &str) {
    for tick in scale.ticks_across() {
        let x = scale.place(tick);
        chart.line("grid", (x, top), (x, bottom));
        chart.text("small quiet", Anchor::Middle, (x, bottom + 15.0), &scale.label(tick));
    }
    chart.line("axis", (scale.start, bottom), (scale.end, bottom));
    if !title.is_empty() {
        chart.text("quiet", Anchor::Middle, (f64::midpoint(scale.start, scale.end), bottom + 34.0), title);
    }
}

/// Gridlines from `left` to `right` with their values beside them; a title above where there is one.
pub fn up(chart: &mut Chart, scale: &Scale, (left, right): (f64, f64), title: &str) {
    for tick in scale.ticks_up() {
        let y = scale.place(tick);
        chart.line("grid", (left, y), (right, y));
        chart.text("small quiet", Anchor::End, (left - 6.0, y + 4.0), &scale.label(tick));
    }
    if !title.is_empty() {
        chart.text("strong", Anchor::Start, (left, scale.end - 8.0), title);
    }
}

/// Names with their colours from a place on, in lines no longer than `width`. Answers with the height it took.
pub fn legend<'a>(chart: &mut Chart, (left, top): (f64, f64), width: f64, entries: impl Iterator<Item = (&'a str, &'a str)>) -> f64 {
    const LINE: f64 = 18.0;
    const LONGEST: usize = 36;
    let (mut x, mut y) = (left, top);
    for (name, class) in entries {
        let needed = name.chars().count().min(LONGEST) as f64 * 7.0 + 42.0;
        if x > left && x + needed > left + width {
            (x, y) = (left, y + LINE);
        }
        chart.line(&format!("line {class}"), (x, y + 8.0), (x + 20.0, y + 8.0));
        chart.cut_text("", Anchor::Start, (x + 26.0, y + 12.0), name, LONGEST);
        x += needed;
    }
    y + LINE - top
}
