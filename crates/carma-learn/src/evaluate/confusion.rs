//! Confusion matrix.

use serde::{Deserialize, Serialize};

/// How often each class was predicted for each true class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confusion {
    /// A name for each class, in order.
    pub classes: Vec<String>,
    /// Rows by true class, then by predicted class.
    pub counts: Vec<Vec<usize>>,
}

impl Confusion {
    /// Counts pairs of true and predicted class; skips pairs outside the named classes.
    pub fn of(classes: Vec<String>, pairs: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut counts = vec![vec![0; classes.len()]; classes.len()];
        for (truth, answer) in pairs {
            if let Some(count) = counts.get_mut(truth).and_then(|row| row.get_mut(answer)) {
                *count += 1;
            }
        }
        Self { classes, counts }
    }

    /// Total number of rows.
    pub fn rows(&self) -> usize {
        self.counts.iter().flatten().sum()
    }

    /// Share of correctly classified rows.
    pub fn accuracy(&self) -> f64 {
        let right: usize = self.counts.iter().enumerate().map(|(class, row)| row[class]).sum();
        right as f64 / self.rows().max(1) as f64
    }

    /// Share of rows predicted too low: these would run out of memory.
    pub fn under_share(&self) -> f64 {
        let under: usize = self.counts.iter().enumerate().map(|(class, row)| row[..class].iter().sum::<usize>()).sum();
        under as f64 / self.rows().max(1) as f64
    }
}
