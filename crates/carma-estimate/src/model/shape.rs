//! Dimensions of tensors without the batch, and their element types.

use serde::{Deserialize, Serialize};

/// The dimensions of a tensor, without the batch dimension, so that one description serves every batch size.
///
/// ```
/// use carma_estimate::model::Shape;
/// assert_eq!(Shape::batched([64, 112, 112]).elements(32), 32 * 64 * 112 * 112);
/// assert_eq!(Shape::fixed([512, 768]).elements(32), 512 * 768);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shape {
    batched: bool,
    dimensions: Vec<u64>,
}

impl Shape {
    /// A tensor with a leading batch dimension, which is not part of `dimensions`.
    pub fn batched(dimensions: impl Into<Vec<u64>>) -> Self {
        Self { batched: true, dimensions: dimensions.into() }
    }

    /// A tensor whose size does not depend on the batch.
    pub fn fixed(dimensions: impl Into<Vec<u64>>) -> Self {
        Self { batched: false, dimensions: dimensions.into() }
    }

    /// A shape as printed for batches of `batch`: the leading dimension is the batch if it is a multiple of it (attention windows and
    /// folded heads multiply it). The caller has replaced `-1` by `batch`.
    pub fn written(dimensions: &[u64], batch: u64) -> Self {
        match dimensions.split_first() {
            Some((&first, rest)) if batch > 0 && first >= batch && first % batch == 0 => {
                let windows = first / batch;
                let folded = if windows == 1 { rest.to_vec() } else { std::iter::once(windows).chain(rest.iter().copied()).collect() };
                Self::batched(folded)
            }
            _ => Self::fixed(dimensions),
        }
    }

    /// The dimensions without the batch.
    pub fn dimensions(&self) -> &[u64] {
        &self.dimensions
    }

    /// Whether it grows with the batch.
    pub fn is_batched(&self) -> bool {
        self.batched
    }

    /// Elements for one sample (for a fixed tensor, all elements). Saturates instead of overflowing on hostile sizes.
    pub fn per_sample(&self) -> u64 {
        self.dimensions.iter().fold(1, |product, &dimension| u64::saturating_mul(product, dimension))
    }

    /// Elements at a batch size.
    pub fn elements(&self, batch: u64) -> u64 {
        self.per_sample().saturating_mul(if self.batched { batch } else { 1 })
    }

    /// Channels, height and width of an image (`[C, H, W]`); a signal (`[C, L]`) has a height of 1.
    pub fn image(&self) -> Option<[u64; 3]> {
        match *self.dimensions.as_slice() {
            [channels, height, width] => Some([channels, height, width]),
            [channels, length] => Some([channels, 1, length]),
            _ => None,
        }
    }

    /// The last dimension: features of a linear layer.
    pub fn features(&self) -> u64 {
        self.dimensions.last().copied().unwrap_or(1)
    }
}

/// Type of an element of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    /// 8 bytes.
    Float64,
    /// 4 bytes.
    Float32,
    /// 2 bytes.
    Float16,
    /// 2 bytes, with the range of `float32`.
    BFloat16,
    /// 8 bytes.
    Int64,
    /// 4 bytes.
    Int32,
    /// 1 byte.
    Int8,
    /// 1 byte.
    Bool,
}

impl ElementType {
    /// Size in bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Float64 | Self::Int64 => 8,
            Self::Float32 | Self::Int32 => 4,
            Self::Float16 | Self::BFloat16 => 2,
            Self::Int8 | Self::Bool => 1,
        }
    }

    /// The type of this PyTorch name, with or without `torch.`, or safetensors' short name (`F32`, `BF16`).
    pub fn named(name: &str) -> Option<Self> {
        Some(match name.trim_start_matches("torch.").to_ascii_lowercase().as_str() {
            "float64" | "double" | "f64" => Self::Float64,
            "float32" | "float" | "f32" => Self::Float32,
            "float16" | "half" | "f16" => Self::Float16,
            "bfloat16" | "bf16" => Self::BFloat16,
            "int64" | "long" | "i64" | "u64" => Self::Int64,
            "int32" | "int" | "i32" | "u32" => Self::Int32,
            "int8" | "uint8" | "i8" | "u8" => Self::Int8,
            "bool" => Self::Bool,
            _ => return None,
        })
    }
}
