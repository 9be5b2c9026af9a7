//! t-distributed stochastic neighbour embedding (t-SNE), exact, for up to about two thousand rows.

use super::pca::standardised;

/// Options of the embedding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tsne {
    /// Effective number of neighbours of a row.
    pub perplexity: f64,
    /// Steps.
    pub steps: usize,
    /// Seed of the initial positions.
    pub seed: u64,
}

impl Default for Tsne {
    fn default() -> Self {
        Self { perplexity: 30.0, steps: 500, seed: 1 }
    }
}

/// Rows of features on a plane; similar rows are near each other.
pub fn tsne(rows: &[Vec<f32>], options: Tsne) -> Vec<[f64; 2]> {
    let rows = standardised(rows);
    let count = rows.len();
    // The attraction is shared by all rows, so more rows need larger steps.
    let rate = (count as f64 / 12.0).max(10.0);
    let wanted = affinities(&rows, options.perplexity.min((count.max(4) - 1) as f64 / 3.0));
    let mut random = fastrand::Rng::with_seed(options.seed);
    let mut points: Vec<[f64; 2]> = (0..count).map(|_| [random.f64(), random.f64()].map(|share| 1e-2 * (share - 0.5))).collect();
    let mut speeds = vec![[0.0; 2]; count];
    let mut near = vec![0.0; count * count];
    for step in 0..options.steps {
        let early = step < options.steps / 4;
        // Early exaggeration: groups can pass through each other.
        let (exaggeration, momentum) = if early { (12.0, 0.5) } else { (1.0, 0.8) };
        let mut total = 0.0;
        for one in 0..count {
            for other in 0..one {
                let [x, y] = [0, 1].map(|axis| points[one][axis] - points[other][axis]);
                let closeness = 1.0 / (1.0 + x * x + y * y);
                near[one * count + other] = closeness;
                near[other * count + one] = closeness;
                total += 2.0 * closeness;
            }
        }
        let total = f64::max(total, 1e-300);
        let grad = |one: usize| {
            let mut grad = [0.0; 2];
            for other in (0..count).filter(|other| *other != one) {
                let closeness = near[one * count + other];
                let force = (exaggeration * wanted[one * count + other] - closeness / total) * closeness;
                for (axis, grad) in grad.iter_mut().enumerate() {
                    *grad += 4.0 * force * (points[one][axis] - points[other][axis]);
                }
            }
            grad
        };
        let grads: Vec<[f64; 2]> = (0..count).map(grad).collect();
        for ((point, speed), grad) in points.iter_mut().zip(&mut speeds).zip(grads) {
            for axis in 0..2 {
                speed[axis] = momentum * speed[axis] - rate * grad[axis];
                point[axis] += speed[axis];
            }
        }
    }
    points
}

/// Joint probabilities of all pairs, symmetric and with sum one. The widths of the neighbourhoods are found by bisection.
fn affinities(rows: &[Vec<f64>], perplexity: f64) -> Vec<f64> {
    let count = rows.len();
    let mut shares = vec![0.0; count * count];
    let entropy_wanted = perplexity.max(1.0).ln();
    for (one, row) in rows.iter().enumerate() {
        let distance = |other: &Vec<f64>| row.iter().zip(other).map(|(left, right)| (left - right).powi(2)).sum::<f64>();
        let distances: Vec<f64> = rows.iter().map(distance).collect();
        let (mut low, mut high, mut sharpness) = (0.0, f64::INFINITY, 1.0);
        let into = &mut shares[one * count..(one + 1) * count];
        for _ in 0..50 {
            for (other, share) in into.iter_mut().enumerate() {
                *share = if other == one { 0.0 } else { (-sharpness * distances[other]).exp() };
            }
            let total = into.iter().sum::<f64>().max(1e-300);
            let mean: f64 = into.iter().zip(&distances).map(|(share, distance)| share * distance).sum::<f64>() / total;
            for share in into.iter_mut() {
                *share /= total;
            }
            let entropy = total.ln() + sharpness * mean;
            if (entropy - entropy_wanted).abs() < 1e-4 {
                break;
            }
            if entropy > entropy_wanted {
                low = sharpness;
                sharpness = if high.is_finite() { f64::midpoint(low, high) } else { 2.0 * sharpness };
            } else {
                high = sharpness;
                sharpness = f64::midpoint(low, high);
            }
        }
    }
    let half = 1.0 / (2 * count.max(1)) as f64;
    (0..count * count).map(|pair| ((shares[pair] + shares[pair % count * count + pair / count]) * half).max(1e-12)).collect()
}
