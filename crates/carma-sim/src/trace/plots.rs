//! An analysis as text: tables and bars in 80 columns. Plain text has neither.

use std::fmt;

use carma_format::{Terminal, count, duration, labelled, shortened};

use super::analysis::{Analysis, Arrivals, DurationClass, Durations};

/// Width of a bar in columns.
const BAR: usize = 40;
/// Where values begin.
const VALUES: usize = 19;

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
        let plain = Terminal::current().plain;
        if !plain {
            writeln!(f, "GPUs a job         jobs  of jobs  of GPU time")?;
        }
        for class in self.demand.iter().filter(|class| class.jobs > 0) {
            let [jobs, time] = [class.share_of_jobs, class.share_of_gpu_time].map(|share| format!("{:.1} %", share * 100.0));
            if plain {
                writeln!(f, "jobs of {} GPUs: {}, {jobs} of jobs, {time} of GPU time", class.gpus, class.jobs)?;
            } else {
                writeln!(f, "  {:<12} {:>8} {jobs:>8} {time:>12}", class.gpus, class.jobs)?;
            }
        }
        if !self.workloads.is_empty() {
            writeln!(f, "{}", if plain { "\nJobs of each workload" } else { "\nWorkload                                       jobs" })?;
            let most = self.workloads.values().copied().max().unwrap_or_default();
            for (name, jobs) in &self.workloads {
                if plain {
                    writeln!(f, "{name}: {jobs}")?;
                } else {
                    writeln!(f, "  {:<42} {jobs:>6}  {}", shortened(name, 42), bar(*jobs, most, 24))?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.per_hour.map_or_else(|| "all at once".to_owned(), |rate| format!("{rate:.1} an hour"));
        writeln!(f, "{}", labelled("Arrivals", VALUES, &format!("{rate} over {}", duration(self.span_s))))?;
        let gaps = [("mean", self.mean_gap_s), ("p50", self.p50_gap_s), ("p95", self.p95_gap_s)];
        let gaps = gaps.map(|(name, gap)| format!("{name} {}", duration(gap)));
        writeln!(f, "{}", labelled("  gaps", VALUES, &gaps.join(", ")))?;
        if let Some(burstiness) = self.burstiness {
            let text = format!("{burstiness:.2} (0 a clock, 1 independent, more: bursts)");
            writeln!(f, "{}", labelled("  burstiness", VALUES, &text))?;
        }
        let most = self.hours.counts.iter().copied().max().unwrap_or_default();
        let each = if self.hours.each == 1 { "each hour".to_owned() } else { format!("each {} h", self.hours.each) };
        if Terminal::current().plain {
            let counts: Vec<String> = self.hours.counts.iter().map(ToString::to_string).collect();
            return writeln!(f, "jobs in {each}: {}", counts.join(", "));
        }
        writeln!(f, "  {each}, most {most}:")?;
        writeln!(f, "  |{}|", self.hours.counts.iter().map(|jobs| column(*jobs, most)).collect::<String>())
    }
}

impl fmt::Display for Durations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("mean {}, longest {}", duration(self.mean_s), duration(self.max_s));
        writeln!(f, "{}", labelled("Time alone", VALUES, &text))?;
        let ranks = [("p50", self.p50_s), ("p90", self.p90_s), ("p95", self.p95_s), ("p99", self.p99_s)];
        let ranks = ranks.map(|(name, time)| format!("{name} {}", duration(time))).join(", ");
        let plain = Terminal::current().plain;
        writeln!(f, "{}", if plain { format!("percentiles: {ranks}") } else { format!("{:VALUES$}{ranks}", "") })?;
        let most = self.classes.iter().map(|class| class.jobs).max().unwrap_or_default();
        let used = |class: &DurationClass| class.jobs > 0;
        let first = self.classes.iter().position(used).unwrap_or_default();
        let last = self.classes.iter().rposition(used).unwrap_or_default();
        for class in &self.classes[first..=last] {
            if plain {
                writeln!(f, "jobs of {}: {}", class.length, class.jobs)?;
            } else {
                writeln!(f, "{}", format!("  {:<12} {:>8}  {}", class.length, class.jobs, bar(class.jobs, most, BAR)).trim_end())?;
            }
        }
        Ok(())
    }
}

/// A bar with a resolution of an eighth of a column; nonzero values are always visible.
fn bar(value: usize, most: usize, width: usize) -> String {
    let parts = &Terminal::current().glyphs().eighths;
    let eighths = (value * width * 8).checked_div(most).unwrap_or(0).max(usize::from(value > 0));
    parts[8].repeat(eighths / 8) + parts[eighths % 8]
}

/// A bar of one line's height.
fn column(value: usize, most: usize) -> char {
    let height = (value * 8).checked_div(most).unwrap_or(0).max(usize::from(value > 0));
    if height == 0 { ' ' } else { Terminal::current().glyphs().levels[height - 1] }
}
