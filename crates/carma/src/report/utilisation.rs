//! Utilisation and memory of each GPU over time.

use carma_core::MiB;
use carma_format::draw::{Anchor, Chart, Element};

use super::data::ReportData;
use super::parts::{Column, figure, heading, note, or_dash, paragraph, percent, section, table};
use super::period::Period;
use super::samples::{Column as SampleColumn, GpuSamples};
use carma_format::{energy, memory};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 946.0;
const TOP: f64 = 10.0;
/// Distinguishable shades; neighbours of one shade form one rectangle.
const SHADES: f64 = 12.0;
/// Shade of zero, distinct from missing data.
const PALEST: f64 = 0.06;

pub(super) fn utilisation(data: &ReportData) -> Element {
    let page = section("utilisation", "Utilisation");
    if data.gpus.is_empty() {
        return page.child(&paragraph("The manager has no GPUs."));
    }
    let rows = data.gpus.iter().map(|(gpu, samples)| {
        let used = samples.all.memory.get();
        let watts = samples.all.watts.get().map(|watts| format!("{watts:.0} W"));
        [
            ReportData::gpu_name(gpu),
            gpu.name.clone(),
            or_dash(samples.all.busy.get().map(percent)),
            or_dash(used.map(|used| memory(MiB(used as u64)))),
            or_dash(used.map(|used| percent(used / gpu.memory.0.max(1) as f64))),
            or_dash(watts),
            or_dash(samples.joules().map(energy)),
        ]
    });
    let busy = if data.gpus.iter().any(|(_, samples)| samples.smact) { "SM activity" } else { "GPU utilisation" };
    let columns = [
        Column::Text("GPU"),
        Column::Text("Kind"),
        Column::Number(if busy == "SM activity" { "SM activity" } else { "Utilisation" }),
        Column::Number("Memory in use"),
        Column::Number("of all"),
        Column::Number("Power"),
        Column::Number("Energy"),
    ];
    let table = table("Means per GPU, over all users", columns, rows);
    if data.gpus.iter().all(|(_, samples)| samples.minutes == 0) {
        return page.child(&paragraph("No GPU samples are stored for this period.")).child(&table);
    }
    let names: Vec<String> = data.gpus.iter().map(|(gpu, _)| gpu.device.to_string()).collect();
    let rows: Vec<&GpuSamples> = data.gpus.iter().map(|(_, samples)| samples).collect();
    let shares: Vec<f64> = data.gpus.iter().map(|(gpu, _)| gpu.memory.0.max(1) as f64).collect();
    let label = format!("{busy} of each GPU over time");
    let activity = heat("busy", &label, "s1", &data.period, (&names, &rows), |_, column| column.busy.get());
    let label = "Memory in use on each GPU over time, as a share of its total";
    let full = heat("memory", label, "s3", &data.period, (&names, &rows), |gpu, column| Some(column.memory.get()? / shares[gpu]));
    page.child(&heading(busy))
        .child(&figure(&activity))
        .child(&heading("Memory in use"))
        .child(&figure(&full))
        .child(&note("Darker means more, from 0 to 100 % of a GPU. Dashed: no samples."))
        .child(&table)
}

/// A strip for each GPU.
fn heat(
    name: &str,
    label: &str,
    class: &str,
    period: &Period,
    (names, rows): (&[String], &[&GpuSamples]),
    share: impl Fn(usize, &SampleColumn) -> Option<f64>,
) -> Chart {
    let mut chart = Chart::new(name, label, WIDTH);
    let scale = period.scale(LEFT, RIGHT);
    let lane = (420.0 / rows.len().max(1) as f64).clamp(9.0, 26.0);
    let bottom = TOP + lane * rows.len() as f64;
    period.axis(&mut chart, &scale, (TOP, bottom + 3.0));
    for (place, samples) in rows.iter().enumerate() {
        let top = TOP + lane * place as f64;
        if lane >= 12.0 || place % 2 == 0 {
            chart.text("small", Anchor::End, (LEFT - 8.0, top + lane / 2.0 + 3.5), &names[place]);
        }
        let tone = |column: &SampleColumn| share(place, column).map(|share| (share.clamp(0.0, 1.0) * SHADES).ceil() as u32);
        let mut begin = 0;
        for run in samples.columns.chunk_by(|one, next| tone(one) == tone(next)) {
            let end = begin + run.len();
            let [from, to] = [begin, end].map(|column| scale.place(period.begins(column).0 as f64 / 1000.0));
            let means = run.iter().filter_map(|column| share(place, column));
            let mean = means.clone().sum::<f64>() / means.count().max(1) as f64;
            let text = format!(
                "{}, {} to {}",
                names[place],
                period.moment(period.begins(begin)),
                period.moment(period.begins(end).min(period.until))
            );
            let spot = ((from, top + 1.0), (to - from, lane - 2.0));
            match tone(&run[0]) {
                None => chart.line("mark", (from, top + lane / 2.0), (to, top + lane / 2.0)),
                Some(tone) => {
                    chart.shaded(class, spot, PALEST + (1.0 - PALEST) * f64::from(tone) / SHADES, &format!("{text}: {}", percent(mean)));
                }
            }
            begin = end;
        }
    }
    chart.height = bottom + 26.0;
    chart
}
