//! Fit of a linear regression with a ridge penalty: sufficient for a few dozen rows.

use carma_estimate::utilisation::Ridge;

/// Weight of the penalty, in rows.
const PENALTY: f64 = 1.0;

/// Fits rows and their values; without rows, every prediction is 0.
pub(super) fn fit<const N: usize>(rows: &[[f64; N]], values: &[f64]) -> Ridge {
    let count = rows.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let centres: [f64; N] = std::array::from_fn(|of| rows.iter().map(|row| row[of]).sum::<f64>() / count);
    let spreads: [f64; N] =
        std::array::from_fn(|of| (rows.iter().map(|row| (row[of] - centres[of]).powi(2)).sum::<f64>() / count).sqrt().max(1e-9));
    // Normal equations; the last column is the right-hand side.
    let mut matrix = [[0.0; N]; N];
    let mut right = [0.0; N];
    for (row, value) in rows.iter().zip(values) {
        let scaled: [f64; N] = std::array::from_fn(|of| (row[of] - centres[of]) / spreads[of]);
        for of in 0..N {
            right[of] += scaled[of] * (value - mean);
            for with in 0..N {
                matrix[of][with] += scaled[of] * scaled[with];
            }
        }
    }
    for (of, line) in matrix.iter_mut().enumerate() {
        line[of] += PENALTY;
    }
    let solution = solve(matrix, right);
    // Five digits are enough, and equal on every machine.
    let digits = |number: f64| format!("{number:.5e}").parse().unwrap_or(number);
    let slopes = solution.iter().zip(spreads).map(|(slope, spread)| digits(slope / spread)).collect();
    Ridge { mean: digits(mean), centres: centres.map(digits).to_vec(), slopes }
}

/// Elimination without pivoting, which a positive definite matrix does not need.
fn solve<const N: usize>(mut matrix: [[f64; N]; N], mut right: [f64; N]) -> [f64; N] {
    for pivot in 0..N {
        let line = matrix[pivot];
        for below in pivot + 1..N {
            let factor = matrix[below][pivot] / line[pivot];
            for (to, from) in matrix[below].iter_mut().zip(line) {
                *to -= factor * from;
            }
            right[below] -= factor * right[pivot];
        }
    }
    for pivot in (0..N).rev() {
        let known: f64 = (pivot + 1..N).map(|after| matrix[pivot][after] * right[after]).sum();
        right[pivot] = (right[pivot] - known) / matrix[pivot][pivot];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plane_is_found() {
        let rows: Vec<[f64; 2]> = (0..400).map(|row| [f64::from(row % 20), f64::from(row / 20)]).collect();
        let values: Vec<f64> = rows.iter().map(|[x, y]| 3.0 + 2.0 * x - y).collect();
        let ridge = fit(&rows, &values);
        assert!((ridge.predict(&[4.0, 7.0]) - 4.0).abs() < 0.1, "{ridge:?}");
        assert!(fit::<2>(&[], &[]).predict(&[1.0, 1.0]).abs() < 1e-12);
        assert!((fit(&[[5.0]; 4], &[2.0; 4]).predict(&[5.0]) - 2.0).abs() < 1e-9);
    }
}
