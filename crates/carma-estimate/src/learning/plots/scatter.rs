//! Predicted against measured memory.

use super::svg::{Anchor, COLOURS, Picture};

/// Points of measured and predicted memory in MiB, on logarithmic axes; on the line they agree, below it too little was predicted.
pub fn scatter(points: &[(f64, f64)], title: &str) -> String {
    const SIZE: f64 = 480.0;
    const EDGE: f64 = 60.0;
    let mut picture = Picture::new(title, (SIZE + 20.0, SIZE));
    let shown = || {
        points.iter().filter(|(measured, predicted)| *measured > 0.0 && *predicted > 0.0 && measured.is_finite() && predicted.is_finite())
    };
    let (low, high) = shown().fold((f64::MAX, 1.0_f64), |(low, high), (x, y)| (low.min(*x).min(*y), high.max(*x).max(*y)));
    let low = if low < high { low } else { high / 2.0 };
    let place = |value: f64| (value / low).ln() / (high / low).ln() * (SIZE - 2.0 * EDGE);
    let at = |x: f64, y: f64| (EDGE + place(x), SIZE - EDGE - place(y));
    picture.line(at(low, low), at(high, low), "#566070");
    picture.line(at(low, low), at(low, high), "#566070");
    picture.line(at(low, low), at(high, high), "#c4161c");
    // Powers of two, as memory comes.
    let mut tick = 2.0_f64.powf(low.log2().ceil());
    while tick <= high {
        let label = if tick >= 1024.0 { format!("{} GB", tick / 1024.0) } else { format!("{tick} MB") };
        let (across, up) = (at(tick, low), at(low, tick));
        picture.line((across.0, across.1), (across.0, across.1 + 4.0), "#566070");
        picture.text((across.0, across.1 + 18.0), Anchor::Middle, &label);
        picture.line((up.0 - 4.0, up.1), up, "#566070");
        picture.text((up.0 - 6.0, up.1 + 4.0), Anchor::End, &label);
        tick *= 2.0;
    }
    picture.text((SIZE / 2.0, SIZE - 16.0), Anchor::Middle, "measured");
    picture.text((EDGE, EDGE - 22.0), Anchor::Middle, "predicted");
    for (measured, predicted) in shown() {
        picture.dot(at(*measured, *predicted), COLOURS[0]);
    }
    picture.finish()
}
