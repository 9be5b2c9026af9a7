//! Random networks, in the ranges of the published sets.

use fastrand::Rng;

use crate::data::Network;
use crate::data::networks::{Cnn, CnnShape, Mlp, MlpShape, Transformer};
use carma_estimate::Family;
use carma_estimate::learned::ActivationFunction;

/// Draws `rows` networks of a family, each with a batch size.
pub fn draw(family: Family, rows: usize, seed: u64) -> Vec<(Network, u64)> {
    let mut random = Rng::with_seed(seed);
    let one = match family {
        Family::Mlp => mlp,
        Family::Cnn => cnn,
        Family::Transformer => transformer,
    };
    (0..rows).map(|_| one(&mut random)).collect()
}

fn one_of<T: Copy>(random: &mut Rng, choices: &[T]) -> T {
    choices[random.usize(..choices.len())]
}

/// A dropout rate, for half of the networks.
fn dropout(random: &mut Rng) -> Option<f64> {
    let rate = rate(random);
    random.bool().then_some(rate)
}

/// A rate from 0.1 to 0.5, short enough for a file name.
fn rate(random: &mut Rng) -> f64 {
    (1000.0 * (0.1 + 0.4 * random.f64())).round() / 1000.0
}

fn mlp(random: &mut Rng) -> (Network, u64) {
    let input = random.u64(4..4096);
    let network = Mlp {
        input,
        output: random.u64(1..=(input / 4).max(1)),
        depth: random.u64(1..=10),
        shape: one_of(random, &MlpShape::ALL),
        activation: one_of(random, &ActivationFunction::ALL),
        dropout: dropout(random),
        batch_norm: random.bool(),
    };
    (Network::Mlp(network), random.u64(4..1024))
}

fn cnn(random: &mut Rng) -> (Network, u64) {
    let depth = random.u64(1..30);
    let shape = match one_of(random, &CnnShape::ALL) {
        CnnShape::Dense { .. } => CnnShape::Dense { transitions: u64::from(depth >= 8) },
        // An hourglass and a residual network need at least two blocks.
        CnnShape::Hourglass | CnnShape::Residual if depth < 2 => CnnShape::Uniform,
        shape => shape,
    };
    let network = Cnn {
        channels: one_of(random, &[1, 3]),
        size: 2 * random.u64(4..=112),
        classes: random.u64(1..=1000),
        depth: if matches!(shape, CnnShape::Dense { .. }) { depth.max(4) } else { depth },
        shape,
        filters: random.u64(16..128),
        activation: one_of(random, &ActivationFunction::ALL[..10]),
        dropout: dropout(random),
        batch_norm: random.bool(),
    };
    (Network::Cnn(network), 2 * random.u64(1..32))
}

fn transformer(random: &mut Rng) -> (Network, u64) {
    let embedding = one_of(random, &[128, 256, 512, 768, 1024, 2048]);
    let network = Transformer {
        vocabulary: random.u64(50_000..1_000_000),
        sequence: one_of(random, &[128, 256, 512, 1024]),
        embedding,
        layers: random.u64(2..40),
        heads: one_of(random, &[2, 4, 8, 16]),
        feed_forward: embedding * 2 + random.u64(0..=embedding * 2),
        classes: random.u64(2..1000),
        dropout: rate(random),
    };
    (Network::Transformer(network), 1 << random.u64(0..8))
}
