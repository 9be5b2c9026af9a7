//! An analysis as people read it: tables and bars in 80 columns.

use std::fmt;

use super::analysis::{Analysis, Arrivals, DurationClass, Durations};

/// Columns of a bar.
const BAR: usize = 40;

impl fmt::Display for Analysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} jobs, {:.1} GPU-hours alone", self.jobs, self.gpu_hours)?;
        for (why, jobs) in &self.skipped {
            writeln!(f, "{jobs} left out: {why}")?;
        }
        if self.without_duration > 0 {
            writeln!(f, "{} without a time of their own: map them onto workloads", self.without_duration)?;
        }
        writeln!(f, "\n{}", self.arrivals)?;
        if let Some(durations) = &self.durations {
            writeln!(f, "{durations}")?;
        }
        writeln!(f, "GPUs a job         jobs  of jobs  of GPU time")?;
        for class in self.demand.iter().filter(|class| class.jobs > 0) {
            let [jobs, time] = [class.share_of_jobs, class.share_of_gpu_time].map(|share| format!("{:.1} %", share * 100.0));
            writeln!(f, "  {:<12} {:>8} {jobs:>8} {time:>12}", class.gpus, class.jobs)?;
        }
        if !self.workloads.is_empty() {
            writeln!(f, "\nWorkload                                       jobs")?;
            let most = self.workloads.values().copied().max().unwrap_or_default();
            for (name, jobs) in &self.workloads {
                writeln!(f, "  {:<42} {jobs:>6}  {}", cut(name, 42), bar(*jobs, most, 24))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.per_hour.map_or_else(|| "all at once".to_owned(), |rate| format!("{rate:.1} an hour"));
        writeln!(f, "Arrivals           {rate} over {}", span(self.span_s))?;
        let gaps = [("mean", self.mean_gap_s), ("p50", self.p50_gap_s), ("p95", self.p95_gap_s)];
        let gaps = gaps.map(|(name, gap)| format!("{name} {}", span(gap)));
        writeln!(f, "  gaps             {}", gaps.join(", "))?;
        if let Some(burstiness) = self.burstiness {
            writeln!(f, "  burstiness       {burstiness:.2} (0 a clock, 1 independent, more: bursts)")?;
        }
        let most = self.hours.counts.iter().copied().max().unwrap_or_default();
        let each = if self.hours.each == 1 { "each hour".to_owned() } else { format!("each {} h", self.hours.each) };
        writeln!(f, "  {each}, most {most}:")?;
        writeln!(f, "  |{}|", self.hours.counts.iter().map(|jobs| column(*jobs, most)).collect::<String>())
    }
}

impl fmt::Display for Durations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Time alone         mean {}, longest {}", span(self.mean_s), span(self.max_s))?;
        let ranks = [("p50", self.p50_s), ("p90", self.p90_s), ("p95", self.p95_s), ("p99", self.p99_s)];
        writeln!(f, "                   {}", ranks.map(|(name, time)| format!("{name} {}", span(time))).join(", "))?;
        let most = self.classes.iter().map(|class| class.jobs).max().unwrap_or_default();
        let used = |class: &DurationClass| class.jobs > 0;
        let first = self.classes.iter().position(used).unwrap_or_default();
        let last = self.classes.iter().rposition(used).unwrap_or_default();
        for class in &self.classes[first..=last] {
            writeln!(f, "{}", format!("  {:<12} {:>8}  {}", class.length, class.jobs, bar(class.jobs, most, BAR)).trim_end())?;
        }
        Ok(())
    }
}

/// A time as people say it.
fn span(seconds: f64) -> String {
    match seconds {
        s if s < 60.0 => format!("{s:.1} s"),
        s if s < 3600.0 => format!("{:.1} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} d", s / 86_400.0),
    }
}

/// A bar to the eighth of a column; something is never drawn as nothing.
fn bar(value: usize, most: usize, width: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (value * width * 8).checked_div(most).unwrap_or(0).max(usize::from(value > 0));
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

/// A column of one line's height.
fn column(value: usize, most: usize) -> char {
    const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    HEIGHTS[(value * 8).checked_div(most).unwrap_or(0).max(usize::from(value > 0))]
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width { text.to_owned() } else { text.chars().take(width - 1).chain(['…']).collect() }
}
