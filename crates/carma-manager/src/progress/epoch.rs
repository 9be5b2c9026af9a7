//! Epochs in lines of text, in small letters.

use super::bar::{Bar, steps};
use super::numbers::{after_word, fraction, leading};

/// A line about an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct EpochLine {
    pub(super) number: f64,
    /// The number of the last one.
    pub(super) total: Option<f64>,
    /// How much of it is done, if the line says so.
    pub(super) within: Option<f64>,
    /// The first has number 0.
    pub(super) from_zero: bool,
}

impl EpochLine {
    /// `epoch 2/10`, `epoch [2/10], step [30/100]`, `epoch: [2][ 30/100]`, `train epoch: 2 [640/60000 (1%)]`.
    pub(super) fn read(line: &str) -> Option<Self> {
        let (number, total, rest) = numbered(after_word(line, "epoch")?)?;
        let bracket = || rest.trim_start_matches([' ', ']', ',', ':', '\t']).strip_prefix('[').and_then(|text| fraction(text.trim_start()));
        let within = steps(rest).or_else(bracket).map(|(done, of, _)| done / of);
        // A line with results is printed at the end of an epoch, one without at its beginning.
        let ended = || (total.is_some() && rest.contains(|letter: char| letter.is_ascii_digit())).then_some(1.0);
        Some(Self { number, total, within: within.or_else(ended), from_zero: false })
    }

    /// The label of a bar: `Epoch 2/10` or `Epoch 2`.
    pub(super) fn of_label(bar: &Bar) -> Option<Self> {
        let label = bar.label.to_lowercase();
        let (number, total, _) = numbered(after_word(&label, "epoch")?)?;
        Some(Self { number, total, within: Some(bar.fraction()), from_zero: bar.rich })
    }
}

fn numbered(text: &str) -> Option<(f64, Option<f64>, &str)> {
    let of = |text| fraction(text).map(|(number, total, rest)| (number, Some(total), rest));
    of(text).or_else(|| {
        let (number, rest) = leading(text)?;
        let total = rest.trim_start().strip_prefix("of ").and_then(leading);
        (number.fract() == 0.0).then(|| total.map_or((number, None, rest), |(total, rest)| (number, Some(total), rest)))
    })
}

/// `num epochs = 3`, as HF Trainer announces it.
pub(super) fn announced_epochs(line: &str) -> Option<f64> {
    let (epochs, _) = leading(line.split_once("num epochs = ")?.1)?;
    (epochs > 0.0).then_some(epochs)
}

/// `{'loss': 0.4, 'epoch': 1.25}`, as HF Trainer logs it: epochs done.
pub(super) fn logged_epoch(line: &str) -> Option<f64> {
    let fields = line.strip_prefix('{')?;
    fields.contains("'loss'").then(|| leading(after_word(fields, "epoch")?)).flatten().map(|(epoch, _)| epoch)
}
