//! Prometheus's text format, version 0.0.4.
//!
//! Written by hand: every value is taken from the engine and the store on each request, and series come and go with jobs. A registry of
//! metrics, as the usual crates have, would be one more copy to keep consistent. The format is a page of code.

use std::fmt::{Display, Write};

/// The content type of this text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It goes up and down.
    Gauge,
    /// It only grows, or restarts at zero.
    Counter,
    /// Counts by upper bound.
    Histogram,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Histogram => "histogram",
        }
    }
}

/// Name, type and help of a metric.
#[derive(Debug, Clone, Copy)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
}

/// A metric that goes up and down.
pub(super) const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, help }
}

/// A metric that only grows.
pub(super) const fn counter(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, help }
}

/// Labels of a sample, as they are written.
#[derive(Debug, Clone, Default)]
pub(super) struct Labels(String);

impl Labels {
    pub(super) fn new<const N: usize>(labels: [(&str, &dyn Display); N]) -> Self {
        labels.into_iter().fold(Self::default(), |labels, (name, value)| labels.with(name, value))
    }

    /// Adds a label.
    pub(super) fn with(mut self, name: &str, value: impl Display) -> Self {
        let comma = if self.0.is_empty() { "" } else { "," };
        let escaped = value.to_string().replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n");
        let _ = write!(self.0, "{comma}{name}=\"{escaped}\"");
        self
    }
}

/// The text so far.
#[derive(Debug, Default)]
pub(super) struct Page(String);

impl Page {
    /// All samples of one metric; a metric without samples is left out.
    pub(super) fn family<'a>(&mut self, metric: Metric, samples: impl IntoIterator<Item = (&'a Labels, Option<f64>)>) {
        let Metric { name, kind, help } = metric;
        let mut begun = false;
        for (labels, value) in samples {
            let Some(value) = value.filter(|value| value.is_finite()) else { continue };
            if !std::mem::replace(&mut begun, true) {
                self.head(name, kind, help);
            }
            self.sample(name, labels, value);
        }
    }

    /// The one sample of a metric without labels.
    pub(super) fn single(&mut self, metric: Metric, value: impl Into<Option<f64>>) {
        self.family(metric, [(&Labels::default(), value.into())]);
    }

    /// Histograms of one metric: the count of each bucket, the last without an upper bound, and the sum.
    pub(super) fn histograms(&mut self, name: &'static str, help: &'static str, bounds: &[f64], each: &[(Labels, Vec<f64>, f64)]) {
        self.head(name, Kind::Histogram, help);
        for (labels, counts, sum) in each {
            let mut below = 0.0;
            let limits = bounds.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
            for (limit, count) in limits.zip(counts) {
                below += count;
                self.sample(&format!("{name}_bucket"), &labels.clone().with("le", limit), below);
            }
            self.sample(&format!("{name}_sum"), labels, *sum);
            self.sample(&format!("{name}_count"), labels, below);
        }
    }

    /// The whole text.
    pub(super) fn into_text(self) -> String {
        self.0
    }

    fn head(&mut self, name: &str, kind: Kind, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {}", kind.word());
    }

    fn sample(&mut self, name: &str, Labels(labels): &Labels, value: f64) {
        let _ = if labels.is_empty() { writeln!(self.0, "{name} {value}") } else { writeln!(self.0, "{name}{{{labels}}} {value}") };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_follow_their_help_text() {
        let mut page = Page::default();
        let (odd, plain) = (Labels::new([("name", &"a \"b\"\\\nc"), ("gpu", &3)]), Labels::new([("name", &"x")]));
        page.family(gauge("carma_x_bytes", "So many."), [(&odd, Some(1.5)), (&plain, None), (&plain, Some(f64::NAN))]);
        page.family(counter("carma_none_total", "Nothing."), [(&plain, None)]);
        page.single(counter("carma_y_total", "All."), 12_345_678_901.0);
        page.histograms("carma_z_seconds", "Times.", &[0.5, 60.0], &[(plain, vec![1.0, 0.0, 2.0], 130.25)]);
        insta::assert_snapshot!("exposition", page.into_text());
    }
}
