//! Training of gradient-boosted regression trees.

mod bins;
mod tree;

use carma_estimate::learned::BoostedTrees;
use fastrand::Rng;

use bins::Bins;

/// The loss that training minimizes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// Squared error: the prediction is the mean.
    Squared,
    /// Quantile loss: this share of values is below the prediction.
    Quantile(f64),
}

/// Training options.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// The loss.
    pub loss: Loss,
    /// Number of trees.
    pub trees: usize,
    /// Learning rate.
    pub rate: f64,
    /// Maximum depth.
    pub depth: usize,
    /// Minimum rows in a leaf.
    pub least_rows: usize,
    /// Share of rows that each tree uses.
    pub rows: f64,
    /// Share of features that each tree uses.
    pub features: f64,
    /// Seed of both choices.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { loss: Loss::Squared, trees: 400, rate: 0.05, depth: 5, least_rows: 5, rows: 0.7, features: 0.6, seed: 1 }
    }
}

/// Grows trees for rows of features, all of the same width, and their values.
///
/// ```
/// use carma_learn::trees::{Options, grow};
/// let rows: Vec<Vec<f32>> = (0..100_u8).map(|x| vec![f32::from(x)]).collect();
/// let values: Vec<f64> = rows.iter().map(|row| if row[0] < 50.0 { 1.0 } else { 3.0 }).collect();
/// let trees = grow(&rows, &values, Options::default());
/// assert!((trees.predict(&[10.0]) - 1.0).abs() < 0.1 && (trees.predict(&[90.0]) - 3.0).abs() < 0.1);
/// ```
pub fn grow(rows: &[Vec<f32>], values: &[f64], options: Options) -> BoostedTrees {
    let bins = Bins::of(rows);
    let base = match options.loss {
        Loss::Squared => values.iter().sum::<f64>() / values.len().max(1) as f64,
        Loss::Quantile(share) => quantile(&mut values.to_vec(), share),
    };
    let mut answers = vec![base; values.len()];
    let mut random = Rng::with_seed(options.seed);
    let mut trees = Vec::with_capacity(options.trees);
    for _ in 0..options.trees {
        let residuals: Vec<f64> = values.iter().zip(&answers).map(|(value, answer)| value - answer).collect();
        let tree = tree::grow(&bins, &residuals, &options, &mut random);
        for (answer, row) in answers.iter_mut().zip(rows) {
            *answer += f64::from(tree.predict(row));
        }
        trees.push(tree);
    }
    BoostedTrees { base: base as f32, trees }
}

/// The value below which this share of values lies. Not interpolated, and without sorting: training calls it for every leaf.
pub(crate) fn quantile(values: &mut [f64], share: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let place = ((values.len() as f64 * share) as usize).min(values.len() - 1);
    *values.select_nth_unstable_by(place, f64::total_cmp).1
}
