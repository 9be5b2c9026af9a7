//! Fine-tuning of language models by a formula similar to `LLMem`: model states by kind of parallelism, saved activations, the
//! logits, and the context, with tensors rounded to the allocator's pages.

use crate::model::{Layer, LayerKind, Model, Normalisation};
use crate::training::{Optimizer, Parallel, Training};

use super::{Answer, NoAnswer, Question};

/// Tensors of at least this size get their own pages.
const PAGE: u64 = 2 << 20;

pub(super) fn estimate(question: &Question<'_>) -> Result<Answer, NoAnswer> {
    let model = question.model()?;
    let training = question.training;
    if !model.layers.iter().any(|layer| layer.kind == LayerKind::Embedding) {
        return Err(NoAnswer::LanguageModelsOnly);
    }
    let states = states(model, training);
    let batch = match training.parallel {
        Parallel::DataParallel { gpus } => training.batch.div_ceil(gpus.max(1)),
        _ => training.batch,
    };
    let element = training.precision.activations().bytes();
    let kept: u64 = model.layers.iter().map(|layer| kept(layer, batch, element)).fold(0, u64::saturating_add);
    // The logits, their log-softmax and the gradients of both are alive together, in four-byte floats.
    let logits = model.layers.last().map_or(0, |layer| layer.output.elements(batch)).saturating_mul(3 * 4);
    let bytes = [states, kept, logits, question.stack.context_bytes(false)].into_iter().fold(0, u64::saturating_add);
    Ok(Answer::plain(bytes))
}

/// Weights, gradients and the optimizer's state on one rank.
fn states(model: &Model, training: &Training) -> u64 {
    let share = |elements: u64, from_stage: u8| match training.parallel {
        Parallel::Zero { stage, gpus } if stage >= from_stage => elements.div_ceil(gpus.max(1)),
        _ => elements,
    };
    let weights = training.precision.weights().bytes();
    let moments = match training.optimizer {
        Optimizer::None | Optimizer::Sgd | Optimizer::Adafactor => 0,
        Optimizer::Momentum | Optimizer::RmsProp | Optimizer::Adagrad | Optimizer::Lion => 4,
        Optimizer::Adam | Optimizer::AdamW | Optimizer::FusedAdam => 8,
        Optimizer::Adam8bit => 2,
    };
    let mut bytes = 0_u64;
    for layer in &model.layers {
        let trained = training.trained_elements(layer);
        for part in [
            share(layer.parameters, 3).saturating_mul(weights).next_multiple_of(512),
            share(trained, 2).saturating_mul(weights).next_multiple_of(512),
            share(trained, 1).saturating_mul(moments).next_multiple_of(512),
        ] {
            bytes = bytes.saturating_add(if part > PAGE { part.next_multiple_of(PAGE) } else { part });
        }
    }
    // nn.DataParallel and DistributedDataParallel hold a second copy of the gradients.
    match training.parallel {
        Parallel::DataParallel { .. } | Parallel::Distributed { .. } => bytes.saturating_add(model.parameters().saturating_mul(weights)),
        _ => bytes,
    }
}

/// Tensors of a layer's forward pass that its backward pass needs.
fn kept(layer: &Layer, batch: u64, element: u64) -> u64 {
    let output = layer.output.elements(batch);
    let bytes = match layer.kind {
        LayerKind::Linear | LayerKind::MatrixProduct | LayerKind::Attention { .. } | LayerKind::Softmax | LayerKind::Embedding => {
            output.saturating_mul(element)
        }
        LayerKind::Normalisation(Normalisation::RootMeanSquare) => output.saturating_mul(2 * element),
        LayerKind::Normalisation(_) | LayerKind::Activation(_) | LayerKind::Multiply | LayerKind::Add => output.saturating_mul(element),
        LayerKind::Dropout { .. } => output.saturating_mul(element + 1),
        _ => 0,
    };
    if bytes > PAGE { bytes.next_multiple_of(PAGE) } else { bytes }
}
