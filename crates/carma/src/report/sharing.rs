//! Share of time with no job, one job, or several jobs on a GPU, and its effect on jobs.

use carma_core::DeviceId;
use carma_format::draw::{Anchor, Chart, Element, Scale, Unit, across};
use carma_manager::api::{WhatIf, WhatIfRun};
use carma_manager::store::UnixMillis;
use carma_sim::ratio;

use super::data::ReportData;
use super::parts::{Column, figure, heading, note, or_dash, paragraph, percent, section, table};
use crate::what_if::simulator_error;
use carma_format::{count, duration, energy};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 946.0;
const TOP: f64 = 30.0;
/// GPUs with no job, one, two, and three or more.
const OCCUPANCIES: [(&str, &str); 4] = [("no job", "s0"), ("one job", "s1"), ("two jobs", "s3"), ("three or more", "s2")];

pub(super) fn sharing(data: &ReportData) -> Element {
    let page = section("sharing", "Collocation");
    if let Some(user) = &data.user {
        let text = format!("GPU sharing is reported only for all users together; this report covers only {user}.");
        return page.child(&paragraph(&text));
    }
    let shares: Vec<(String, [f64; 4])> = data.gpus.iter().map(|(gpu, _)| (gpu.device.to_string(), occupancy(data, gpu.device))).collect();
    if shares.is_empty() {
        return page.child(&paragraph("The manager has no GPUs."));
    }
    let all = std::array::from_fn(|jobs| shares.iter().map(|(_, shares)| shares[jobs]).sum::<f64>() / shares.len() as f64);
    let rows = shares.iter().map(|(gpu, shares)| (gpu.as_str(), *shares)).chain([("all GPUs", all)]);
    let columns =
        [Column::Text("GPU"), Column::Number("No job"), Column::Number("One job"), Column::Number("Two"), Column::Number("Three or more")];
    let cells =
        rows.clone().map(|(gpu, [none, one, two, more])| [gpu.to_owned(), percent(none), percent(one), percent(two), percent(more)]);
    page.child(&figure(&stacked(&rows.collect::<Vec<_>>())))
        .child(&table("Share of time by number of jobs on a GPU", columns, cells))
        .child(&heading("Compared with one job per GPU"))
        .child(&gain(&data.what_if))
}

/// Shares of the time in which a GPU had no job, one, two, or more.
fn occupancy(data: &ReportData, device: DeviceId) -> [f64; 4] {
    let on_it = data.attempts().filter(|(_, attempt)| attempt.placement.devices.iter().any(|granted| granted.device == device));
    let period = &data.period;
    let within = |at: UnixMillis| at.clamp(period.since, period.until.max(period.since));
    let mut turns: Vec<(UnixMillis, i32)> = on_it
        .flat_map(|(_, attempt)| [(within(attempt.launched), 1), (within(attempt.ended.unwrap_or(period.until)), -1)])
        .chain([(period.until, 0)])
        .collect();
    turns.sort_unstable();
    let mut shares = [0.0; 4];
    let (mut now, mut jobs) = (period.since, 0_i32);
    for (at, change) in turns {
        shares[jobs.clamp(0, 3) as usize] += at.0.saturating_sub(now.0) as f64 / 1000.0 / period.seconds().max(0.001);
        (now, jobs) = (at, jobs + change);
    }
    shares
}

fn stacked(rows: &[(&str, [f64; 4])]) -> Chart {
    let mut chart = Chart::new("sharing", "Share of time in which each GPU had no job, one job, two jobs, or three or more", WIDTH);
    let scale = Scale::linear((0.0, 100.0), (LEFT, RIGHT), Unit::Number);
    let lane = (420.0 / rows.len().max(1) as f64).clamp(12.0, 24.0);
    let bottom = TOP + lane * rows.len() as f64;
    let mut left = LEFT;
    for (name, class) in OCCUPANCIES {
        chart.rectangle(&format!("bar {class}"), (left, 8.0), (12.0, 10.0), name);
        chart.text("", Anchor::Start, (left + 18.0, 17.0), name);
        left += 150.0;
    }
    across(&mut chart, &scale, (TOP, bottom), "% of the time");
    for (place, (gpu, shares)) in rows.iter().enumerate() {
        let top = TOP + lane * place as f64;
        chart.text("small", Anchor::End, (LEFT - 8.0, top + lane / 2.0 + 3.5), gpu);
        let mut before = 0.0;
        for ((name, class), share) in OCCUPANCIES.iter().zip(shares) {
            let [from, to] = [before, before + share].map(|share| scale.place(share * 100.0));
            if to - from > 0.05 {
                chart.rectangle(
                    &format!("bar {class}"),
                    (from, top + 2.0),
                    (to - from, lane - 4.0),
                    &format!("{gpu}, {name}: {}", percent(*share)),
                );
            }
            before += share;
        }
    }
    chart.height = bottom + 44.0;
    chart
}

/// The same jobs, one a GPU.
fn gain(what_if: &Result<WhatIf, String>) -> Element {
    let answer = match what_if {
        Ok(answer) => answer,
        Err(why) => return paragraph(&format!("The same jobs were not simulated: {why}.")),
    };
    let WhatIf { jobs, left_out, measured, simulated, others } = answer;
    let Some(exclusive) = others.first() else { return paragraph("No comparison is available.") };
    let share = |of: fn(&WhatIfRun) -> f64| percent(ratio(of(simulated), of(exclusive)));
    let text = format!(
        "Under the present policy, the makespan of the {} is {} of that with one job per GPU, and their mean completion time is {} of it; both are \
         simulated.",
        count(*jobs as usize, "job"),
        share(|run| run.makespan.get()),
        share(|run| run.completion.get())
    );
    let row = |name: String, run: &WhatIfRun| {
        [
            name,
            duration(run.makespan.get()),
            duration(run.wait.get()),
            duration(run.completion.get()),
            duration(run.completion_p95.get()),
            or_dash(run.energy.map(|joules| energy(joules.0))),
            format!("{:.1}", run.out_of_memory),
        ]
    };
    let rows = [
        row(format!("{}, measured", measured.policy), measured),
        row(format!("{}, simulated", simulated.policy), simulated),
        row("one job per GPU, simulated".to_owned(), exclusive),
    ];
    let columns = [
        Column::Text("Rules"),
        Column::Number("Last job done"),
        Column::Number("Mean wait"),
        Column::Number("Mean completion"),
        Column::Number("95th percentile"),
        Column::Number("Energy of GPUs"),
        Column::Number("Out of memory"),
    ];
    let parts = Element::new("div")
        .child(&paragraph(&text))
        .child(&table("The same jobs under other policies", columns, rows))
        .child(&note(&simulator_error(answer)));
    left_out.iter().fold(parts, |parts, text| parts.child(&note(text)))
}
