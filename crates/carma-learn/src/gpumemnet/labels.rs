//! Classes of measured runs, and their weights in the loss.

use carma_estimate::learned::Features;
use carma_estimate::learned::gpumemnet::Classes;

use crate::data::Observation;

/// The class of a run, for classes of `size` MiB. Crashed runs are in the class that begins at 40 GB.
pub fn class(size: f64, measured: Option<f64>, crashed: bool) -> Option<usize> {
    if crashed {
        // 40 times 1000 or 1024 MiB, depending on the class size.
        let thousand = if size % 1024.0 == 0.0 { 1024.0 } else { 1000.0 };
        return Some((40.0 * thousand / size).ceil() as usize);
    }
    measured.map(|measured| ((measured / size).ceil() as usize).saturating_sub(1))
}

/// Number of classes of `size` MiB that the given ones need.
pub fn classes_for(size: f64, classes: impl Iterator<Item = usize>) -> Classes {
    Classes::of(size, classes.max().map_or(1, |most| most + 1))
}

/// Features and class of each observation that has layers and a measured peak or a crash, with the observation.
pub fn labelled<'a>(observations: &'a [Observation], size: f64) -> Vec<(&'a Observation, Features, usize)> {
    let row = |observation: &'a Observation| {
        let class = class(size, observation.measured, observation.crashed)?;
        let features = Features::of(&observation.model()?, observation.batch, observation.family?);
        Some((observation, features, class))
    };
    observations.iter().filter_map(row).collect()
}

/// Weight of a row of each class. Rare classes weigh more, but less than in proportion, so that common classes are still learned.
pub(super) fn weights(classes: Classes, rows: impl Iterator<Item = usize>) -> Vec<f32> {
    let mut counts = vec![0.0_f32; classes.count];
    rows.for_each(|class| counts[class.min(classes.count - 1)] += 1.0);
    let all: f32 = counts.iter().sum();
    let mut weights: Vec<f32> = counts.iter().map(|count| (all / count.max(1.0)).powf(1.0 / 3.0)).collect();
    let mean: f32 = weights.iter().zip(&counts).map(|(weight, count)| weight * count).sum::<f32>() / all;
    for weight in &mut weights {
        *weight /= mean;
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_include_their_upper_end() {
        assert_eq!([1.0, 1024.0, 1025.0].map(|measured| class(1024.0, Some(measured), false)), [Some(0), Some(0), Some(1)]);
        assert_eq!((class(1024.0, Some(3.0), true), class(8192.0, None, true)), (Some(40), Some(5)));
        assert_eq!((class(1024.0, None, false), Classes::of(1024.0, 8).top(1)), (None, 2048.0));
    }
}
