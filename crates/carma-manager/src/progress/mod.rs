//! How far a job is, from what it prints: tqdm, HF Trainer, Lightning, Keras, and lines such as `epoch 2/10 step 30/100`. Pure.
//!
//! ```text
//!  bytes ─► lines ─► a bar (label, done, total) or an epoch (number, of how many, steps) ─► share of the whole
//! ```
//!
//! Nested bars count as the outermost bar plus the fraction of the innermost. A bar that begins again and again is one of an unknown number: it says
//! nothing, unless the number of epochs is known.

mod bar;
mod epoch;
mod numbers;

use self::bar::Bar;
use self::epoch::{EpochLine, announced_epochs, logged_epoch};
use crate::api::LogStream;
use crate::judge::plain;

/// Longer lines are cut: bars and epochs are at their beginning.
const LONGEST_LINE: usize = 400;
/// Bars that are followed at the same time.
const MOST_BARS: usize = 8;

/// Reads the output of a job piece by piece.
///
/// The cost is linear in the bytes, without backtracking; the state is a few hundred bytes.
#[derive(Debug, Default)]
pub(crate) struct OutputProgress {
    /// The beginnings of lines that are not complete: of standard output and standard error.
    partial: [Vec<u8>; 2],
    /// How many epochs there are, by the command line or by what was printed.
    epochs: Option<f64>,
    /// Epochs that are done, with the fraction of the present one.
    epoch: Option<Epoch>,
    /// In the order in which they appeared: the outermost first.
    bars: Vec<ParsedBar>,
    updates: u64,
}

#[derive(Debug, Clone, Copy)]
struct Epoch {
    number: f64,
    total: Option<f64>,
    /// The first has number 0.
    from_zero: bool,
    within: f64,
}

#[derive(Debug)]
struct ParsedBar {
    bar: Bar,
    /// It began again.
    repeats: bool,
    /// When it changed last, in lines.
    updated: u64,
}

impl OutputProgress {
    /// For a job whose command line says this about its epochs.
    pub(crate) fn new(epochs: Option<f64>) -> Self {
        Self { epochs, ..Self::default() }
    }

    /// Takes in what was printed next.
    pub(crate) fn read(&mut self, stream: LogStream, bytes: &[u8]) {
        let mut lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r'));
        // A bar rewrites its line: each state of it counts as a line.
        self.extend(stream, lines.next().unwrap_or_default());
        for line in lines {
            let text = plain(&std::mem::take(&mut self.partial[stream as usize]));
            self.line(text.trim_matches(|letter: char| letter.is_whitespace() || letter.is_control()));
            self.extend(stream, line);
        }
    }

    fn extend(&mut self, stream: LogStream, bytes: &[u8]) {
        let partial = &mut self.partial[stream as usize];
        let room = LONGEST_LINE.saturating_sub(partial.len());
        partial.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn line(&mut self, line: &str) {
        if line.is_empty() {
            return;
        }
        self.updates += 1;
        let small = line.to_lowercase();
        if let Some(bar) = Bar::read(line) {
            if !bar.is_aside() {
                self.bar(bar);
            }
        } else if let Some(epochs) = announced_epochs(&small) {
            self.epochs = Some(epochs);
        } else if let Some(done) = logged_epoch(&small) {
            self.epoch = Some(Epoch { number: done.floor(), total: None, from_zero: true, within: done.fract() });
        } else if let Some(epoch) = EpochLine::read(&small) {
            self.epoch(epoch);
        } else if let Some(bar) = Bar::of_steps(&small) {
            self.bar(bar);
        }
    }

    fn bar(&mut self, bar: Bar) {
        if let Some(epoch) = EpochLine::of_label(&bar) {
            return self.epoch(epoch);
        }
        if let Some(seen) = self.bars.iter_mut().find(|seen| seen.bar.is_same(&bar)) {
            seen.repeats |= bar.done < seen.bar.done;
            (seen.bar, seen.updated) = (bar, self.updates);
        } else {
            if self.bars.len() == MOST_BARS {
                // The outermost stays.
                self.bars.remove(1);
            }
            self.bars.push(ParsedBar { bar, repeats: false, updated: self.updates });
        }
        if let Some(epoch) = &mut self.epoch {
            epoch.within = self.bars.iter().max_by_key(|seen| seen.updated).map_or(0.0, |seen| seen.bar.fraction());
        }
    }

    fn epoch(&mut self, line: EpochLine) {
        let before = self.epoch;
        let from_zero = line.from_zero || line.number < 1.0 || before.is_some_and(|before| before.from_zero);
        let same = before.is_some_and(|before| (before.number - line.number).abs() < 0.5);
        let within = line.within.unwrap_or(if same { before.map_or(0.0, |before| before.within) } else { 0.0 });
        self.epoch = Some(Epoch { number: line.number, total: line.total, from_zero, within });
        self.bars.clear();
    }

    /// The share of the whole that is done, if that can be told.
    pub(crate) fn done(&self) -> Option<f64> {
        let share = self.by_epochs().or_else(|| self.by_bars())?;
        Some(share.clamp(0.0, 1.0))
    }

    fn by_epochs(&self) -> Option<f64> {
        let epoch = self.epoch?;
        let total = epoch.total.map(|last| if epoch.from_zero { last + 1.0 } else { last }).or(self.epochs)?;
        let begun = if epoch.from_zero { epoch.number } else { epoch.number - 1.0 };
        (total > 0.0).then(|| (begun + epoch.within) / total)
    }

    fn by_bars(&self) -> Option<f64> {
        if self.epoch.is_some() {
            // Its bars are those of one epoch.
            return None;
        }
        let outer = self.bars.iter().find(|seen| !seen.repeats && !seen.bar.is_complete());
        let outer = outer.or_else(|| self.bars.iter().filter(|seen| !seen.repeats).max_by_key(|seen| seen.updated))?;
        let inner =
            self.bars.iter().filter(|seen| !seen.bar.is_same(&outer.bar) && seen.updated > outer.updated).max_by_key(|seen| seen.updated);
        let within = inner.map_or(0.0, |inner| inner.bar.fraction());
        Some((outer.bar.done + within.min(0.999)) / outer.bar.total).map(|share| share.min(1.0))
    }
}

#[cfg(test)]
mod tests;
