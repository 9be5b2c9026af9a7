//! The first two principal components.

/// Rows of standardised features on their first two principal components, found by power iteration.
pub fn pca(rows: &[Vec<f32>]) -> Vec<[f64; 2]> {
    let rows = standardised(rows);
    let width = rows.first().map_or(0, Vec::len);
    let mut covariance = vec![vec![0.0; width]; width];
    for row in &rows {
        for (sums, one) in covariance.iter_mut().zip(row) {
            for (sum, other) in sums.iter_mut().zip(row) {
                *sum += one * other / rows.len() as f64;
            }
        }
    }
    let first = strongest(&covariance);
    let strength = dot(&first, &times(&covariance, &first));
    for (row, one) in covariance.iter_mut().zip(&first) {
        for (value, other) in row.iter_mut().zip(&first) {
            *value -= strength * one * other;
        }
    }
    let second = strongest(&covariance);
    rows.iter().map(|row| [dot(row, &first), dot(row, &second)]).collect()
}

/// Columns of zero mean and unit variance; those that do not vary become zero.
pub(super) fn standardised(rows: &[Vec<f32>]) -> Vec<Vec<f64>> {
    let width = rows.iter().map(Vec::len).min().unwrap_or(0);
    let count = rows.len().max(1) as f64;
    let column = |place: usize| rows.iter().map(move |row| f64::from(row[place]));
    let scale = |place: usize| {
        let mean = column(place).sum::<f64>() / count;
        let variance = column(place).map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        (mean, if variance > 1e-12 { 1.0 / variance.sqrt() } else { 0.0 })
    };
    let scales: Vec<(f64, f64)> = (0..width).map(scale).collect();
    rows.iter().map(|row| row.iter().zip(&scales).map(|(value, (mean, scale))| (f64::from(*value) - mean) * scale).collect()).collect()
}

fn strongest(matrix: &[Vec<f64>]) -> Vec<f64> {
    // Uneven, so that it is not orthogonal to a component.
    let mut vector: Vec<f64> = (0..matrix.len()).map(|place| 1.0 + 0.1 * place as f64).collect();
    for _ in 0..200 {
        vector = times(matrix, &vector);
        let length = dot(&vector, &vector).sqrt().max(1e-300);
        for value in &mut vector {
            *value /= length;
        }
    }
    vector
}

fn times(matrix: &[Vec<f64>], vector: &[f64]) -> Vec<f64> {
    matrix.iter().map(|row| dot(row, vector)).collect()
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}
