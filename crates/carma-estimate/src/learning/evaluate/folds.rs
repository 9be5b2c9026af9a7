//! Cross-validation: every row is judged by a model that has not seen it.

/// How rows are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Folds {
    /// Parts; each is held out once.
    pub count: usize,
    /// Decides which row is in which part.
    pub seed: u64,
}

impl Folds {
    /// The part of each row: a seeded shuffle, dealt out in turn, so that parts differ by one row at most.
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

/// Trains a fresh model on all parts but one and asks it about that one, for each part; answers in the rows' order.
///
/// `train` gets the rows to learn from and a seed of the part's own. Nothing else of a held-out row can reach the model, so whatever is
/// fitted to data (scaling too) belongs into `train`.
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
