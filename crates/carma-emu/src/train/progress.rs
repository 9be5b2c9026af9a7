//! The progress output of a training script.

use std::io::{self, Write};

/// Steps per second of training alone.
const STEPS: f64 = 10.0;
/// Lines an epoch has at least.
const LINES: f64 = 10.0;
/// Longest time of training alone between two lines, in seconds.
const MAX_LINE_INTERVAL: f64 = 60.0;

/// The progress of training, printed line by line. Work is in seconds as in the catalogue.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    total: f64,
    epochs: u32,
    lines_an_epoch: u32,
    printed: u32,
}

impl Progress {
    /// For training that takes this long alone, with this much done before.
    pub(super) fn new(total: f64, epochs: u32, done: f64) -> Self {
        let epochs = epochs.max(1);
        let lines_an_epoch = (total / f64::from(epochs) / MAX_LINE_INTERVAL).ceil().max(LINES) as u32;
        let mut progress = Self { total, epochs, lines_an_epoch, printed: 0 };
        progress.printed = (done / progress.line()) as u32;
        progress
    }

    /// The total work.
    pub(super) const fn total(&self) -> f64 {
        self.total
    }

    /// Whether this is all the work.
    pub(super) fn finished(&self, done: f64) -> bool {
        done >= self.total
    }

    /// The epoch at this amount of work, from 1.
    pub(super) fn epoch(&self, done: f64) -> u32 {
        ((done / self.total * f64::from(self.epochs)) as u32 + 1).min(self.epochs)
    }

    /// The work done at the next line.
    pub(super) fn next(&self) -> f64 {
        (f64::from(self.printed + 1) * self.line()).min(self.total)
    }

    /// Prints the lines due at this amount of work, at this many seconds of work per second.
    pub(super) fn print(&mut self, done: f64, rate: f64, output: &mut impl Write) -> io::Result<()> {
        // Divisions are not exact, and the last line must not be lost by that.
        let due = if self.finished(done) { self.epochs * self.lines_an_epoch } else { (done / self.line()) as u32 };
        let Self { epochs, lines_an_epoch, .. } = *self;
        let steps = (self.total / f64::from(epochs) * STEPS).ceil();
        for line in self.printed..due {
            let (epoch, within) = (line / lines_an_epoch + 1, f64::from(line % lines_an_epoch + 1) / f64::from(lines_an_epoch));
            let share = f64::from(line + 1) / f64::from(epochs * lines_an_epoch);
            let (step, loss, pace) = ((steps * within).round(), loss(share), rate * STEPS);
            writeln!(output, "epoch {epoch}/{epochs}  step {step}/{steps}  loss {loss:.4}  {pace:.2} steps/s")?;
        }
        self.printed = self.printed.max(due);
        Ok(())
    }

    /// Work between two lines.
    fn line(&self) -> f64 {
        self.total / f64::from(self.epochs) / f64::from(self.lines_an_epoch)
    }
}

/// A plausible falling loss; there is no real training.
fn loss(share: f64) -> f64 {
    0.3 + 6.6 / (1.0 + 12.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(progress: &mut Progress, done: f64) -> Vec<String> {
        let mut output = Vec::new();
        progress.print(done, 0.5, &mut output).unwrap();
        String::from_utf8(output).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn each_line_is_printed_once_at_any_poll_rate() {
        let mut progress = Progress::new(200.0, 2, 0.0);
        assert!((progress.next() - 10.0).abs() < 1e-9);
        assert_eq!(lines(&mut progress, 9.0).len(), 0);
        assert_eq!(
            lines(&mut progress, 25.0),
            ["epoch 1/2  step 100/1000  loss 4.4250  5.00 steps/s", "epoch 1/2  step 200/1000  loss 3.3000  5.00 steps/s"]
        );
        assert_eq!(lines(&mut progress, 1000.0).len(), 18);
        assert_eq!(lines(&mut progress, 2000.0).len(), 0);
        assert!(progress.finished(200.0) && !progress.finished(199.9));
    }

    #[test]
    fn earlier_progress_is_not_printed_again() {
        let mut progress = Progress::new(200.0, 2, 105.0);
        assert_eq!(progress.epoch(105.0), 2);
        assert_eq!(lines(&mut progress, 111.0), ["epoch 2/2  step 100/1000  loss 1.1684  5.00 steps/s"]);
    }

    #[test]
    fn long_epochs_have_more_lines() {
        assert!((Progress::new(6000.0, 1, 0.0).next() - 60.0).abs() < 1e-9);
    }
}
