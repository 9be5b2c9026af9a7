//! One tree: the best split at each node, by sums over bins.

use carma_estimate::learned::{Node, Tree};
use fastrand::Rng;

use super::bins::Bins;
use super::{Loss, Options, quantile};
use crate::short::short;

/// A node that is still to be split: its index, its rows, its depth.
struct Open {
    node: usize,
    rows: Vec<usize>,
    depth: usize,
}

/// Grows a tree for the residuals, on a share of the rows and features.
pub(super) fn grow(bins: &Bins, residuals: &[f64], options: &Options, random: &mut Rng) -> Tree {
    let mut some = |count: usize, share: f64| {
        let mut all: Vec<usize> = (0..count).collect();
        random.shuffle(&mut all);
        all.truncate(((count as f64 * share).ceil() as usize).max(1));
        all.sort_unstable();
        all
    };
    let rows = some(bins.rows, options.rows);
    let features = some(bins.cuts.len(), options.features);
    let grads: Vec<f64> = match options.loss {
        Loss::Squared => residuals.to_vec(),
        Loss::Quantile(share) => residuals.iter().map(|rest| if *rest > 0.0 { share } else { share - 1.0 }).collect(),
    };
    let mut nodes = vec![Node(0, 0.0, 0)];
    let mut open = vec![Open { node: 0, rows, depth: 0 }];
    while let Some(Open { node, rows, depth }) = open.pop() {
        let split = if depth < options.depth { best_split(bins, &rows, &features, &grads, options.least_rows) } else { None };
        let Some((feature, cut)) = split else {
            nodes[node] = Node(0, leaf(&rows, residuals, options), 0);
            continue;
        };
        let child = nodes.len();
        nodes[node] = Node(feature as u16, bins.cuts[feature][cut], child as u16);
        nodes.extend([Node(0, 0.0, 0); 2]);
        let (below, above) = rows.into_iter().partition(|row| usize::from(bins.places[feature][*row]) <= cut);
        open.extend([Open { node: child, rows: below, depth: depth + 1 }, Open { node: child + 1, rows: above, depth: depth + 1 }]);
    }
    Tree(nodes)
}

fn leaf(rows: &[usize], residuals: &[f64], options: &Options) -> f32 {
    let mut rest: Vec<f64> = rows.iter().map(|row| residuals[*row]).collect();
    let value = match options.loss {
        Loss::Squared => rest.iter().sum::<f64>() / rest.len().max(1) as f64,
        Loss::Quantile(share) => quantile(&mut rest, share),
    };
    short((options.rate * value) as f32)
}

/// The feature and cut with the largest reduction of the squared error, if any.
fn best_split(bins: &Bins, rows: &[usize], features: &[usize], grads: &[f64], least: usize) -> Option<(usize, usize)> {
    let total: f64 = rows.iter().map(|row| grads[*row]).sum();
    let worth = |sum: f64, count: f64| sum * sum / count;
    let whole = worth(total, rows.len() as f64);
    let mut best = None;
    let mut most = whole + 1e-9 * whole.abs() + 1e-12;
    for &feature in features {
        let cuts = bins.cuts[feature].len();
        let mut sums = vec![(0.0, 0_usize); cuts + 1];
        let places = &bins.places[feature];
        for &row in rows {
            let (sum, count) = &mut sums[usize::from(places[row])];
            *sum += grads[row];
            *count += 1;
        }
        let (mut below, mut count) = (0.0, 0);
        for (cut, (sum, rows_here)) in sums.iter().take(cuts).enumerate() {
            below += sum;
            count += rows_here;
            let rest = rows.len() - count;
            if count < least || rest < least {
                continue;
            }
            let gain = worth(below, count as f64) + worth(total - below, rest as f64);
            if gain > most {
                most = gain;
                best = Some((feature, cut));
            }
        }
    }
    best
}
