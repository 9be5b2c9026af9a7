//! Analytic estimates, by formulas over totals.

use crate::training::{Parallel, Precision};

use super::{Answer, NoAnswer, Question};

const MIB: u64 = 1 << 20;

/// Horus: activations, parameters and gradients of every sample in four-byte floats, plus 800 MiB for the framework.
pub(super) fn horus(question: &Question<'_>) -> Result<Answer, NoAnswer> {
    let model = question.model()?;
    let (activations, parameters, batch) = (model.activations(), model.parameters(), question.training.batch);
    let floats = activations.saturating_mul(batch).saturating_add(parameters).saturating_add(batch.saturating_mul(parameters));
    let bytes = floats.saturating_mul(4).saturating_add(800 * MIB);
    Ok(Answer::plain(question.gpu.map_or(bytes, |gpu| bytes.min(gpu))))
}

/// DeepSpeed's helper: model states per rank by `ZeRO` stage, with Adam.
pub(super) fn zero(question: &Question<'_>) -> Result<Answer, NoAnswer> {
    let model = question.model()?;
    let parameters = model.parameters();
    let per = |bytes: u64| parameters.saturating_mul(bytes);
    let bytes = match question.training.parallel {
        Parallel::Zero { stage: 3.., gpus } => {
            // Weights are gathered layer by layer.
            let largest = model.layers.iter().map(|layer| layer.parameters).max().unwrap_or(0);
            largest.saturating_mul(4).saturating_add(per(18) / gpus.max(1))
        }
        Parallel::Zero { stage: 2, gpus } => per(4).saturating_add(per(16) / gpus.max(1)),
        Parallel::Zero { gpus, .. } => per(6).saturating_add(per(12) / gpus.max(1)),
        _ => match question.training.precision {
            Precision::Float32 | Precision::Half => per(16),
            Precision::Mixed => per(18),
        },
    };
    Ok(Answer::plain(bytes))
}
