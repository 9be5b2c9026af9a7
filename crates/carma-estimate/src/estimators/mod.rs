//! Estimators of memory: ours, and those of the field, each as published.

mod analytic;
mod growth;
mod learned;
mod llmem;
mod replayed;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::allocator::AllocatorSettings;
use crate::learning::gpumemnet::Architecture;
use crate::model::{LayerKind, Model};
use crate::stack::Stack;
use crate::trace::{Breakdown, Recording};
use crate::training::Training;

/// A way to estimate memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// Ours: events made up from the layer graph, replayed through the allocator (the way of `DNNMem`).
    Static,
    /// Ours: events recorded from the user's own script, replayed through the allocator.
    DryRun,
    /// Peak of live tensors in forward and backward pass.
    FakeTensor,
    /// Activations, parameters and gradients by a formula.
    Horus,
    /// Parameters, gradients and optimizer state per rank, as DeepSpeed's helper counts them.
    Zero,
    /// Fine-tuning of language models by a formula, with data parallelism, `ZeRO` and low-rank adapters.
    Llmem,
    /// A learner over features of the layer graph.
    Dnnperf,
    /// Classes of memory from global features.
    GpumemnetMlp,
    /// Classes of memory from the sequence of layers.
    GpumemnetTransformer,
}

impl Estimator {
    /// All of them, ours first.
    pub const ALL: [Self; 9] = [
        Self::DryRun,
        Self::Static,
        Self::Dnnperf,
        Self::GpumemnetMlp,
        Self::GpumemnetTransformer,
        Self::Llmem,
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
            Self::Llmem => "llmem",
            Self::Dnnperf => "dnnperf",
            Self::GpumemnetMlp => "gpumemnet-mlp",
            Self::GpumemnetTransformer => "gpumemnet-transformer",
        }
    }

    /// The estimator of this name; `dnnmem` is another name of the static one.
    pub fn named(name: &str) -> Option<Self> {
        let wanted = if name == "dnnmem" { "static" } else { name };
        Self::ALL.into_iter().find(|estimator| estimator.name() == wanted)
    }

    /// What it looks at, in a few words.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Static => "layer graph -> made-up events -> allocator (as DNNMem)",
            Self::DryRun => "the script's own events -> allocator",
            Self::FakeTensor => "peak of live tensors, nothing else",
            Self::Horus => "4 (A B + P + B P) + 800 MiB",
            Self::Zero => "parameters, gradients, optimizer state per rank",
            Self::Llmem => "formula for fine-tuning language models",
            Self::Dnnperf => "learned from features of the layer graph",
            Self::GpumemnetMlp => "learned classes, global features",
            Self::GpumemnetTransformer => "learned classes, sequence of layers",
        }
    }

    /// Answers a question, or says what it would need.
    pub fn estimate(self, question: &Question<'_>) -> Result<Answer, Unanswered> {
        match self {
            Self::Static => replayed::from_graph(question),
            Self::DryRun => replayed::from_recording(question),
            Self::FakeTensor => replayed::live_peak(question),
            Self::Horus => analytic::horus(question),
            Self::Zero => analytic::zero(question),
            Self::Llmem => llmem::estimate(question),
            Self::Dnnperf => learned::dnnperf(question),
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

/// What is known about a job.
#[derive(Debug, Clone, Copy)]
pub struct Question<'job> {
    /// Its layers, where a description was given.
    pub model: Option<&'job Model>,
    /// How it is trained.
    pub training: &'job Training,
    /// Events of a dry run, where there was one.
    pub recording: Option<&'job Recording>,
    /// The software it runs on.
    pub stack: &'job Stack,
    /// Settings of the allocator.
    pub allocator: AllocatorSettings,
    /// Bytes of the GPU, where it is known which it will be.
    pub gpu: Option<u64>,
    /// How sure the upper bound shall be.
    pub confidence: f64,
}

impl<'job> Question<'job> {
    fn model(&self) -> Result<&'job Model, Unanswered> {
        self.model.filter(|model| !model.layers.is_empty()).ok_or(Unanswered::NeedsModel)
    }
}

/// What an estimator says of one rank, before its own record is taken into account.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// Bytes that the GPU will show.
    pub bytes: u64,
    /// Where they go, as far as the estimator distinguishes.
    pub breakdown: Option<(Breakdown, u64)>,
    /// Whether it would run out of memory on the GPU in question.
    pub out_of_memory: bool,
    /// The upper bound that a learner itself gives at the question's confidence.
    pub own_bound: Option<u64>,
}

impl Answer {
    fn plain(bytes: u64) -> Self {
        Self { bytes, breakdown: None, out_of_memory: false, own_bound: None }
    }
}

/// Why an estimator has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// No description.
    #[error("needs a description of the model")]
    NeedsModel,
    /// No dry run.
    #[error("needs a dry run: carma trace-memory")]
    NeedsRecording,
    /// Made for others.
    #[error("is for language models only")]
    LanguageModelsOnly,
    /// No weights.
    #[error("has not been trained for this kind of model")]
    NotTrained,
}

/// Whether a model has convolutions: their library is loaded only then.
pub(crate) fn convolves(model: &Model) -> bool {
    model.layers.iter().any(|layer| matches!(layer.kind, LayerKind::Convolution { .. }))
}
