//! Plots of a classifier's evaluation.

use anyhow::Result;
use carma_estimate::learned::Features;
use carma_estimate::learned::gpumemnet::Classes;
use carma_learn::data::Observation;
use carma_learn::evaluate::Confusion;
use carma_learn::plots::{Tsne, confusion, map, pca, scatter, tsne};

use super::evaluate::{Arguments, EvaluatedRow};
use crate::files;

/// t-SNE is too slow with more points.
const MOST_POINTS: usize = 2000;

/// Writes the plots to the requested folder, if any.
pub(super) fn write(
    arguments: &Arguments,
    rows: &[(&Observation, Features, usize)],
    classes: Classes,
    pairs: &[(usize, usize)],
    evaluated: &[EvaluatedRow],
) -> Result<()> {
    let Some(folder) = &arguments.plots else { return Ok(()) };
    let count = 1 + pairs.iter().map(|&(class, predicted)| class.max(predicted)).max().unwrap_or(0);
    let names: Vec<String> = (0..count).map(|class| format!("up to {:.0} GB", classes.top(class) / 1024.0)).collect();
    let points: Vec<(f64, f64)> = evaluated.iter().filter_map(|row| Some((row.answer.measured?, row.answer.point))).collect();
    let shown = &rows[..rows.len().min(MOST_POINTS)];
    let features: Vec<Vec<f32>> =
        shown.iter().map(|(_, features, _)| features.whole.iter().map(|value| value.abs().ln_1p()).collect()).collect();
    let of_class: Vec<usize> = shown.iter().map(|(.., class)| *class).collect();
    let options = Tsne { seed: arguments.rows.seed, ..Tsne::default() };
    files::write_charts(
        folder,
        &[
            ("confusion.svg".to_owned(), confusion(&Confusion::of(names.clone(), pairs.iter().copied()), "Class measured and predicted")),
            ("scatter.svg".to_owned(), scatter(&points, "Memory measured and predicted, MiB")),
            ("pca.svg".to_owned(), map(&pca(&features), &of_class, &names, "Principal components of the features")),
            ("tsne.svg".to_owned(), map(&tsne(&features, options), &of_class, &names, "t-SNE of the features")),
        ],
    )
}
