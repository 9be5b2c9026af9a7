//! Gradient-boosted regression trees: each tree corrects what those before it got wrong.

mod bins;
mod grow;

use serde::{Deserialize, Serialize};

use bins::Bins;

/// What is made small.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// Squared error: the answer is the likely value.
    Squared,
    /// Quantile loss: this share of values lies below the answer.
    Quantile(f64),
}

/// How trees are grown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// What is made small.
    pub loss: Loss,
    /// Trees in all.
    pub trees: usize,
    /// Share of a tree's correction that is taken over.
    pub rate: f64,
    /// Questions from root to leaf at most.
    pub depth: usize,
    /// Rows in a leaf at least.
    pub least_rows: usize,
    /// Share of rows that each tree sees.
    pub rows: f64,
    /// Share of features that each tree sees.
    pub features: f64,
    /// Decides which ones.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { loss: Loss::Squared, trees: 400, rate: 0.05, depth: 5, least_rows: 5, rows: 0.7, features: 0.6, seed: 1 }
    }
}

/// Trees grown from rows.
///
/// ```
/// use carma_estimate::learning::boosted_trees::{BoostedTrees, Options};
/// let rows: Vec<Vec<f32>> = (0..100_u8).map(|x| vec![f32::from(x)]).collect();
/// let values: Vec<f64> = rows.iter().map(|row| if row[0] < 50.0 { 1.0 } else { 3.0 }).collect();
/// let trees = BoostedTrees::grow(&rows, &values, Options::default());
/// assert!((trees.predict(&[10.0]) - 1.0).abs() < 0.1 && (trees.predict(&[90.0]) - 3.0).abs() < 0.1);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoostedTrees {
    base: f32,
    trees: Vec<Tree>,
}

/// Nodes from the root on; children of a node stand side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Tree(Vec<Node>);

/// A question (feature, threshold, place of the child for "not above"; the other one follows) or, with a child of 0, an answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Node(u16, f32, u16);

impl Tree {
    fn answer(&self, row: &[f32]) -> f32 {
        let mut at = 0;
        // Children stand after their parent, so this ends; a damaged file cannot lead outside.
        while let Some(&Node(feature, value, child)) = self.0.get(at) {
            if usize::from(child) <= at {
                return value;
            }
            let above = row.get(usize::from(feature)).is_some_and(|found| *found > value);
            at = usize::from(child) + usize::from(above);
        }
        0.0
    }
}

impl BoostedTrees {
    /// Grows trees for rows of features, all of the same width, and their values.
    pub fn grow(rows: &[Vec<f32>], values: &[f64], options: Options) -> Self {
        let bins = Bins::of(rows);
        let base = match options.loss {
            Loss::Squared => values.iter().sum::<f64>() / values.len().max(1) as f64,
            Loss::Quantile(share) => quantile(&mut values.to_vec(), share),
        };
        let mut answers = vec![base; values.len()];
        let mut random = fastrand::Rng::with_seed(options.seed);
        let mut trees = Vec::with_capacity(options.trees);
        for _ in 0..options.trees {
            let residuals: Vec<f64> = values.iter().zip(&answers).map(|(value, answer)| value - answer).collect();
            let tree = grow::tree(&bins, &residuals, &options, &mut random);
            for (answer, row) in answers.iter_mut().zip(rows) {
                *answer += f64::from(tree.answer(row));
            }
            trees.push(tree);
        }
        Self { base: base as f32, trees }
    }

    /// The answer for a row of features.
    pub fn predict(&self, row: &[f32]) -> f64 {
        f64::from(self.base) + self.trees.iter().map(|tree| f64::from(tree.answer(row))).sum::<f64>()
    }
}

/// The value below which this share of values lies.
pub(crate) fn quantile(values: &mut [f64], share: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let place = ((values.len() as f64 * share) as usize).min(values.len() - 1);
    *values.select_nth_unstable_by(place, f64::total_cmp).1
}
