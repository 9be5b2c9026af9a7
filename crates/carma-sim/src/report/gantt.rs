//! Gantt chart: a lane for each GPU, a rectangle for each attempt.

use carma_core::{Time, Verdict};

use super::{LEFT, MOST_GPUS, RIGHT, WIDTH};
use crate::simulation::{AttemptRecord, JobRecord, Run};
use carma_format::draw::{Anchor, Chart, Element, Scale, Unit, across, job_class};
use carma_format::{count, duration, thousands};

const TOP: f64 = 8.0;
/// Gap between the lanes of two GPUs.
const GAP: f64 = 8.0;
/// Minimum height: room for a GPU's name.
const LOWEST: f64 = 16.0;
/// Minimum width: narrower rectangles are not visible.
const NARROWEST: f64 = 1.5;

/// One attempt on one GPU.
#[derive(Debug, Clone, Copy)]
struct Stay<'a> {
    job: usize,
    attempt: usize,
    record: &'a JobRecord,
    from: Time,
    to: Time,
}

impl Stay<'_> {
    fn tried(&self) -> &AttemptRecord {
        &self.record.attempts[self.attempt]
    }

    fn out_of_memory(&self) -> bool {
        self.tried().verdict == Some(Verdict::OutOfMemory)
    }

    fn seconds(&self) -> f64 {
        (self.to - self.from).get()
    }

    fn tooltip(&self) -> String {
        let job = self.job + 1;
        let attempt = if self.record.attempts.len() > 1 { format!(", attempt {}", self.attempt + 1) } else { String::new() };
        let [from, to] = [self.from, self.to].map(|time| duration(time.get()));
        let ran = duration(self.seconds());
        let how = match &self.tried().verdict {
            Some(Verdict::Succeeded) if self.record.alone > 0.0 => {
                format!("{:.2} times its {} alone", self.seconds() / self.record.alone, duration(self.record.alone))
            }
            Some(Verdict::Succeeded) => "done".to_owned(),
            Some(other) => other.to_string(),
            None if self.tried().ended.is_some() => "was stopped".to_owned(),
            None => "still running".to_owned(),
        };
        format!("job {job}{attempt}: {from} to {to}, {ran}; {how}")
    }
}

/// A lane for each interval so that none overlap within a lane, and the number of lanes. Intervals are sorted by start; each takes
/// the first free lane.
fn lanes(intervals: &[(Time, Time)]) -> (Vec<usize>, usize) {
    let mut free_from: Vec<Time> = Vec::new();
    let places = intervals.iter().map(|(from, to)| {
        let lane = free_from.iter().position(|free| free <= from).unwrap_or(free_from.len());
        if lane == free_from.len() {
            free_from.push(*to);
        } else {
            free_from[lane] = *to;
        }
        lane
    });
    (places.collect(), free_from.len())
}

/// Attempts on each shown GPU, by start; limited to `most` in total. Also returns the unlimited number.
fn stays(run: &Run, most: usize) -> (Vec<Vec<Stay<'_>>>, usize) {
    let shown = run.gpus.len().min(MOST_GPUS);
    let mut all: Vec<(usize, Stay<'_>)> = Vec::new();
    for (job, record) in run.jobs.iter().enumerate() {
        for (attempt, tried) in record.attempts.iter().enumerate() {
            let stay = Stay { job, attempt, record, from: tried.launched, to: tried.ended.unwrap_or(run.ended).max(tried.launched) };
            all.extend(tried.gpus.iter().filter(|gpu| **gpu < shown).map(|gpu| (*gpu, stay)));
        }
    }
    let whole = all.len();
    if whole > most {
        // Keep out-of-memory attempts first, but limited in number and spread evenly over the trace's jobs.
        // Of the rest, keep the longest.
        let (short_of_memory, mut others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, stay)| stay.out_of_memory());
        let every = short_of_memory.len().div_ceil((most / 4).max(1)).max(1);
        let mut kept: Vec<_> = short_of_memory.into_iter().step_by(every).collect();
        others.sort_by(|(_, a), (_, b)| b.seconds().total_cmp(&a.seconds()));
        others.truncate(most.saturating_sub(kept.len()));
        kept.append(&mut others);
        all = kept;
    }
    let mut by_gpu = vec![Vec::new(); shown];
    all.sort_by_key(|(_, stay)| (stay.from, stay.to, stay.job, stay.attempt));
    for (gpu, stay) in all {
        by_gpu[gpu].push(stay);
    }
    (by_gpu, whole)
}

/// The chart of a run up to `end`, which several runs share so that their axes match; and what it omits.
pub(super) fn gantt(run: &Run, (name, slug): (&str, &str), end: Time, most: usize) -> (Chart, Vec<String>) {
    let mut chart = Chart::new(&format!("gantt-{slug}"), &format!("Attempts of jobs on each GPU over time under {name}"), WIDTH);
    let (by_gpu, whole) = stays(run, most);
    let packed: Vec<(Vec<usize>, usize)> =
        by_gpu.iter().map(|stays| lanes(&stays.iter().map(|stay| (stay.from, stay.to)).collect::<Vec<_>>())).collect();
    // Few lanes are high enough for numbers; many lanes must fit a page.
    let all_lanes: usize = packed.iter().map(|(_, lanes)| (*lanes).max(1)).sum();
    let lane_height = (760.0 / all_lanes.max(1) as f64).clamp(7.0, 17.0);
    let height = |lanes: usize| (lanes as f64 * lane_height).max(LOWEST) + GAP;
    let bottom = TOP + packed.iter().map(|(_, lanes)| height(*lanes)).sum::<f64>();
    let scale = Scale::linear((0.0, end.get()), (LEFT, RIGHT), Unit::Time);
    let hatch = format!("hatch-{slug}");
    chart.draw(&Element::new("defs").child(&hatched(&hatch)));
    across(&mut chart, &scale, (TOP, bottom), "time from the start of the trace");
    let mut top = TOP;
    for (gpu, (stays, (places, lanes))) in by_gpu.iter().zip(&packed).enumerate() {
        let middle = top + height(*lanes) / 2.0;
        chart.text("", Anchor::End, (LEFT - 8.0, middle + 4.0), &format!("GPU {gpu}"));
        for (stay, lane) in stays.iter().zip(places) {
            let y = top + GAP / 2.0 + *lane as f64 * lane_height;
            rectangle(&mut chart, stay, &scale, (y, lane_height - 1.0), &hatch);
        }
        top += height(*lanes);
        chart.line("axis", (LEFT, top), (RIGHT, top));
    }
    chart.height = bottom + 44.0;
    let mut left_out = Vec::new();
    if run.gpus.len() > MOST_GPUS {
        left_out.push(format!("The first {MOST_GPUS} of {} are shown.", count(run.gpus.len(), "GPU")));
    }
    if whole > most {
        let drawn = thousands(by_gpu.iter().map(Vec::len).sum());
        left_out.push(format!(
            "{drawn} of {} attempts on them are drawn: the longest, and every so many of those that ran out of memory.",
            thousands(whole)
        ));
    }
    (chart, left_out)
}

fn rectangle(chart: &mut Chart, stay: &Stay<'_>, scale: &Scale, (y, height): (f64, f64), hatch: &str) {
    let from = scale.place(stay.from.get());
    let width = (scale.place(stay.to.get()) - from).max(NARROWEST);
    let (class, fill) = match &stay.tried().verdict {
        Some(Verdict::OutOfMemory) => ("oom".to_owned(), Some(format!("url(#{hatch})"))),
        Some(Verdict::Succeeded) | None => (job_class(stay.job), None),
        Some(_) => ("lost".to_owned(), None),
    };
    let mut element = Element::of_class("rect", &class).at([("x", from), ("y", y), ("width", width), ("height", height)]);
    if let Some(fill) = fill {
        element = element.attribute("fill", &fill);
    }
    chart.draw(&element.tooltip(&stay.tooltip()));
    let number = (stay.job + 1).to_string();
    if height >= 11.0 && width > number.len() as f64 * 6.5 + 4.0 && !stay.out_of_memory() {
        chart.text("small label", Anchor::Middle, (from + width / 2.0, y + height / 2.0 + 4.0), &number);
    }
}

/// Fill pattern of attempts that ran out of memory: recognisable without colour, too.
fn hatched(id: &str) -> Element {
    let pattern = Element::new("pattern").attribute("id", id).attribute("patternUnits", "userSpaceOnUse");
    let ground = Element::of_class("rect", "hatch-ground").at([("width", 6.0), ("height", 6.0)]);
    let stroke = Element::of_class("line", "hatch").at([("x1", 0.0), ("y1", 0.0), ("x2", 0.0), ("y2", 6.0)]);
    pattern.at([("width", 6.0), ("height", 6.0)]).attribute("patternTransform", "rotate(45)").child(&ground).child(&stroke)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lanes_hold_one_thing_at_a_time(mut intervals in prop::collection::vec((0_u64..200, 0_u64..50), 0..80)) {
            intervals.sort_unstable();
            let intervals: Vec<(Time, Time)> =
                intervals.into_iter().map(|(from, long)| (Time::from_secs(from), Time::from_secs(from + long))).collect();
            let (places, count) = lanes(&intervals);
            prop_assert_eq!(places.len(), intervals.len());
            prop_assert!(places.iter().all(|lane| *lane < count));
            for (later, (from, _)) in intervals.iter().enumerate() {
                for earlier in 0..later {
                    prop_assert!(places[earlier] != places[later] || intervals[earlier].1 <= *from);
                }
            }
            // At most as many lanes as simultaneous intervals, including empty ones.
            let most = intervals.iter().map(|(at, _)| intervals.iter().filter(|(from, to)| from == at || (from < at && at < to)).count()).max();
            prop_assert!(count <= most.unwrap_or_default());
        }
    }
}
