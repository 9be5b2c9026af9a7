//! Learners are evaluated by cross-validation: every row by a model that was not trained on it.

use anyhow::{Context, Result, bail};
use carma_estimate::confidence::DEFAULT_CONFIDENCE;
use carma_estimate::estimators::Estimator;
use carma_estimate::learned::Features;
use carma_estimate::learned::gpumemnet::{Architecture, GpuMemNet};
use carma_estimate::learned::{GraphFeatures, GraphTrees};
use carma_learn::class_size;
use carma_learn::data::Observation;
use carma_learn::evaluate::{Answer, Folds, k_fold};
use carma_learn::gpumemnet::{self, Schedule, classes_for, labelled};
use carma_learn::graph_trees;

use super::evaluate::{Arguments, EvaluatedRow};
use crate::progress::bar;

pub(super) fn evaluate_rows(arguments: &Arguments, estimator: Estimator, rows: &[Observation]) -> Result<Vec<EvaluatedRow>> {
    let folds = Folds { count: usize::from(arguments.folds), seed: arguments.rows.seed };
    match estimator {
        Estimator::GpumemnetMlp => classes(arguments, Architecture::Mlp, rows, folds),
        Estimator::GpumemnetTransformer => classes(arguments, Architecture::Transformer, rows, folds),
        _ => regression(rows, folds),
    }
}

fn regression(rows: &[Observation], folds: Folds) -> Result<Vec<EvaluatedRow>> {
    let measured = graph_trees::measured(rows);
    if measured.is_empty() {
        bail!("the learner needs rows whose layers are known");
    }
    let bar = bar(folds.count, "training");
    let train = |training_rows: &[&(&Observation, GraphFeatures, f64)], seed| {
        let rows: Vec<(&GraphFeatures, f64)> = training_rows.iter().map(|(_, features, memory)| (features, *memory)).collect();
        let learner = graph_trees::train(&rows, seed);
        bar.step();
        learner
    };
    let predict = |learner: &GraphTrees, (row, features, _): &(&Observation, GraphFeatures, f64)| {
        let (point, bound) = learner.predict(features);
        EvaluatedRow::of(row, row.family, Answer::to(row, point, bound))
    };
    let evaluated = k_fold(&measured, folds, train, predict);
    drop(bar);
    Ok(evaluated)
}

fn classes(arguments: &Arguments, architecture: Architecture, rows: &[Observation], folds: Folds) -> Result<Vec<EvaluatedRow>> {
    let family = rows.iter().find_map(|row| row.family).context("the classifiers are for random MLPs, CNNs and Transformers")?;
    let size = arguments.class_size.map_or_else(|| class_size(family), |gigabytes| gigabytes * 1024.0);
    let labelled = labelled(rows, size);
    if labelled.is_empty() {
        bail!("the classifier needs rows whose layers are known");
    }
    let all = classes_for(size, labelled.iter().map(|(.., class)| *class));
    let bar = bar(folds.count, "training");
    let train = |training_rows: &[&(&Observation, Features, usize)], seed| {
        let rows: Vec<(&Features, usize)> = training_rows.iter().map(|(_, features, class)| (features, *class)).collect();
        let network = gpumemnet::train(architecture, all, &rows, seed, Schedule::default(), &|| ());
        bar.step();
        network
    };
    let predict = |network: &GpuMemNet, (row, features, class): &(&Observation, Features, usize)| {
        let prediction = network.predict(features);
        let answer = Answer::to(row, prediction.point(), prediction.bound(DEFAULT_CONFIDENCE));
        (EvaluatedRow::of(row, row.family, answer), *class, prediction.class())
    };
    let (mut evaluated, mut pairs) = (Vec::new(), Vec::new());
    for (row, class, predicted) in k_fold(&labelled, folds, train, predict) {
        evaluated.push(row);
        pairs.push((class, predicted));
    }
    drop(bar);
    let right = pairs.iter().filter(|(class, predicted)| class == predicted).count() as f64 / pairs.len() as f64;
    eprintln!("carma: {} folds, classes of {} GB: accuracy {right:.4}", folds.count, size / 1024.0);
    super::plots::write(arguments, &labelled, all, &pairs, &evaluated)?;
    Ok(evaluated)
}
