//! An analysis as text: tables and bars in 80 columns.

use std::fmt;

use carma_format::{count, duration, shortened};

use super::analysis::{Analysis, Arrivals, DurationClass, Durations};

/// Width of a bar in columns.
const BAR: usize = 40;

impl fmt::Display for Analysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, {:.1} GPU-hours alone", count(self.jobs, "job"), self.gpu_hours)?;
        for (why, jobs) in &self.skipped {
            writeln!(f, "{jobs} ignored: {why}")?;
        }
        if self.without_duration > 0 {
            writeln!(f, "{} without a duration: map them to workloads", self.without_duration)?;
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
                writeln!(f, "  {:<42} {jobs:>6}  {}", shortened(name, 42), bar(*jobs, most, 24))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.per_hour.map_or_else(|| "all at once".to_owned(), |rate| format!("{rate:.1} an hour"));
        writeln!(f, "Arrivals           {rate} over {}", duration(self.span_s))?;
        let gaps = [("mean", self.mean_gap_s), ("p50", self.p50_gap_s), ("p95", self.p95_gap_s)];
        let gaps = gaps.map(|(name, gap)| format!("{name} {}", duration(gap)));
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
        writeln!(f, "Time alone         mean {}, longest {}", duration(self.mean_s), duration(self.max_s))?;
        let ranks = [("p50", self.p50_s), ("p90", self.p90_s), ("p95", self.p95_s), ("p99", self.p99_s)];
        writeln!(f, "                   {}", ranks.map(|(name, time)| format!("{name} {}", duration(time))).join(", "))?;
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

/// A bar with a resolution of an eighth of a column; nonzero values are always visible.
fn bar(value: usize, most: usize, width: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (value * width * 8).checked_div(most).unwrap_or(0).max(usize::from(value > 0));
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

/// A bar of one line's height.
fn column(value: usize, most: usize) -> char {
    const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    HEIGHTS[(value * 8).checked_div(most).unwrap_or(0).max(usize::from(value > 0))]
}
