//! Training options, which a model's description does not contain.

use serde::{Deserialize, Serialize};

use crate::model::{ElementType, Layer, LayerKind};

/// Training options that affect memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Training {
    /// Batch size: over all GPUs if one process is data-parallel, per rank otherwise.
    pub batch: u64,
    /// Tokens in a sample, for models over sequences.
    pub sequence: Option<u64>,
    /// Shape of one sample, such as `[3, 224, 224]`.
    pub input: Option<Vec<u64>>,
    /// The optimizer.
    pub optimizer: Optimizer,
    /// Whether the optimizer adds weight decay to the gradients (not `AdamW`, which shrinks the weights in place).
    pub weight_decay: bool,
    /// Types of weights and activations.
    pub precision: Precision,
    /// Whether activations are recomputed block by block in the backward pass.
    pub checkpointing: bool,
    /// Whether elementwise operators are fused (`torch.compile`).
    pub fusion: bool,
    /// Parallelism over GPUs.
    pub parallel: Parallel,
    /// Samples of a forward pass before training: printing a summary with torchsummary does one with 2. The memory that the allocator
    /// reserves for it is too small for training.
    pub rehearsal: Option<u64>,
    /// Rank of low-rank adapters: only they are trained, the weights are frozen.
    pub adapters: Option<u64>,
}

impl Default for Training {
    fn default() -> Self {
        Self {
            batch: 1,
            sequence: None,
            input: None,
            optimizer: Optimizer::Adam,
            weight_decay: false,
            precision: Precision::Float32,
            checkpointing: false,
            fusion: false,
            parallel: Parallel::Single,
            rehearsal: None,
            adapters: None,
        }
    }
}

impl Training {
    /// Trained elements of a layer: all, or those of the adapters of a linear layer.
    pub fn trained_elements(&self, layer: &Layer) -> u64 {
        match self.adapters {
            None => layer.parameters,
            Some(rank) if layer.kind == LayerKind::Linear => {
                let weight = layer.tensors.first().copied().unwrap_or(layer.parameters);
                let (output, input) = (layer.output.features().max(1), weight / layer.output.features().max(1));
                rank.saturating_mul(input.saturating_add(output))
            }
            Some(_) => 0,
        }
    }
}

/// The optimizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Optimizer {
    /// No training: forward passes only.
    None,
    /// Plain gradient descent.
    Sgd,
    /// Gradient descent with momentum.
    Momentum,
    /// Adam, and its relatives with two moments (`RAdam`, `NAdam`).
    Adam,
    /// Adam with decoupled weight decay.
    AdamW,
    /// Adam in one fused kernel.
    FusedAdam,
    /// Adam with 8-bit moments.
    Adam8bit,
    /// Root mean square propagation.
    RmsProp,
    /// Accumulated squares.
    Adagrad,
    /// Factored second moments.
    Adafactor,
    /// Sign of the momentum.
    Lion,
}

/// Types of weights and activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// Everything in 4 bytes.
    Float32,
    /// Weights in 4 bytes, matrix products and their results in 2 (automatic mixed precision).
    Mixed,
    /// Everything in 2 bytes (`float16` or `bfloat16`).
    Half,
}

impl Precision {
    /// Type of the weights.
    pub const fn weights(self) -> ElementType {
        match self {
            Self::Float32 | Self::Mixed => ElementType::Float32,
            Self::Half => ElementType::BFloat16,
        }
    }

    /// Type of most activations.
    pub const fn activations(self) -> ElementType {
        match self {
            Self::Float32 => ElementType::Float32,
            Self::Mixed | Self::Half => ElementType::BFloat16,
        }
    }
}

/// Parallelism over GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parallel {
    /// One GPU.
    Single,
    /// `nn.DataParallel`: one process, the batch is split, results are gathered on the first GPU.
    DataParallel {
        /// Number of GPUs.
        gpus: u64,
    },
    /// One process per GPU with a full replica (`DistributedDataParallel`).
    Distributed {
        /// Number of processes.
        gpus: u64,
    },
    /// Optimizer state (1), gradients (2) and weights (3) sharded over the processes.
    Zero {
        /// `ZeRO` stage, 1 to 3.
        stage: u8,
        /// Number of processes.
        gpus: u64,
    },
}
