//! Progress bars: tqdm, Rich, Keras, and steps without a bar.

use super::numbers::{after_word, fraction};

/// Labels of bars that are not the training: what is loaded, converted or tested.
const ASIDE: [&str; 24] = [
    "download", "load", "fetch", "extract", "upload", "sav", "map", "filter", "token", "generat", "convert", "cach", "process", "read",
    "writ", "build", "collat", "resolv", "valid", "eval", "test", "predict", "sanity", "infer",
];

/// A progress bar at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) done: f64,
    pub(super) total: f64,
    /// Lightning counts epochs in the labels of such bars from 0 to the last.
    pub(super) rich: bool,
}

impl Bar {
    /// A line with a bar.
    pub(super) fn read(line: &str) -> Option<Self> {
        Self::tqdm(line).or_else(|| Self::keras(line)).or_else(|| Self::rich(line))
    }

    /// `label:  45%|####5     | 45/100 [00:12<00:15,  3.6it/s]`.
    fn tqdm(line: &str) -> Option<Self> {
        let (before, after) = line.split_once("%|")?;
        let label = before.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
        let (_, counts) = after
            .rsplit_once("| ")
            .or_else(|| after.rsplit_once('|'))
            .filter(|(_, counts)| counts.contains('/'))
            .or_else(|| after.split_once("| "))?;
        let (done, total, rest) = fraction(counts.trim_start())?;
        // Bytes are downloads.
        (!rest.starts_with('B') && !rest.contains("B/s")).then(|| Self {
            label: label.trim().trim_end_matches(':').to_owned(),
            done,
            total,
            rich: false,
        })
    }

    /// `45/100 [====>.....] - ETA: 5s` or `45/100 ━━━━━━━━━━ 5s 3ms/step`.
    fn keras(line: &str) -> Option<Self> {
        let (done, total, rest) = fraction(line)?;
        let rest = rest.trim_start();
        let is_bar = rest.starts_with(['━', '╸', '─']) || rest.strip_prefix('[').is_some_and(|bar| bar.starts_with(['=', '>', '.']));
        is_bar.then(|| Self { label: String::new(), done, total, rich: false })
    }

    /// `Epoch 3/9 ━━━━━━━━━━╸━━━ 45/100 0:00:12 • 0:00:15 3.60it/s`.
    fn rich(line: &str) -> Option<Self> {
        let start = line.find(['━', '╸'])?;
        let counts = line[start..].trim_start_matches(['━', '╸', '╺', '─', ' ']);
        let (done, total, _) = fraction(counts)?;
        Some(Self { label: line[..start].trim().to_owned(), done, total, rich: true })
    }

    /// `step 30/100`, in small letters.
    pub(super) fn of_steps(line: &str) -> Option<Self> {
        let (done, total, _) = steps(line)?;
        Some(Self { label: "step".to_owned(), done, total, rich: false })
    }

    /// Whether it is the same bar at another moment. Numbers in labels change: they are losses and epochs.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        fn words(label: &str) -> impl Iterator<Item = char> + '_ {
            label.chars().filter(|letter| letter.is_alphabetic())
        }
        (self.total - other.total).abs() < 0.5 && words(&self.label).eq(words(&other.label))
    }

    pub(super) fn fraction(&self) -> f64 {
        self.done / self.total
    }

    pub(super) fn is_complete(&self) -> bool {
        self.done >= self.total
    }

    /// Whether it is about something other than training.
    pub(super) fn is_aside(&self) -> bool {
        let label = self.label.to_lowercase();
        ASIDE.iter().any(|word| label.contains(word))
    }
}

/// `step 30/100` somewhere in a line of small letters.
pub(super) fn steps(line: &str) -> Option<(f64, f64, &str)> {
    ["step", "iteration", "iter", "batch"].iter().find_map(|word| fraction(after_word(line, word)?))
}
