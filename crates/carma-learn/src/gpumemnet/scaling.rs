//! Fit of the scaling of features to the training rows.

use carma_estimate::learned::Features;
use carma_estimate::learned::gpumemnet::{Scaling, logarithms};

use crate::short::short;

/// The scaling to zero mean and unit variance over these rows.
pub(super) fn fit<'a>(rows: impl Iterator<Item = &'a Features> + Clone) -> Scaling {
    let width = rows.clone().next().map_or(0, |features| features.whole.len());
    let whole = (0..width).map(|place| standard(rows.clone().map(|features| (features.whole[place], 1.0)))).collect();
    let tokens = rows.flat_map(|features| &features.tokens);
    let layer = |place: usize| standard(tokens.clone().map(|token| (logarithms(token)[place], token.count as f32)));
    Scaling { whole, layers: (0..2).map(layer).collect() }
}

/// Mean and one over the standard deviation of weighted values; constant values are not scaled.
fn standard(values: impl Iterator<Item = (f32, f32)> + Clone) -> (f32, f32) {
    let (weight, sum) = values.clone().fold((0.0, 0.0), |(all, sum), (value, weight)| {
        let weight = f64::from(weight);
        (all + weight, sum + weight * f64::from(value))
    });
    let mean = sum / f64::max(weight, 1e-9);
    let squares: f64 = values.map(|(value, weight)| f64::from(weight) * (f64::from(value) - mean).powi(2)).sum();
    let variance = squares / weight.max(1e-9);
    (short(mean as f32), short(if variance > 1e-12 { (1.0 / variance.sqrt()) as f32 } else { 1.0 }))
}
