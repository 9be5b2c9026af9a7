//! The tables and keys of our own description.

use serde::Deserialize;
use toml::Spanned;

use crate::training::{Optimizer, Precision};

/// The line that identifies the full form.
pub(super) const FORMAT: &str = "carma-model 1";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub format: Option<Spanned<String>>,
    pub name: Option<String>,
    /// Leading dimension of the outputs.
    pub batch: Option<Spanned<u64>>,
    pub precision: Option<Spanned<String>>,
    /// Total of trainable parameters, if the source description stated it.
    pub stated_parameters: Option<u64>,
    /// Shape of a sample.
    pub input: Option<Vec<u64>>,
    /// Shapes of several inputs, with the batch.
    #[serde(default)]
    pub inputs: Vec<Input>,
    #[serde(default)]
    pub training: Training,
    #[serde(default, rename = "layer")]
    pub layers: Vec<Spanned<Layer>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    pub shape: Vec<u64>,
    pub dtype: Option<Spanned<String>>,
    #[serde(default)]
    pub fixed: bool,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Training {
    pub batch: Option<u64>,
    pub sequence: Option<u64>,
    pub optimizer: Option<Optimizer>,
    pub precision: Option<Precision>,
    pub checkpointing: Option<bool>,
    pub fusion: Option<bool>,
    pub stack: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Layer {
    pub name: Option<String>,
    #[serde(rename = "type")]
    pub class: String,
    /// Its kind, if the type is not sufficient.
    pub kind: Option<String>,
    pub inputs: Option<Vec<String>>,
    pub output: Option<Vec<u64>>,
    /// Whether the output size does not depend on the batch.
    #[serde(default)]
    pub fixed: bool,
    pub parameters: Option<u64>,
    pub tensors: Option<Vec<u64>>,
    /// The layer that it shares parameters with.
    pub shares: Option<String>,
    pub kernel: Option<Sides>,
    pub stride: Option<Sides>,
    pub padding: Option<Sides>,
    pub dilation: Option<Sides>,
    pub size: Option<Sides>,
    pub groups: Option<u64>,
    pub transposed: Option<bool>,
    #[serde(default)]
    pub in_place: bool,
    #[serde(default)]
    pub view: bool,
    pub heads: Option<u64>,
    pub dropout: Option<f64>,
    pub kept: Option<u64>,
    pub gates: Option<u64>,
    pub hidden: Option<u64>,
    pub layers: Option<u64>,
    pub dtype: Option<String>,
    pub module: Option<String>,
    /// Output channels, for the short form.
    pub channels: Option<u64>,
    /// Output features, for the short form.
    pub features: Option<u64>,
    /// Rows of an embedding table, for the short form.
    pub rows: Option<u64>,
    pub bias: Option<bool>,
    pub scale: Option<f64>,
}

/// One side, or height and width.
#[derive(Deserialize, Clone, Copy)]
#[serde(untagged)]
pub(super) enum Sides {
    One(u64),
    Signal([u64; 1]),
    Two([u64; 2]),
    Volume([u64; 3]),
}

impl Sides {
    pub(super) fn pair(self) -> [u64; 2] {
        match self {
            Self::One(side) => [side, side],
            Self::Signal([length]) => [1, length],
            Self::Two(sides) => sides,
            Self::Volume([depth, height, width]) => [depth.saturating_mul(height), width],
        }
    }
}
