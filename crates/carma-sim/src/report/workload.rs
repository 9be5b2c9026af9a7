//! Charts of a trace: arrivals, durations, requested GPUs.

use carma_core::Seconds;

use crate::catalogue::Catalogue;
use crate::trace::{Analysis, DemandClass, Durations, Hours, Trace};
use carma_format::draw::{Anchor, Chart, Scale, Unit, across, up};
use carma_format::{count, duration};

const WIDTH: f64 = 640.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 600.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 250.0;
/// Bars per factor of ten in duration.
const BARS_A_DECADE: f64 = 5.0;

/// Jobs submitted per hour, or per several hours for long traces.
pub(super) fn arrivals(hours: &Hours) -> Chart {
    let each = if hours.each == 1 { "hour".to_owned() } else { format!("{} hours", hours.each) };
    let mut chart = Chart::new("arrivals", &format!("Jobs submitted in each {each} of the trace"), WIDTH);
    let seconds = hours.each as f64 * 3600.0;
    let across_scale = Scale::linear((0.0, hours.counts.len() as f64 * seconds), (LEFT, RIGHT), Unit::Time);
    let up_scale = jobs_scale(hours.counts.iter().copied().max().unwrap_or_default());
    across(&mut chart, &across_scale, (TOP, BOTTOM), "since the first submission");
    up(&mut chart, &up_scale, (LEFT, RIGHT), &format!("Jobs submitted in each {each}"));
    for (place, jobs) in hours.counts.iter().enumerate() {
        let [from, to] = [place, place + 1].map(|hour| hour as f64 * seconds);
        let words = format!("{} to {}: {}", duration(from), duration(to), count(*jobs, "job"));
        column(&mut chart, "bar s1", (across_scale.place(from), across_scale.place(to)), up_scale.place(*jobs as f64), &words);
    }
    chart.height = BOTTOM + 44.0;
    chart
}

/// Durations of jobs alone, in bars of equal width on a logarithmic axis.
pub(super) fn durations(times: &[f64], known: &Durations) -> Chart {
    let mut chart = Chart::new("durations", "Jobs by their time alone, on a logarithmic axis", WIDTH);
    let bin = |time: f64| (time.max(1.0).log10() * BARS_A_DECADE).floor() as i32;
    let edge = |bin: i32| 10_f64.powf(f64::from(bin) / BARS_A_DECADE);
    let first = times.iter().map(|time| bin(*time)).min().unwrap_or_default();
    let last = times.iter().map(|time| bin(*time)).max().unwrap_or_default();
    let mut counts = vec![0_usize; (last - first) as usize + 1];
    for time in times {
        counts[(bin(*time) - first) as usize] += 1;
    }
    let across_scale = Scale::logarithmic((edge(first), edge(last + 1)), (LEFT, RIGHT), Unit::Time);
    let up_scale = jobs_scale(counts.iter().copied().max().unwrap_or_default());
    across(&mut chart, &across_scale, (TOP, BOTTOM), "time alone (logarithmic)");
    up(&mut chart, &up_scale, (LEFT, RIGHT), "Jobs");
    for (bin, jobs) in (first..).zip(&counts) {
        let (from, to) = (edge(bin), edge(bin + 1));
        let words = format!("{} to {}: {}", duration(from), duration(to), count(*jobs, "job"));
        column(&mut chart, "bar s1", (across_scale.place(from), across_scale.place(to)), up_scale.place(*jobs as f64), &words);
    }
    for time in [known.p50_s, known.p95_s] {
        chart.line("limit", (across_scale.place(time), TOP), (across_scale.place(time), BOTTOM));
    }
    let words = format!("dashed: median {}, 95th percentile {}", duration(known.p50_s), duration(known.p95_s));
    chart.text("small quiet", Anchor::End, (RIGHT, TOP - 8.0), &words);
    chart.height = BOTTOM + 44.0;
    chart
}

/// Requested GPUs: shares of jobs, and of GPU time.
pub(super) fn demand(classes: &[DemandClass]) -> Chart {
    let mut chart = Chart::new("gpu-demand", "Jobs by how many GPUs they ask for: shares of jobs and of GPU time", WIDTH);
    let up_scale = Scale::linear((0.0, 100.0), (BOTTOM, TOP), Unit::Number);
    up(&mut chart, &up_scale, (LEFT, RIGHT), "% of jobs (blue) and of GPU time (orange)");
    let step = (RIGHT - LEFT) / classes.len().max(1) as f64;
    for (place, class) in classes.iter().enumerate() {
        let middle = LEFT + step * (place as f64 + 0.5);
        let bars = [("bar s1", class.share_of_jobs, -0.36, "of jobs"), ("bar s2", class.share_of_gpu_time, 0.02, "of GPU time")];
        for (colour, share, offset, of) in bars {
            let (from, top) = (middle + step * offset, up_scale.place(share * 100.0));
            column(&mut chart, colour, (from, from + step * 0.34), top, &format!("{} GPUs: {:.1} % {of}", class.gpus, share * 100.0));
            if share > 0.0 {
                chart.text("small", Anchor::Middle, (from + step * 0.17, top - 4.0), &format!("{:.0}", share * 100.0));
            }
        }
        chart.text("", Anchor::Middle, (middle, BOTTOM + 16.0), class.gpus);
    }
    chart.line("axis", (LEFT, BOTTOM), (RIGHT, BOTTOM));
    chart.text("quiet", Anchor::Middle, (f64::midpoint(LEFT, RIGHT), BOTTOM + 34.0), "GPUs of a job");
    chart.height = BOTTOM + 44.0;
    chart
}

/// All charts of a trace.
pub(super) fn charts(trace: &Trace, catalogue: &Catalogue) -> Vec<Chart> {
    let analysis = Analysis::of(trace, catalogue);
    let times: Vec<f64> = trace.jobs.iter().filter_map(|job| job.time_alone(catalogue)).map(Seconds::get).collect();
    let mut charts = vec![arrivals(&analysis.arrivals.hours)];
    charts.extend(analysis.durations.as_ref().map(|known| durations(&times, known)));
    charts.push(demand(&analysis.demand));
    charts
}

/// From zero to slightly above the maximum.
fn jobs_scale(most: usize) -> Scale {
    Scale::linear((0.0, (most as f64 * 1.05).max(3.0)), (BOTTOM, TOP), Unit::Count)
}

fn column(chart: &mut Chart, class: &str, (from, to): (f64, f64), top: f64, words: &str) {
    if top < BOTTOM {
        chart.rectangle(class, (from + 0.5, top), ((to - from - 1.0).max(0.8), BOTTOM - top), words);
    }
}
