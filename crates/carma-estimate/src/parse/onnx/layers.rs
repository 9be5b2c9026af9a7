//! ONNX operators as layers.

use super::messages::Node;
use super::shapes::Known;
use super::{Origin, Reader};
use crate::model::{Activation, Layer, LayerKind, Normalisation, Reshaping};

/// PyTorch's class for the operator, if its name differs.
pub(super) fn class<'a>(node: &Node<'a>) -> &'a str {
    match node.operator {
        "Conv" => "Conv2d",
        "ConvTranspose" => "ConvTranspose2d",
        "Gemm" => "Linear",
        "BatchNormalization" => "BatchNorm2d",
        "Relu" => "ReLU",
        "Clip" => "ReLU6",
        operator => operator,
    }
}

impl<'a> Reader<'a, '_> {
    /// The kind of a node.
    pub(super) fn kind(&mut self, node: &Node<'a>, inputs: &[(Origin, Known)], known: &[Known]) -> LayerKind {
        if let Some(kind) = self.part_of_gelu(node, inputs) {
            return kind;
        }
        let activations = inputs.iter().filter(|(origin, _)| matches!(origin, Origin::Source(_))).count();
        match node.operator {
            "Conv" | "ConvTranspose" => {
                let pair = |name: &str| node.numbers(name).map(sides);
                let kernel = pair("kernel_shape").or_else(|| {
                    let weight: Vec<i64> = known.get(1)?.dimensions.as_ref()?.iter().skip(2).map(|&size| size.cast_signed()).collect();
                    Some(sides(&weight))
                });
                LayerKind::Convolution {
                    kernel: kernel.unwrap_or([1, 1]),
                    stride: pair("strides").unwrap_or([1, 1]),
                    groups: node.number("group").and_then(|groups| u64::try_from(groups).ok()).unwrap_or(1),
                    transposed: node.operator == "ConvTranspose",
                }
            }
            "Gemm" => LayerKind::Linear,
            "MatMul" if activations < 2 => LayerKind::Linear,
            "MatMul" | "Einsum" => LayerKind::MatrixProduct,
            "BatchNormalization" => LayerKind::Normalisation(Normalisation::Batch),
            "LayerNormalization" => LayerKind::Normalisation(Normalisation::Layer),
            "InstanceNormalization" | "GroupNormalization" => LayerKind::Normalisation(Normalisation::Group),
            "RMSNormalization" | "SimplifiedLayerNormalization" => LayerKind::Normalisation(Normalisation::RootMeanSquare),
            "LRN" => LayerKind::Normalisation(Normalisation::LocalResponse),
            "Relu" | "Clip" | "Sigmoid" | "Tanh" | "Exp" | "Sqrt" => LayerKind::Activation(Activation::KeepsOutput),
            "LeakyRelu" | "Elu" | "Selu" | "Celu" | "HardSwish" | "HardSigmoid" | "Softplus" | "Softsign" | "Mish" | "Gelu" | "PRelu"
            | "Log" | "Abs" | "Pow" | "Swish" | "Erf" | "Reciprocal" => LayerKind::Activation(Activation::KeepsInput),
            "Dropout" => {
                let written = node.attribute("ratio").and_then(|attribute| attribute.float);
                let ratio = written.or_else(|| known.get(1)?.fraction);
                LayerKind::Dropout { probability: ratio.map(f64::from).filter(|share| (0.0..=1.0).contains(share)).unwrap_or(0.5) }
            }
            "MaxPool" | "GlobalMaxPool" => LayerKind::MaxPool,
            "AveragePool" | "GlobalAveragePool" => LayerKind::AveragePool,
            "Softmax" | "LogSoftmax" => LayerKind::Softmax,
            "Mul" | "Div" if activations > 1 => LayerKind::Multiply,
            "Add" | "Sub" | "Mul" | "Div" | "Neg" | "Where" | "Sum" => LayerKind::Add,
            "Concat" => LayerKind::Concatenate,
            "ReduceMean" | "ReduceSum" | "ReduceMax" | "ReduceMin" | "ReduceL2" => LayerKind::Reduce,
            "Resize" | "Upsample" => LayerKind::Upsample,
            "Flatten" | "Reshape" | "Transpose" | "Squeeze" | "Unsqueeze" | "Identity" | "Split" | "Slice" | "Expand" | "Cast" => {
                LayerKind::Reshape(Reshaping::View)
            }
            "Gather" if matches!(inputs.first(), Some((Origin::Weight(_), _))) => LayerKind::Embedding,
            "Gather" | "GatherElements" | "Pad" | "Tile" | "DepthToSpace" | "SpaceToDepth" => LayerKind::Reshape(Reshaping::Copy),
            _ => LayerKind::Unknown,
        }
    }

    /// GELU is exported as x * (erf(x / √2) + 1) / 2, but PyTorch runs it as one operator: the erf node represents it.
    fn part_of_gelu(&mut self, node: &Node<'a>, inputs: &[(Origin, Known)]) -> Option<LayerKind> {
        let output = *node.outputs.first()?;
        if node.operator == "Erf" {
            self.within_gelu.insert(output, 3);
            return Some(LayerKind::Activation(Activation::KeepsInput));
        }
        let left = node.inputs.iter().find_map(|name| self.within_gelu.get(name)).copied().filter(|&left| left > 0)?;
        if !matches!(node.operator, "Add" | "Mul") || inputs.len() != 2 {
            return None;
        }
        self.within_gelu.insert(output, left - 1);
        Some(LayerKind::Reshape(Reshaping::View))
    }

    /// In-place execution, as in torchvision and timm.
    pub(super) fn runs_in_place(&self, node: &Node<'_>, layer: &Layer) -> bool {
        let before = layer.inputs.first().and_then(|&source| self.graph.layer(source));
        // A bias exported as a separate sum belongs to the product before it.
        if node.operator == "Add" && layer.parameters > 0 && before.is_some_and(|before| before.kind == LayerKind::Linear) {
            return true;
        }
        matches!(node.operator, "Relu" | "Clip")
            && before
                .is_some_and(|before| matches!(before.kind, LayerKind::Normalisation(_) | LayerKind::Convolution { .. } | LayerKind::Add))
    }
}

/// Height and width; a signal has height 1, and the depth of a volume is folded into the height.
fn sides(numbers: &[i64]) -> [u64; 2] {
    let size = |number: i64| u64::try_from(number).unwrap_or(1);
    match *numbers {
        [length] => [1, size(length)],
        [height, width] => [size(height), size(width)],
        [depth, height, width] => [size(depth).saturating_mul(size(height)), size(width)],
        _ => [1, 1],
    }
}
