//! Boosted trees and the learner over graphs.

use carma_estimate::Family;
use carma_estimate::learned::{BoostedTrees, GraphFeatures, NAMES};
use carma_estimate::model::Model;
use carma_estimate::training::Training;
use carma_learn::data::{Label, Observation};
use carma_learn::dataset::generate;
use carma_learn::evaluate::{Answer, Folds, Scores, k_fold};
use carma_learn::graph_trees::{self, measured};
use carma_learn::trees::{Loss, Options, grow};
use carma_testing::need;

/// A curve with noise that grows to the right.
fn noisy(rows: u16) -> (Vec<Vec<f32>>, Vec<f64>) {
    let mut random = fastrand::Rng::with_seed(6);
    (0..rows)
        .map(|_| {
            let (x, other) = (random.f64(), random.f64());
            (vec![x as f32, other as f32], (6.0 * x).sin() + x * random.f64())
        })
        .unzip()
}

#[test]
fn trees_follow_a_curve() {
    let (rows, values) = noisy(400);
    let trees = grow(&rows, &values, Options { trees: 120, ..Options::default() });
    let error = rows.iter().map(|row| (trees.predict(row) - (6.0 * f64::from(row[0])).sin() - f64::from(row[0]) / 2.0).abs()).sum::<f64>();
    assert!(error / 400.0 < 0.1, "{error}");
    assert_eq!(trees, grow(&rows, &values, Options { trees: 120, ..Options::default() }));
    let again: BoostedTrees = serde_json::from_str(&serde_json::to_string(&trees).unwrap()).unwrap();
    assert_eq!(again, trees);
}

#[test]
fn a_quantile_lies_above_its_share_of_values() {
    let (rows, values) = noisy(400);
    let options = Options { loss: Loss::Quantile(0.9), trees: 80, least_rows: 20, depth: 3, ..Options::default() };
    let trees = grow(&rows, &values, options);
    let below = rows.iter().zip(&values).filter(|(row, value)| **value <= trees.predict(row)).count();
    assert!((340..=390).contains(&below), "{below} of 400");
}

#[test]
fn training_without_rows_is_allowed() {
    let none = grow(&[], &[], Options::default());
    assert!(none.predict(&[1.0]).abs() < 1e-12);
    let same = grow(&vec![vec![1.0]; 9], &[2.0; 9], Options::default());
    assert!((same.predict(&[f32::NAN]) - 2.0).abs() < 1e-6);
    let damaged: BoostedTrees = serde_json::from_str("{\"base\":1.0,\"trees\":[[[0,0.5,7]],[[3,0.5,0]],[]]}").unwrap();
    assert!((damaged.predict(&[1.0]) - 1.5).abs() < 1e-6);
}

/// Weights and activations with a twist that the plain count does not know.
fn twisted(model: &Model, training: &Training) -> f64 {
    let features = GraphFeatures::of(model, training);
    assert_eq!(features.values.len(), NAMES.len());
    features.plain * if model.layers.iter().any(|layer| layer.class == "BatchNorm2d") { 1.3 } else { 1.1 }
}

/// Scores on rows that were not learned from.
fn judged(rows: &[(&Observation, GraphFeatures, f64)]) -> Scores {
    let train = |seen: &[&(&Observation, GraphFeatures, f64)], seed| {
        let seen: Vec<_> = seen.iter().map(|(_, features, memory)| (features, *memory)).collect();
        graph_trees::train(&seen, seed)
    };
    let answers = k_fold(rows, Folds { count: 2, seed: 5 }, train, |learner, (_, features, _)| learner.predict(features));
    let answers: Vec<Answer> = rows.iter().zip(answers).map(|((row, ..), (point, bound))| Answer::to(row, point, bound)).collect();
    Scores::of(&answers)
}

#[test]
fn the_graph_learner_improves_on_the_plain_count() {
    let observations = generate(Family::Cnn, 150, 3, Label::Static, &twisted);
    let rows = measured(&observations);
    assert_eq!(rows.len(), observations.iter().filter(|row| !row.crashed).count());
    let scores = judged(&rows);
    assert!(scores.median_ape < 0.03 && scores.under_share_at_bound < 0.12, "{scores:?}");
}

#[test]
fn unseen_published_networks_are_estimated_closely() {
    let observations = need!(crate::data::published("memory_cnn_random.csv"));
    let part: Vec<_> = observations.into_iter().step_by(4).collect();
    let scores = judged(&measured(&part));
    assert!(scores.median_ape < 0.1 && scores.class_accuracy_8gb > 0.8, "{scores:?}");
}
