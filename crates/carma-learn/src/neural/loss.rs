//! Loss of a network on a batch, and its gradient.

use carma_estimate::learned::neural::lanes::{exp, padded};
use carma_estimate::learned::neural::{EncoderPass, Member, Token};
use fastrand::Rng;

use super::encoder::{self, EncoderGrad};
use super::stack::{self, StackPass};

/// One training sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    /// Features of the whole model, scaled.
    pub(crate) whole: Vec<f32>,
    /// Its layers, scaled; empty if only the whole is used.
    pub(crate) tokens: Vec<Token>,
    /// The true class.
    pub(crate) class: usize,
    /// Weight in the loss; one on average.
    pub(crate) weight: f32,
}

/// Buffers of a training step, reused between steps.
#[derive(Debug, Clone, Default)]
pub(super) struct Step {
    encoder: EncoderPass,
    encoder_grad: EncoderGrad,
    stack: StackPass,
    inputs: Vec<f32>,
    pooled: Vec<f32>,
    logits: Vec<f32>,
}

/// Random parameters.
pub(super) fn init(member: &mut Member, random: &mut Rng) {
    if let Some(encoder) = &member.encoder {
        encoder::init(encoder, &mut member.parameters, random);
    }
    stack::init(&member.stack, &mut member.parameters, &mut member.state, random);
}

/// Mean cross-entropy of a batch; adds its gradient.
pub(super) fn loss(member: &mut Member, samples: &[&Sample], step: &mut Step, gradient: &mut [f32]) -> f32 {
    let (real, length) = (samples.len(), padded(samples.len()));
    let pooled = member.encoder.as_ref().map_or(0, |encoder| encoder.shape.width);
    step.inputs.clear();
    step.inputs.resize((pooled + member.features) * length, 0.0);
    if let Some(encoder) = &member.encoder {
        step.encoder.load(samples.iter().map(|sample| sample.tokens.as_slice()));
        encoder.forward(&member.parameters, &mut step.encoder, &mut step.inputs[..pooled * length], length);
    }
    for (place, sample) in samples.iter().enumerate() {
        for (feature, value) in sample.whole.iter().enumerate() {
            step.inputs[(pooled + feature) * length + place] = *value;
        }
    }
    stack::forward(&member.stack, (&member.parameters, &mut member.state), &step.inputs, (real, length), &mut step.stack);
    step.logits.clear();
    step.logits.resize(member.classes * length, 0.0);
    let mut loss = 0.0;
    for (place, sample) in samples.iter().enumerate() {
        let logit = |class: usize| step.stack.logits[class * length + place];
        let most = (0..member.classes).map(logit).fold(f32::MIN, f32::max);
        let total: f32 = (0..member.classes).map(|class| exp(logit(class) - most)).sum();
        for class in 0..member.classes {
            let share = exp(logit(class) - most) / total;
            let wanted = if class == sample.class { 1.0 } else { 0.0 };
            step.logits[class * length + place] = sample.weight * (share - wanted) / real as f32;
        }
        loss += sample.weight * (most + total.ln() - logit(sample.class)) / real as f32;
    }
    step.pooled.resize(pooled * length, 0.0);
    let known = (step.inputs.as_slice(), step.logits.as_slice());
    stack::backward(&member.stack, &member.parameters, known, (real, length), &mut step.stack, (gradient, &mut step.pooled));
    if let Some(encoder) = &member.encoder {
        encoder::backward(encoder, &member.parameters, &step.encoder, (&step.pooled, length), &mut step.encoder_grad, gradient);
    }
    loss
}
