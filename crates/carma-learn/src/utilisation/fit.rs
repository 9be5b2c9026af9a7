//! Fit of the predictors to some rows.

use carma_estimate::utilisation::{Counter, Predictors, activity};

use super::ridge;
use super::rows::{Row, Set};
use crate::trees::{self, Loss, Options};

/// Copies of a named workload in the training rows: there are few of them, and they are what users run.
const COPIES: usize = 5;

/// Fits predictors to rows.
pub(super) fn fit(rows: &[&Row], seed: u64) -> Predictors {
    let copies = |row: &Row| if row.set == Set::Solo { COPIES } else { 1 };
    let grown = |counter: Counter| {
        let known = rows.iter().filter_map(|row| row.measured[counter as usize].map(|value| (row, value)));
        let (inputs, values): (Vec<Vec<f32>>, Vec<f64>) =
            known.flat_map(|(row, value)| std::iter::repeat_n((row.features.values(), value), copies(row))).unzip();
        let options = Options { loss: Loss::Squared, trees: 200, rate: 0.06, depth: 4, seed, ..Options::default() };
        trees::grow(&inputs, &values, options)
    };
    // Fitted to measured activity: its relation to memory and power does not depend on how well activity is predicted.
    let line = |counter: Counter| {
        let (inputs, values): (Vec<_>, Vec<_>) = rows
            .iter()
            .filter_map(|row| match (row.measured[0], row.measured[1], row.measured[counter as usize]) {
                (Some(smact), Some(smocc), Some(value)) => Some((activity(&row.features, smact, smocc), value)),
                _ => None,
            })
            .unzip();
        ridge::fit(&inputs, &values)
    };
    Predictors { smact: grown(Counter::Smact), smocc: grown(Counter::Smocc), drama: line(Counter::Drama), power: line(Counter::Power) }
}
