//! Errors of the estimator on runs that it was not trained on.

use std::collections::BTreeSet;

use carma_estimate::Family;
use carma_estimate::utilisation::{Counter, Spread};

use super::fit::fit;
use super::rows::{Row, Set, rows};
use super::solo::SoloRun;
use crate::data::Observation;
use crate::evaluate::Folds;
use crate::on_all_cores;
use crate::trees::quantile;

/// Folds of the random networks.
const PARTS: usize = 5;

/// Errors on runs that were held out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeldOut {
    /// The counter.
    pub counter: Counter,
    /// The measurements.
    pub set: Set,
    /// Runs with this counter.
    pub rows: usize,
    /// Mean of the absolute error.
    pub mean_absolute_error: f64,
    /// The same for the mean of all other rows of the set.
    pub trivial: f64,
}

/// Errors of estimators trained as in [`super::train()`], each on held-out runs: random networks in five folds, named workloads by model
/// type, so that no residual network is estimated after training on another size of it.
pub fn evaluate(observations: &[Observation], solo: &[SoloRun], seed: u64) -> Vec<HeldOut> {
    let rows = rows(observations, solo);
    errors(&rows, &answers(&rows, seed), seed)
}

/// Errors of the answers for held-out rows.
pub(super) fn errors(rows: &[Row], answers: &[[f64; 4]], seed: u64) -> Vec<HeldOut> {
    let parts = parts(rows, seed);
    let mut all = Vec::new();
    for set in [Set::Mlp, Set::Cnn, Set::Solo] {
        for counter in Counter::ALL {
            let of_set = rows.iter().zip(&parts).zip(answers).filter(|((row, _), _)| row.set == set);
            let known: Vec<(&Part, f64, f64)> = of_set
                .filter_map(|((row, part), answer)| Some((part, row.measured[counter as usize]?, answer[counter as usize])))
                .collect();
            if known.is_empty() {
                continue;
            }
            let mean = |values: &mut dyn Iterator<Item = f64>| {
                let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
                sum / f64::from(count.max(1))
            };
            let trivial = |part: &Part| mean(&mut known.iter().filter(|(other, ..)| *other != part).map(|(_, value, _)| *value));
            let trivials: Vec<(&Part, f64)> =
                known.iter().map(|(part, ..)| *part).collect::<BTreeSet<_>>().into_iter().map(|part| (part, trivial(part))).collect();
            let guess = |part: &Part| trivials.iter().find(|(of, _)| *of == part).map_or(0.0, |(_, guess)| *guess);
            all.push(HeldOut {
                counter,
                set,
                rows: known.len(),
                mean_absolute_error: mean(&mut known.iter().map(|(_, value, answer)| (value - answer).abs())),
                trivial: mean(&mut known.iter().map(|(part, value, _)| (value - guess(part)).abs())),
            });
        }
    }
    all
}

/// Rows that are held out together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Random(usize),
    Make(String),
}

fn parts(rows: &[Row], seed: u64) -> Vec<Part> {
    let folds = Folds { count: PARTS, seed }.assign(rows.len());
    let part = |(row, fold): (&Row, usize)| if row.set == Set::Solo { Part::Make(row.make.clone()) } else { Part::Random(fold) };
    rows.iter().zip(folds).map(part).collect()
}

/// An answer for each row by predictors that were not trained on its part.
pub(super) fn answers(rows: &[Row], seed: u64) -> Vec<[f64; 4]> {
    let parts = parts(rows, seed);
    let different: Vec<&Part> = parts.iter().collect::<BTreeSet<_>>().into_iter().collect();
    let answered = on_all_cores(&different, |held| {
        let others: Vec<&Row> = rows.iter().zip(&parts).filter(|(_, part)| part != held).map(|(row, _)| row).collect();
        let predictors = fit(&others, seed);
        let unseen = rows.iter().zip(&parts).enumerate().filter(|(_, (_, part))| part == held);
        unseen.map(|(place, (row, _))| (place, predictors.predict(&row.features))).collect::<Vec<_>>()
    });
    let mut answers = vec![[0.0; 4]; rows.len()];
    for (place, answer) in answered.into_iter().flatten() {
        answers[place] = answer;
    }
    answers
}

/// Spread of values around predictions for a family: of its random networks, or of named workloads if that is wider, because users run
/// these. There are few of them, so all families except MLPs share them.
pub(super) fn spread(rows: &[Row], answers: &[[f64; 4]], family: Family, counter: Counter) -> Spread {
    let of = |wanted: &dyn Fn(&Row) -> bool| {
        let errors = rows.iter().zip(answers).filter(|(row, _)| wanted(row));
        let mut errors: Vec<f64> =
            errors.filter_map(|(row, answer)| Some(row.measured[counter as usize]? - answer[counter as usize])).collect();
        let shortest = |number: f64| format!("{number:.3e}").parse().unwrap_or(number);
        (!errors.is_empty()).then(|| Spread {
            below: shortest(-quantile(&mut errors, 0.05)).max(0.0),
            above: shortest(quantile(&mut errors, 0.95)).max(0.0),
        })
    };
    let random = of(&|row| row.set != Set::Solo && row.family == family);
    let named = of(&|row| row.set == Set::Solo);
    match (random, named) {
        (Some(random), _) if family == Family::Mlp => random,
        (Some(random), Some(named)) => Spread { below: random.below.max(named.below), above: random.above.max(named.above) },
        (random, named) => random.or(named).unwrap_or(Spread::unknown(counter)),
    }
}
