//! What a training script prints about how far it is.

use std::io::{self, Write};

/// Steps that a second of training alone has.
const STEPS: f64 = 10.0;
/// Lines an epoch has at least.
const LINES: f64 = 10.0;
/// Seconds of training alone between two lines, at most.
const LONGEST: f64 = 60.0;

/// How far training is, told line by line. Work is in seconds as a catalogue counts them.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    total: f64,
    epochs: u32,
    lines_an_epoch: u32,
    told: u32,
}

impl Progress {
    /// Of training that takes so long alone, of which so much was done before.
    pub(super) fn new(total: f64, epochs: u32, done: f64) -> Self {
        let epochs = epochs.max(1);
        let lines_an_epoch = (total / f64::from(epochs) / LONGEST).ceil().max(LINES) as u32;
        let mut progress = Self { total, epochs, lines_an_epoch, told: 0 };
        progress.told = (done / progress.line()) as u32;
        progress
    }

    /// All there is to do.
    pub(super) const fn total(&self) -> f64 {
        self.total
    }

    /// Whether so much is all.
    pub(super) fn finished(&self, done: f64) -> bool {
        done >= self.total
    }

    /// The epoch that so much leads into, from 1.
    pub(super) fn epoch(&self, done: f64) -> u32 {
        ((done / self.total * f64::from(self.epochs)) as u32 + 1).min(self.epochs)
    }

    /// How much must be done for the next line.
    pub(super) fn next(&self) -> f64 {
        (f64::from(self.told + 1) * self.line()).min(self.total)
    }

    /// Prints the lines that are due now that so much is done, at this many seconds of work a second.
    pub(super) fn tell(&mut self, done: f64, rate: f64, output: &mut impl Write) -> io::Result<()> {
        // Divisions are not exact, and the last line must not be lost by that.
        let due = if self.finished(done) { self.epochs * self.lines_an_epoch } else { (done / self.line()) as u32 };
        let Self { epochs, lines_an_epoch, .. } = *self;
        let steps = (self.total / f64::from(epochs) * STEPS).ceil();
        for line in self.told..due {
            let (epoch, within) = (line / lines_an_epoch + 1, f64::from(line % lines_an_epoch + 1) / f64::from(lines_an_epoch));
            let share = f64::from(line + 1) / f64::from(epochs * lines_an_epoch);
            let (step, loss, pace) = ((steps * within).round(), loss(share), rate * STEPS);
            writeln!(output, "epoch {epoch}/{epochs}  step {step}/{steps}  loss {loss:.4}  {pace:.2} steps/s")?;
        }
        self.told = self.told.max(due);
        Ok(())
    }

    /// Work between two lines.
    fn line(&self) -> f64 {
        self.total / f64::from(self.epochs) / f64::from(self.lines_an_epoch)
    }
}

/// A loss that falls as losses do. Nothing is learned here.
fn loss(share: f64) -> f64 {
    0.3 + 6.6 / (1.0 + 12.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(progress: &mut Progress, done: f64) -> Vec<String> {
        let mut output = Vec::new();
        progress.tell(done, 0.5, &mut output).unwrap();
        String::from_utf8(output).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn each_line_is_told_once_however_seldom_one_looks() {
        let mut progress = Progress::new(200.0, 2, 0.0);
        assert!((progress.next() - 10.0).abs() < 1e-9);
        assert_eq!(told(&mut progress, 9.0).len(), 0);
        assert_eq!(
            told(&mut progress, 25.0),
            ["epoch 1/2  step 100/1000  loss 4.4250  5.00 steps/s", "epoch 1/2  step 200/1000  loss 3.3000  5.00 steps/s"]
        );
        assert_eq!(told(&mut progress, 1000.0).len(), 18);
        assert_eq!(told(&mut progress, 2000.0).len(), 0);
        assert!(progress.finished(200.0) && !progress.finished(199.9));
    }

    #[test]
    fn what_was_done_before_is_not_told_again() {
        let mut progress = Progress::new(200.0, 2, 105.0);
        assert_eq!(progress.epoch(105.0), 2);
        assert_eq!(told(&mut progress, 111.0), ["epoch 2/2  step 100/1000  loss 1.1684  5.00 steps/s"]);
    }

    #[test]
    fn long_epochs_have_more_lines() {
        assert!((Progress::new(6000.0, 1, 0.0).next() - 60.0).abs() < 1e-9);
    }
}
