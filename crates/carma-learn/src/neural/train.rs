//! Training of one network: shuffled batches, and early stopping on held-out rows.

use carma_estimate::learned::neural::lanes::exp;
use carma_estimate::learned::neural::{Member, Workspace};
use fastrand::Rng;

use super::adam::Adam;
use super::loss::{self, Sample, Step};
use crate::short::short;

/// Length and step size of a training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// Maximum number of epochs.
    pub epochs: usize,
    /// Epochs without improvement until the training stops.
    pub patience: usize,
    /// Rows in a batch.
    pub batch: usize,
    /// Learning rate.
    pub rate: f32,
    /// Share of rows for early stopping.
    pub held_out: f64,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { epochs: 600, patience: 30, batch: 128, rate: 1e-3, held_out: 0.15 }
    }
}

/// Trains from random parameters and keeps those with the least loss on held-out rows.
pub(crate) fn train_member(mut member: Member, samples: &[Sample], schedule: Schedule, seed: u64) -> Member {
    let mut random = Rng::with_seed(seed);
    loss::init(&mut member, &mut random);
    let (held_out, mut rows) = divide(samples, schedule.held_out, &mut random);
    let mut adam = Adam::new(member.parameters.len());
    let mut gradient = vec![0.0; member.parameters.len()];
    let (mut step, mut work) = (Step::default(), Workspace::default());
    let mut best = (f32::INFINITY, member.parameters.clone(), member.state.clone());
    let mut since = 0;
    for _ in 0..schedule.epochs {
        random.shuffle(&mut rows);
        // A single sample has no variance to normalise by.
        for batch in rows.chunks(schedule.batch).filter(|batch| batch.len() > 1) {
            gradient.fill(0.0);
            loss::loss(&mut member, batch, &mut step, &mut gradient);
            adam.step(&mut member.parameters, &gradient, schedule.rate);
        }
        member.ready();
        let mean = mean_loss(&member, if held_out.is_empty() { &rows } else { &held_out }, &mut work);
        since += 1;
        if mean < best.0 {
            best = (mean, member.parameters.clone(), member.state.clone());
            since = 0;
        }
        if since >= schedule.patience {
            break;
        }
    }
    (member.parameters, member.state) = (best.1, best.2);
    for number in member.parameters.iter_mut().chain(&mut member.state) {
        *number = short(*number);
    }
    member.ready();
    member
}

/// Rows for early stopping, the same share of each class, and rows to train on.
fn divide<'a>(samples: &'a [Sample], held_out: f64, random: &mut Rng) -> (Vec<&'a Sample>, Vec<&'a Sample>) {
    let mut order: Vec<&Sample> = samples.iter().collect();
    random.shuffle(&mut order);
    order.sort_by_key(|sample| sample.class);
    let every = (1.0 / held_out.max(1e-9)) as usize;
    let (judged, seen): (Vec<_>, Vec<_>) = order.into_iter().enumerate().partition(|(place, _)| every > 1 && place % every == every - 1);
    let only = |rows: Vec<(usize, &'a Sample)>| rows.into_iter().map(|(_, sample)| sample).collect();
    (only(judged), only(seen))
}

fn mean_loss(member: &Member, samples: &[&Sample], work: &mut Workspace) -> f32 {
    let mut sums = Vec::new();
    let mut loss = 0.0;
    for sample in samples {
        sums.clear();
        sums.resize(member.classes, 0.0);
        member.logits(&sample.whole, &sample.tokens, work, &mut sums);
        let most = sums.iter().copied().fold(f32::MIN, f32::max);
        loss += sample.weight * (most + sums.iter().map(|sum| exp(sum - most)).sum::<f32>().ln() - sums[sample.class]);
    }
    loss / samples.len().max(1) as f32
}

#[cfg(test)]
mod tests {
    use carma_estimate::learned::neural::{EncoderShape, Token};

    use super::*;

    fn samples(count: usize, random: &mut Rng) -> Vec<Sample> {
        let mut number = || 2.0 * random.f32() - 1.0;
        (0..count)
            .map(|place| Sample {
                whole: vec![number(), number(), number()],
                tokens: (0..3 + place % 8)
                    .map(|token| Token { kind: token % 3, features: [number(), number()], count: 1.0 + (token % 2) as f32 })
                    .collect(),
                class: place % 3,
                weight: 1.0 + (place % 2) as f32,
            })
            .collect()
    }

    /// Every gradient against the difference of two losses.
    #[test]
    fn gradients_match_differences_of_the_loss() {
        let mut random = Rng::with_seed(3);
        let samples = samples(7, &mut random);
        let batch: Vec<&Sample> = samples.iter().collect();
        let shape = EncoderShape { width: 4, layers: 2, feed_forward: 4, kinds: 3 };
        for encoder in [None, Some(shape)] {
            let mut member = Member::new(3, encoder, &[8, 4], 3);
            loss::init(&mut member, &mut random);
            // Large enough for the tokens to matter.
            for parameter in &mut member.parameters {
                *parameter *= 1.5;
            }
            let mut step = Step::default();
            let mut gradient = vec![0.0; member.parameters.len()];
            loss::loss(&mut member, &batch, &mut step, &mut gradient);
            let mut unused = vec![0.0; member.parameters.len()];
            let mut wrong = 0;
            for (place, &expected) in gradient.iter().enumerate() {
                const STEP: f32 = 4e-3;
                let before = member.parameters[place];
                let mut at = |moved: f32| {
                    member.parameters[place] = before + moved;
                    f64::from(loss::loss(&mut member, &batch, &mut step, &mut unused))
                };
                let difference = ((at(STEP) - at(-STEP)) / f64::from(2.0 * STEP)) as f32;
                member.parameters[place] = before;
                // A ReLU kink between the two points makes them differ; this is rare.
                wrong += usize::from((difference - expected).abs() > 2e-3 + 0.02 * difference.abs());
            }
            assert!(wrong * 25 <= gradient.len(), "{wrong} of {} gradients are wrong", gradient.len());
            assert!(gradient.iter().filter(|grad| grad.abs() > 1e-4).count() > gradient.len() / 2);
        }
    }

    #[test]
    fn a_token_with_weight_three_equals_three_tokens() {
        let mut random = Rng::with_seed(5);
        let mut member = Member::new(1, Some(EncoderShape { width: 6, layers: 3, feed_forward: 4, kinds: 2 }), &[8], 4);
        loss::init(&mut member, &mut random);
        member.ready();
        let one = |kind, features, count| Token { kind, features, count };
        let merged = [one(0, [0.5, -1.0], 3.0), one(1, [2.0, 0.25], 1.0)];
        let apart = [merged[0], merged[1], merged[0], merged[0]].map(|token| Token { count: 1.0, ..token });
        let logits = |tokens: &[Token]| {
            let mut sums = vec![0.0; 4];
            member.logits(&[0.3], tokens, &mut Workspace::default(), &mut sums);
            sums
        };
        for (merged, apart) in logits(&merged).iter().zip(logits(&apart)) {
            assert!((merged - apart).abs() < 1e-5, "{merged} {apart}");
        }
    }

    #[test]
    fn training_learns_and_is_deterministic() {
        let mut random = Rng::with_seed(1);
        let samples: Vec<Sample> = samples(240, &mut random)
            .into_iter()
            .map(|sample| Sample { class: usize::from(sample.whole[0] + sample.whole[1] > 0.0), ..sample })
            .collect();
        let schedule = Schedule { epochs: 150, rate: 1e-2, ..Schedule::default() };
        let train = || train_member(Member::new(3, None, &[8], 2), &samples, schedule, 9);
        let member = train();
        assert_eq!(member.parameters, train().parameters);
        let right = samples.iter().filter(|sample| {
            let mut sums = vec![0.0; 2];
            member.logits(&sample.whole, &sample.tokens, &mut Workspace::default(), &mut sums);
            usize::from(sums[1] > sums[0]) == sample.class
        });
        let right = right.count();
        assert!(right > 225, "{right} of 240");
    }
}
