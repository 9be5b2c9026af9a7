//! State of each GPU over time: SM activity, memory, power.

use std::fmt::Write;

use carma_core::Time;

use super::{LEFT, MOST_GPUS, RIGHT, WIDTH};
use crate::simulation::{GpuRecord, Moment, Run};
use carma_format::draw::{Anchor, Chart, Element, Scale, Unit, across, coordinate};
use carma_format::number;

const TOP: f64 = 30.0;
const BETWEEN: f64 = 34.0;

/// A metric to draw.
struct Measure {
    title: &'static str,
    class: &'static str,
    value: fn(&Moment) -> f64,
    /// Maximum of the metric on a GPU, as a number and as text.
    limit: fn(&GpuRecord) -> (f64, String),
    /// Style of the line at the limit: jobs fail at that of memory.
    roof: &'static str,
}

const MEASURES: [Measure; 3] = [
    Measure { title: "SM activity (SMACT)", class: "s1", value: |moment| moment.smact, limit: |_| (1.0, "100 %".to_owned()), roof: "mark" },
    Measure {
        title: "Memory in use, and what the GPU has",
        class: "s3",
        value: |moment| moment.memory.0 as f64,
        limit: |gpu| (gpu.memory.0 as f64, format!("{} GiB", number(gpu.memory.0 as f64 / 1024.0))),
        roof: "limit",
    },
    Measure {
        title: "Power, and the GPU's limit",
        class: "s2",
        value: |moment| moment.watts,
        limit: |gpu| (gpu.kind.limit_watts, format!("{} W", number(gpu.kind.limit_watts))),
        roof: "mark",
    },
];

/// The chart of a run up to `end`, on the same time axis as its Gantt chart, with a limited number of points per line. None if no
/// timeline was recorded.
pub(super) fn timeline(run: &Run, (name, slug): (&str, &str), end: Time, most_points: usize) -> Option<Chart> {
    if run.gpus.iter().all(|gpu| gpu.moments.is_empty()) {
        return None;
    }
    let gpus = &run.gpus[..run.gpus.len().min(MOST_GPUS)];
    let label = format!("SM activity, memory and power of each GPU over time under {name}");
    let mut chart = Chart::new(&format!("timeline-{slug}"), &label, WIDTH);
    let lane = (240.0 / gpus.len().max(1) as f64).clamp(22.0, 44.0);
    let scale = Scale::linear((0.0, end.get()), (LEFT, RIGHT), Unit::Time);
    let mut top = TOP;
    for measure in &MEASURES {
        chart.text("strong", Anchor::Start, (LEFT, top - 8.0), measure.title);
        let bottom = top + lane * gpus.len() as f64;
        across(&mut chart, &scale, (top, bottom), "");
        for (place, gpu) in gpus.iter().enumerate() {
            draw_lane(&mut chart, measure, (place, gpu), (top + lane * place as f64, lane), (&scale, run.ended), most_points);
        }
        top = bottom + BETWEEN + 16.0;
    }
    chart.height = top - 26.0;
    Some(chart)
}

fn draw_lane(
    chart: &mut Chart,
    measure: &Measure,
    (place, gpu): (usize, &GpuRecord),
    (top, height): (f64, f64),
    (across, ended): (&Scale, Time),
    most_points: usize,
) {
    let (limit, words) = (measure.limit)(gpu);
    let up = Scale::linear((0.0, limit), (top + height - 1.0, top + 5.0), Unit::Number);
    chart.text("", Anchor::End, (LEFT - 8.0, top + height / 2.0 + 5.0), &format!("GPU {place}"));
    let roof = up.place(limit);
    chart.line(measure.roof, (LEFT, roof), (RIGHT, roof));
    chart.text("small quiet", Anchor::Start, (RIGHT + 5.0, roof + 4.0), &words);
    let values: Vec<(f64, f64)> = gpu.moments.iter().map(|moment| (moment.since.get(), (measure.value)(moment))).collect();
    let path = steps(&values, (across, &up), ended.get(), most_points);
    let tooltip = format!("{}, GPU {place} ({})", measure.title, gpu.kind.name);
    chart.draw(&Element::of_class("path", &format!("level {}", measure.class)).attribute("d", &path).tooltip(&tooltip));
    chart.line("axis", (LEFT, top + height), (RIGHT, top + height));
}

/// A step line. If it has too many points, each column of the chart keeps the lowest and the highest value, so that no peak is
/// lost.
fn steps(values: &[(f64, f64)], (across, up): (&Scale, &Scale), end: f64, most: usize) -> String {
    let ground = coordinate(up.start);
    let start = values.first().map_or(0.0, |(since, _)| *since);
    let mut path = format!("M{} {ground}", coordinate(across.place(start)));
    if values.len() <= most {
        for (place, (_, value)) in values.iter().enumerate() {
            let until = values.get(place + 1).map_or(end, |(since, _)| *since);
            let _ = write!(path, "V{}H{}", coordinate(up.place(*value)), coordinate(across.place(until)));
        }
    } else {
        let columns = (most / 2).max(1);
        let mut next = 0;
        let mut held = values.first().map_or(0.0, |(_, value)| *value);
        for column in 1..=columns {
            let until = start + (end - start) * column as f64 / columns as f64;
            let (mut low, mut high) = (held, held);
            while let Some((_, value)) = values.get(next).filter(|(since, _)| *since < until || column == columns) {
                (low, high, held) = (low.min(*value), high.max(*value), *value);
                next += 1;
            }
            let _ = write!(path, "V{}", coordinate(up.place(low)));
            if high > low {
                let _ = write!(path, "V{}", coordinate(up.place(high)));
            }
            let _ = write!(path, "H{}", coordinate(across.place(until)));
        }
    }
    path + "V" + &ground
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_with_many_points_keep_peaks() {
        let values: Vec<(f64, f64)> = (0..10_000_u32).map(|at| (f64::from(at), if at == 5_003 { 9.0 } else { 1.0 })).collect();
        let across = Scale::linear((0.0, 10_000.0), (0.0, 800.0), Unit::Time);
        let up = Scale::linear((0.0, 9.0), (90.0, 0.0), Unit::Number);
        let path = steps(&values, (&across, &up), 10_000.0, 100);
        assert!(path.contains("V0H"), "{path}");
        assert!(path.len() < 1500, "{}", path.len());
    }
}
