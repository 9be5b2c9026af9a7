//! Scores on rows small enough to work out by hand.

use std::collections::BTreeSet;

use carma_learn::evaluate::{Answer, Confusion, Folds, Scores, k_fold};

fn answer(measured: f64, point: f64, bound: f64) -> Answer {
    Answer { measured: Some(measured), crashed: false, point, bound }
}

fn close(left: f64, right: f64) {
    assert!((left - right).abs() < 1e-12, "{left} is not {right}");
}

#[test]
fn scores_match_a_calculation_by_hand() {
    let crashed = |point| Answer { measured: Some(38_000.0), crashed: true, point, bound: point };
    let answers = [
        answer(1000.0, 1100.0, 1200.0),
        answer(2000.0, 1000.0, 1500.0),
        answer(4000.0, 4000.0, 6000.0),
        answer(9000.0, 8000.0, 9000.0),
        crashed(41_000.0),
        crashed(40_000.0),
        Answer { measured: None, crashed: false, point: 1.0, bound: 1.0 },
    ];
    let scores = Scores::of(&answers);
    assert_eq!(scores.rows, 6);
    close(scores.mape, (0.1 + 0.5 + 0.0 + 1.0 / 9.0) / 4.0);
    close(scores.median_ape, f64::midpoint(0.1, 1.0 / 9.0));
    close(scores.within_10pct, 0.5);
    close(scores.under_share, 0.5);
    close(scores.under_share_at_bound, 0.25);
    close(scores.mean_over_at_bound, (0.2 - 0.25 + 0.5 + 0.0) / 4.0);
    // 1 GB: 1 and 2 against 1 and 1; 4 and 4; 9 and 8; one crash seen.
    close(scores.class_accuracy_1gb, 2.0 / 6.0);
    // 8 GB: 8000 MiB is in the first class, 9000 in the second.
    close(scores.class_accuracy_8gb, 4.0 / 6.0);
    assert_eq!(Scores::of(&[]), Scores::default());
}

#[test]
fn scores_survive_being_written() {
    let scores = Scores::of(&[answer(1000.0, 1100.0, 1200.0)]);
    assert_eq!(serde_json::from_str::<Scores>(&serde_json::to_string(&scores).unwrap()).unwrap(), scores);
}

#[test]
fn confusion_counts_by_truth_then_answer() {
    let names = ["low", "middle", "high"].map(str::to_owned).to_vec();
    let confusion = Confusion::of(names, [(0, 0), (0, 1), (1, 1), (2, 0), (9, 0)]);
    assert_eq!(confusion.counts, [[1, 1, 0], [0, 1, 0], [1, 0, 0]]);
    close(confusion.accuracy(), 0.5);
    close(confusion.under_share(), 0.25);
}

#[test]
fn no_model_is_evaluated_on_its_training_rows() {
    let rows: Vec<usize> = (0..100).collect();
    let train = |seen: &[&usize], _: u64| seen.iter().map(|row| **row).collect::<BTreeSet<_>>();
    let answers = k_fold(&rows, Folds { count: 3, seed: 7 }, train, |seen, row| (!seen.contains(row), seen.len()));
    assert_eq!(answers.len(), 100);
    assert!(answers.iter().all(|(unseen, size)| *unseen && (66..=67).contains(size)), "{answers:?}");
    assert_eq!(Folds { count: 3, seed: 7 }.assign(50), Folds { count: 3, seed: 7 }.assign(50));
    assert_ne!(Folds { count: 3, seed: 7 }.assign(50), Folds { count: 3, seed: 8 }.assign(50));
}
