//! Cross-validation: every row is predicted by a model that was not trained on it.

/// Division of rows into folds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Folds {
    /// Number of folds; each is held out once.
    pub count: usize,
    /// Seed of the assignment.
    pub seed: u64,
}

impl Folds {
    /// The fold of each row: shuffled, then assigned in turn, so that folds differ by one row at most.
    pub fn assign(self, rows: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..rows).collect();
        fastrand::Rng::with_seed(self.seed).shuffle(&mut order);
        let mut parts = vec![0; rows];
        for (turn, row) in order.into_iter().enumerate() {
            parts[row] = turn % self.count.max(1);
        }
        parts
    }
}

/// Trains a new model on all folds but one and applies it to that one, for each fold; results in the order of the rows.
///
/// `train` gets the training rows and a seed per fold. All fitting, including scaling, must be in `train`, so that no held-out row
/// influences the model.
pub fn k_fold<Row, Model, Answer>(
    rows: &[Row],
    folds: Folds,
    mut train: impl FnMut(&[&Row], u64) -> Model,
    mut ask: impl FnMut(&Model, &Row) -> Answer,
) -> Vec<Answer> {
    let parts = folds.assign(rows.len());
    let mut answers: Vec<Option<Answer>> = rows.iter().map(|_| None).collect();
    for part in 0..folds.count.max(1) {
        let seen: Vec<&Row> = rows.iter().zip(&parts).filter(|(_, of)| **of != part).map(|(row, _)| row).collect();
        let model = train(&seen, folds.seed.wrapping_mul(31).wrapping_add(part as u64));
        for ((row, answer), _) in rows.iter().zip(&mut answers).zip(&parts).filter(|(_, of)| **of == part) {
            *answer = Some(ask(&model, row));
        }
    }
    answers.into_iter().flatten().collect()
}
