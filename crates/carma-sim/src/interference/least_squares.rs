//! Nonlinear least squares (Levenberg-Marquardt), for a few hundred residuals and parameters.

/// The parameters near `start` that minimize the sum of squared residuals.
pub(super) fn minimise(start: Vec<f64>, residuals: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    const STEP: f64 = 1e-6;
    let cost = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
    let mut at = start;
    let mut now = residuals(&at);
    let mut damping = 1e-3;
    for _ in 0..60 {
        let slopes: Vec<Vec<f64>> = (0..at.len())
            .map(|parameter| {
                let mut moved = at.clone();
                moved[parameter] += STEP;
                residuals(&moved).iter().zip(&now).map(|(after, before)| (after - before) / STEP).collect()
            })
            .collect();
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let gradient: Vec<f64> = slopes.iter().map(|slope| -product(slope, &now)).collect();
        let normal: Vec<Vec<f64>> = slopes.iter().map(|row| slopes.iter().map(|column| product(row, column)).collect()).collect();
        let before = cost(&now);
        let better = (0..12).find_map(|_| {
            let mut damped = normal.clone();
            damped.iter_mut().enumerate().for_each(|(place, row)| row[place] += damping * (row[place] + 1e-9));
            let moved: Vec<f64> = at.iter().zip(solve(damped, gradient.clone())).map(|(value, step)| value + step).collect();
            let after = residuals(&moved);
            if cost(&after) < before {
                damping = (damping / 10.0).max(1e-12);
                return Some((moved, after));
            }
            damping *= 4.0;
            None
        });
        let Some((moved, after)) = better else { break };
        (at, now) = (moved, after);
        if before - cost(&now) < 1e-10 * before {
            break;
        }
    }
    at
}

/// Solves a symmetric positive definite system by Cholesky factorisation.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let size = right.len();
    for row in 0..size {
        for column in 0..=row {
            let known: f64 = (0..column).map(|place| matrix[row][place] * matrix[column][place]).sum();
            let rest = matrix[row][column] - known;
            matrix[row][column] = if row == column { rest.max(1e-300).sqrt() } else { rest / matrix[column][column] };
        }
    }
    for row in 0..size {
        let known: f64 = (0..row).map(|place| matrix[row][place] * right[place]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|place| matrix[place][row] * right[place]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_system_is_solved_exactly() {
        let solved = solve(vec![vec![4.0, 2.0], vec![2.0, 3.0]], vec![10.0, 9.0]);
        assert!((solved[0] - 1.5).abs() < 1e-12 && (solved[1] - 2.0).abs() < 1e-12, "{solved:?}");
    }

    #[test]
    fn an_exponential_is_found_from_its_points() {
        let points: Vec<(f64, f64)> = (0..20).map(|x| (f64::from(x) / 10.0, 3.0 * (-1.5 * f64::from(x) / 10.0).exp())).collect();
        let found = minimise(vec![1.0, 0.0], |p| points.iter().map(|(x, y)| p[0] * (p[1] * x).exp() - y).collect());
        assert!((found[0] - 3.0).abs() < 1e-6 && (found[1] + 1.5).abs() < 1e-6, "{found:?}");
    }
}
