//! Points on a plane, coloured by class.

use super::svg::{Anchor, COLOURS, Picture};

/// Points coloured by class; `names` are the classes', in order. Beyond eight, colours repeat.
pub fn map(points: &[[f64; 2]], classes: &[usize], names: &[String], title: &str) -> String {
    const SIZE: f64 = 480.0;
    const EDGE: f64 = 40.0;
    let mut picture = Picture::new(title, (SIZE + 110.0, SIZE));
    let range = |axis: usize| {
        let ends = points.iter().map(|point| point[axis]).filter(|value| value.is_finite());
        let (low, high) = ends.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        if low < high { (low, high) } else { (low - 1.0, low + 1.0) }
    };
    let ranges = [range(0), range(1)];
    let place = |value: f64, axis: usize| (value - ranges[axis].0) / (ranges[axis].1 - ranges[axis].0) * (SIZE - 2.0 * EDGE);
    let colour = |class: usize| COLOURS[class % COLOURS.len()];
    for (point, class) in points.iter().zip(classes).filter(|(point, _)| point.iter().all(|value| value.is_finite())) {
        picture.dot((EDGE + place(point[0], 0), SIZE - EDGE - place(point[1], 1)), colour(*class));
    }
    let present = names.iter().enumerate().filter(|(class, _)| classes.contains(class));
    for (turn, (class, name)) in present.enumerate() {
        let y = EDGE + 18.0 * turn as f64;
        picture.dot((SIZE, y - 4.0), colour(class));
        picture.text((SIZE + 8.0, y), Anchor::Start, name);
    }
    picture.finish()
}
