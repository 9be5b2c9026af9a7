//! Memory estimators: our own, and published ones. A stand-in for a published method has its own name.

mod analytic;
mod growth;
mod learned;
mod llm_formula;
mod replayed;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::allocator::AllocatorSettings;
use crate::learned::gpumemnet::Architecture;
use crate::model::{LayerKind, Model};
use crate::stack::Stack;
use crate::trace::{Breakdown, Recording};
use crate::training::Training;

/// A memory estimator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// Our own: events synthesized from the layer graph, replayed through the allocator (the method of `DNNMem`).
    Static,
    /// Our own: events recorded from the user's script, replayed through the allocator.
    DryRun,
    /// Peak of live tensors in forward and backward pass.
    FakeTensor,
    /// Activations, parameters and gradients by a formula.
    Horus,
    /// Parameters, gradients and optimizer state per rank, as DeepSpeed's helper counts them.
    Zero,
    /// Fine-tuning of language models by a formula, with data parallelism, `ZeRO` and low-rank adapters. Called `llmem` before 0.2.
    #[serde(alias = "llmem")]
    LlmFormula,
    /// Boosted trees over features of the layer graph. Called `dnnperf` before 0.2.
    #[serde(alias = "dnnperf")]
    BoostedTrees,
    /// Classes of memory from global features.
    GpumemnetMlp,
    /// Classes of memory from the sequence of layers.
    GpumemnetTransformer,
}

impl Estimator {
    /// All estimators, our own first.
    pub const ALL: [Self; 9] = [
        Self::DryRun,
        Self::Static,
        Self::BoostedTrees,
        Self::GpumemnetMlp,
        Self::GpumemnetTransformer,
        Self::LlmFormula,
        Self::Zero,
        Self::Horus,
        Self::FakeTensor,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::DryRun => "dry-run",
            Self::FakeTensor => "fake-tensor",
            Self::Horus => "horus",
            Self::Zero => "zero",
            Self::LlmFormula => "llm-formula",
            Self::BoostedTrees => "boosted-trees",
            Self::GpumemnetMlp => "gpumemnet-mlp",
            Self::GpumemnetTransformer => "gpumemnet-transformer",
        }
    }

    /// The estimator of this name. `dnnmem` (its method), `dnnperf` and `llmem` (names before 0.2) are accepted too.
    pub fn named(name: &str) -> Option<Self> {
        let wanted = match name {
            "dnnmem" => "static",
            "dnnperf" => "boosted-trees",
            "llmem" => "llm-formula",
            name => name,
        };
        Self::ALL.into_iter().find(|estimator| estimator.name() == wanted)
    }

    /// Short description of its inputs.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Static => "layer graph -> made-up events -> allocator (as DNNMem)",
            Self::DryRun => "the script's own events -> allocator",
            Self::FakeTensor => "peak of live tensors, nothing else",
            Self::Horus => "4 (A B + P + B P) + 800 MiB",
            Self::Zero => "parameters, gradients, optimizer state per rank",
            Self::LlmFormula => "formula for fine-tuning language models, after LLMem",
            Self::BoostedTrees => "learned from graph features, stands in for DNNPerf",
            Self::GpumemnetMlp => "learned classes, global features",
            Self::GpumemnetTransformer => "learned classes, sequence of layers",
        }
    }

    /// Estimates, or says which input is missing.
    pub fn estimate(self, question: &Question<'_>) -> Result<Answer, NoAnswer> {
        match self {
            Self::Static => replayed::from_graph(question),
            Self::DryRun => replayed::from_recording(question),
            Self::FakeTensor => replayed::live_peak(question),
            Self::Horus => analytic::horus(question),
            Self::Zero => analytic::zero(question),
            Self::LlmFormula => llm_formula::estimate(question),
            Self::BoostedTrees => learned::boosted_trees(question),
            Self::GpumemnetMlp => learned::gpumemnet(question, Architecture::Mlp),
            Self::GpumemnetTransformer => learned::gpumemnet(question, Architecture::Transformer),
        }
    }
}

impl fmt::Display for Estimator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// Everything known about a job.
#[derive(Debug, Clone, Copy)]
pub struct Question<'job> {
    /// Its layers, if described.
    pub model: Option<&'job Model>,
    /// How it is trained.
    pub training: &'job Training,
    /// Events of a dry run, if any.
    pub recording: Option<&'job Recording>,
    /// The software stack.
    pub stack: &'job Stack,
    /// Settings of the allocator.
    pub allocator: AllocatorSettings,
    /// Bytes of the GPU, if known.
    pub gpu: Option<u64>,
    /// Confidence of the upper bound.
    pub confidence: f64,
}

impl<'job> Question<'job> {
    fn model(&self) -> Result<&'job Model, NoAnswer> {
        self.model.filter(|model| !model.layers.is_empty()).ok_or(NoAnswer::NeedsModel)
    }
}

/// Estimate for one rank, before its record is taken into account.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// Bytes that `nvidia-smi` will show.
    pub bytes: u64,
    /// Breakdown of the bytes, if the estimator has one.
    pub breakdown: Option<(Breakdown, u64)>,
    /// Whether it would run out of memory on the given GPU.
    pub out_of_memory: bool,
    /// The estimator's own upper bound at the question's confidence.
    pub own_bound: Option<u64>,
}

impl Answer {
    fn plain(bytes: u64) -> Self {
        Self { bytes, breakdown: None, out_of_memory: false, own_bound: None }
    }
}

/// Why an estimator cannot answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// No description.
    #[error("needs a description of the model")]
    NeedsModel,
    /// No dry run.
    #[error("needs a dry run: carma trace-memory")]
    NeedsRecording,
    /// Not for this kind of model.
    #[error("is for language models only")]
    LanguageModelsOnly,
    /// No weights.
    #[error("has not been trained for this kind of model")]
    NotTrained,
}

/// Whether a model has convolutions: only then cuDNN is loaded.
pub(crate) fn convolves(model: &Model) -> bool {
    model.layers.iter().any(|layer| matches!(layer.kind, LayerKind::Convolution { .. }))
}
