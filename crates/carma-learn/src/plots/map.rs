//! Points on a plane, coloured by class.

use carma_format::draw::{Anchor, Chart, Scale, Unit};

/// Colours of classes; they repeat beyond these.
const COLOURS: usize = 8;

/// Points coloured by class; `names` are the names of the classes, in order.
pub fn map(points: &[[f64; 2]], classes: &[usize], names: &[String], title: &str) -> String {
    const SIZE: f64 = 480.0;
    const EDGE: f64 = 40.0;
    let mut chart = Chart::new("map", title, SIZE + 110.0);
    chart.height = SIZE;
    chart.text("strong", Anchor::Middle, (chart.width / 2.0, 20.0), title);
    let range = |axis: usize| {
        let values = points.iter().map(|point| point[axis]).filter(|value| value.is_finite());
        values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
    };
    let across = Scale::linear(range(0), (EDGE, SIZE - EDGE), Unit::Number);
    let up = Scale::linear(range(1), (SIZE - EDGE, EDGE), Unit::Number);
    let colour = |class: usize| format!("s{}", 1 + class % COLOURS);
    for (point, class) in points.iter().zip(classes).filter(|(point, _)| point.iter().all(|value| value.is_finite())) {
        chart.dot(&colour(*class), (across.place(point[0]), up.place(point[1])));
    }
    let present = names.iter().enumerate().filter(|(class, _)| classes.contains(class));
    for (line, (class, name)) in present.enumerate() {
        let y = EDGE + 18.0 * line as f64;
        chart.dot(&colour(class), (SIZE, y - 4.0));
        chart.text("small", Anchor::Start, (SIZE + 8.0, y), name);
    }
    chart.stand_alone()
}
