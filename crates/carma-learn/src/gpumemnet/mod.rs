//! Training of `GPUMemNet` ensembles.

mod labels;
mod scaling;

pub use crate::neural::Schedule;
pub use labels::{class, classes_for, labelled};

use carma_estimate::Family;
use carma_estimate::learned::Features;
use carma_estimate::learned::gpumemnet::{Architecture, Classes, GpuMemNet, widths};
use carma_estimate::learned::neural::Member;

use crate::neural::{Sample, train_member};
use crate::on_all_cores;

/// Trains an ensemble on features and their classes, and calls `trained` after each member. The same seed gives the same weights, on any
/// number of threads.
pub fn train(
    architecture: Architecture,
    classes: Classes,
    rows: &[(&Features, usize)],
    seed: u64,
    schedule: Schedule,
    trained: &(dyn Fn() + Sync),
) -> GpuMemNet {
    let scaling = scaling::fit(rows.iter().map(|(features, _)| *features));
    let weights = labels::weights(classes, rows.iter().map(|(_, class)| *class));
    let samples = rows.iter().map(|(features, class)| {
        let class = (*class).min(classes.count - 1);
        let mut sample = Sample { whole: Vec::new(), tokens: Vec::new(), class, weight: weights[class] };
        scaling.apply(features, &mut sample.whole, &mut sample.tokens);
        sample
    });
    let samples: Vec<Sample> = samples.collect();
    let width = samples.first().map_or(0, |sample| sample.whole.len());
    let shapes: Vec<_> = architecture.members().into_iter().enumerate().collect();
    let members = on_all_cores(&shapes, |(index, (encoder, depth))| {
        let member = Member::new(width, *encoder, &widths(*depth), classes.count);
        let member = train_member(member, &samples, schedule, seed.wrapping_mul(1009).wrapping_add(*index as u64));
        trained();
        member
    });
    let family = rows.first().map_or(Family::Mlp, |(features, _)| features.family);
    GpuMemNet::new(family, architecture, classes, scaling, members)
}
