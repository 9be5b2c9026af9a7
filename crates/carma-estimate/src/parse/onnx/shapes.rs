//! Shape inference for common operators, if the file does not store the shapes.

use super::super::convolution;
use super::contents;
use super::messages::Node;
use super::rearrange;

/// Dimensions including the batch.
pub(super) type Dimensions = Vec<u64>;

/// What is known about a value: its dimensions, and its content if it is a short integer list, such as a shape.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    pub dimensions: Option<Dimensions>,
    pub content: Option<Vec<i64>>,
    /// The value of a floating-point scalar.
    pub fraction: Option<f32>,
}

/// What is known about a node's first result.
pub(super) fn result(node: &Node<'_>, inputs: &[Known]) -> Known {
    let dimensions = |place: usize| inputs.get(place).and_then(|input| input.dimensions.as_ref());
    let content = |place: usize| inputs.get(place).and_then(|input| input.content.as_deref());
    let axes = || node.numbers("axes").or_else(|| content(1)).map(<[i64]>::to_vec);
    let shape = match node.operator {
        "Conv" => dimensions(0).zip(dimensions(1)).and_then(|(input, weight)| convolved(node, input, weight)),
        "ConvTranspose" => dimensions(0).zip(dimensions(1)).and_then(|(input, weight)| enlarged(node, input, weight)),
        "MaxPool" | "AveragePool" => dimensions(0).and_then(|input| pooled(node, input)),
        "GlobalAveragePool" | "GlobalMaxPool" => {
            dimensions(0).map(|input| input.iter().take(2).copied().chain(input.iter().skip(2).map(|_| 1)).collect())
        }
        "Flatten" => dimensions(0).map(|input| {
            let (outer, inner) = input.split_at(place(node.number("axis").unwrap_or(1), input.len()).min(input.len()));
            vec![product(outer), product(inner)]
        }),
        "Reshape" => {
            let shape = dimensions(0).zip(content(1)).and_then(|(input, wanted)| reshaped(input, wanted));
            return Known { dimensions: shape, content: content(0).map(<[i64]>::to_vec), ..Known::default() };
        }
        "Expand" => dimensions(0).zip(content(1)).and_then(|(input, wanted)| {
            let wanted: Dimensions = wanted.iter().map(|&size| u64::try_from(size).unwrap_or(1)).collect();
            broadcast(input, &wanted)
        }),
        "Transpose" => dimensions(0).and_then(|input| {
            let reversed: Vec<i64> = (0_i64..).take(input.len()).collect::<Vec<_>>().into_iter().rev().collect();
            let order = node.numbers("perm").unwrap_or(&reversed);
            order.iter().map(|&axis| input.get(usize::try_from(axis).ok()?).copied()).collect()
        }),
        "Unsqueeze" => return rearrange::unsqueezed(inputs, axes()),
        "Squeeze" => return rearrange::squeezed(inputs, axes().as_deref()),
        "Concat" => return rearrange::concatenated(node, inputs),
        "Gather" => return rearrange::gathered(node, inputs),
        "Gemm" => dimensions(0).zip(dimensions(1)).and_then(|(input, weight)| {
            let rows = if node.number("transA") == Some(1) { input.get(1) } else { input.first() };
            let columns = if node.number("transB") == Some(1) { weight.first() } else { weight.get(1) };
            Some(vec![*rows?, *columns?])
        }),
        "MatMul" => dimensions(0).zip(dimensions(1)).and_then(|(left, right)| multiplied(left, right)),
        "ReduceMean" | "ReduceSum" | "ReduceMax" | "ReduceMin" | "ReduceL2" => {
            dimensions(0).map(|input| reduced(input, axes().as_deref(), node.number("keepdims") != Some(0)))
        }
        "Shape" => {
            let content = dimensions(0).map(|input| input.iter().map(|&size| i64::try_from(size).unwrap_or(i64::MAX)).collect::<Vec<_>>());
            return Known { dimensions: content.as_ref().map(|sizes| vec![sizes.len() as u64]), content, ..Known::default() };
        }
        "Constant" => {
            let attribute = node.attributes.first();
            let tensor = attribute.and_then(|attribute| attribute.tensor.as_ref());
            let numbers = attribute.map(|attribute| {
                tensor.map_or_else(
                    || attribute.number.map_or_else(|| attribute.numbers.clone(), |number| vec![number]),
                    |tensor| tensor.numbers.clone(),
                )
            });
            return Known {
                dimensions: Some(tensor.map_or_else(Vec::new, |tensor| tensor.dimensions.clone())),
                content: numbers.filter(|numbers| !numbers.is_empty()),
                fraction: tensor.and_then(|tensor| tensor.fraction),
            };
        }
        "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Equal" | "Less" | "Greater" | "And" | "Or" | "Max" | "Min" | "PRelu" | "Mod" => {
            let shape = dimensions(0).zip(dimensions(1)).and_then(|(left, right)| broadcast(left, right));
            let content = content(0).zip(content(1)).and_then(|(left, right)| contents::arithmetic(node.operator, left, right));
            return Known { dimensions: shape, content, ..Known::default() };
        }
        "Where" if content(0).is_some() && content(1).is_some() => {
            let content = content(0).zip(content(1)).zip(content(2)).and_then(|((chosen, yes), no)| contents::chosen(chosen, yes, no));
            return Known { dimensions: content.as_ref().map(|content| vec![content.len() as u64]), content, ..Known::default() };
        }
        "Where" => dimensions(1).zip(dimensions(2)).and_then(|(left, right)| broadcast(left, right)),
        "Cast" | "Identity" => return inputs.first().cloned().unwrap_or_default(),
        "ConstantOfShape" => {
            let shape: Option<Dimensions> = content(0).map(|sizes| sizes.iter().map(|&size| u64::try_from(size).unwrap_or(1)).collect());
            let content = shape.as_deref().and_then(|shape| contents::filled(node, shape));
            return Known { dimensions: shape, content, ..Known::default() };
        }
        "GatherElements" => dimensions(1).cloned(),
        "Slice" => return rearrange::sliced(inputs),
        "Split" => dimensions(0).map(|input| rearrange::parted(node, input, content(1))),
        operator if keeps_shape(operator) => dimensions(0).cloned(),
        _ => None,
    };
    Known { dimensions: shape, content: None, ..Known::default() }
}

fn keeps_shape(operator: &str) -> bool {
    matches!(
        operator,
        "Relu"
            | "Sigmoid"
            | "Tanh"
            | "Clip"
            | "LeakyRelu"
            | "Elu"
            | "Selu"
            | "Celu"
            | "HardSwish"
            | "HardSigmoid"
            | "Softplus"
            | "Softsign"
            | "Mish"
            | "Gelu"
            | "Erf"
            | "Sqrt"
            | "Exp"
            | "Log"
            | "Abs"
            | "Neg"
            | "Reciprocal"
            | "Floor"
            | "Ceil"
            | "Not"
            | "Sin"
            | "Cos"
            | "Dropout"
            | "BatchNormalization"
            | "InstanceNormalization"
            | "GroupNormalization"
            | "LayerNormalization"
            | "LRN"
            | "Softmax"
            | "LogSoftmax"
            | "SimplifiedLayerNormalization"
            | "RMSNormalization"
            | "CumSum"
            | "Trilu"
            | "Swish"
    )
}

fn product(sizes: &[u64]) -> u64 {
    sizes.iter().fold(1, |product, &size| u64::saturating_mul(product, size))
}

/// An axis, which may count from the end.
pub(super) fn place(axis: i64, rank: usize) -> usize {
    let number = usize::try_from(axis.unsigned_abs()).unwrap_or(usize::MAX);
    if axis < 0 { rank.saturating_sub(number) } else { number }
}

fn side(numbers: Option<&[i64]>, axis: usize, usual: u64) -> u64 {
    numbers.and_then(|numbers| numbers.get(axis)).and_then(|&number| u64::try_from(number).ok()).unwrap_or(usual)
}

fn slide(node: &Node<'_>, size: u64, axis: usize, kernel: u64, rank: usize) -> u64 {
    let (pads, stride) = (node.numbers("pads"), side(node.numbers("strides"), axis, 1));
    let automatic = node.attribute("auto_pad").is_some_and(|attribute| attribute.text.starts_with(b"SAME"));
    if automatic {
        return size.div_ceil(stride.max(1));
    }
    let padded = size.saturating_add(side(pads, axis, 0)).saturating_add(side(pads, axis.saturating_add(rank), 0));
    convolution::slide(padded, kernel, stride, 0, side(node.numbers("dilations"), axis, 1), node.number("ceil_mode") == Some(1))
}

fn convolved(node: &Node<'_>, input: &[u64], weight: &[u64]) -> Option<Dimensions> {
    let (spatial, kernel) = (input.get(2..)?, weight.get(2..)?);
    let sizes = spatial.iter().zip(kernel).enumerate().map(|(axis, (&size, &kernel))| slide(node, size, axis, kernel, spatial.len()));
    Some([*input.first()?, *weight.first()?].into_iter().chain(sizes).collect())
}

fn enlarged(node: &Node<'_>, input: &[u64], weight: &[u64]) -> Option<Dimensions> {
    let (spatial, kernel) = (input.get(2..)?, weight.get(2..)?);
    let pads = node.numbers("pads");
    let sizes = spatial.iter().zip(kernel).enumerate().map(|(axis, (&size, &kernel))| {
        let grown = size.saturating_sub(1).saturating_mul(side(node.numbers("strides"), axis, 1)).saturating_add(kernel);
        let cut = side(pads, axis, 0).saturating_add(side(pads, axis + spatial.len(), 0));
        grown.saturating_add(side(node.numbers("output_padding"), axis, 0)).saturating_sub(cut).max(1)
    });
    let groups = u64::try_from(node.number("group").unwrap_or(1)).unwrap_or(1);
    Some([*input.first()?, weight.get(1)?.saturating_mul(groups)].into_iter().chain(sizes).collect())
}

fn pooled(node: &Node<'_>, input: &[u64]) -> Option<Dimensions> {
    let (kernel, spatial) = (node.numbers("kernel_shape")?, input.get(2..)?);
    let sizes = spatial.iter().enumerate().map(|(axis, &size)| slide(node, size, axis, side(Some(kernel), axis, 1), spatial.len()));
    Some(input.iter().take(2).copied().chain(sizes).collect())
}

/// 0 keeps a dimension, -1 takes the remaining elements.
fn reshaped(input: &[u64], wanted: &[i64]) -> Option<Dimensions> {
    let mut sizes: Vec<Option<u64>> = Vec::with_capacity(wanted.len());
    for (axis, &size) in wanted.iter().enumerate() {
        sizes.push(match size {
            0 => Some(*input.get(axis)?),
            -1 => None,
            size => Some(u64::try_from(size).ok()?),
        });
    }
    let known = product(&sizes.iter().flatten().copied().collect::<Vec<_>>());
    let left = product(input).checked_div(known)?;
    Some(sizes.into_iter().map(|size| size.unwrap_or(left)).collect())
}

fn broadcast(left: &[u64], right: &[u64]) -> Option<Dimensions> {
    let rank = left.len().max(right.len());
    let size = |sizes: &[u64], axis: usize| axis.checked_sub(rank - sizes.len()).and_then(|axis| sizes.get(axis)).copied().unwrap_or(1);
    (0..rank)
        .map(|axis| match (size(left, axis), size(right, axis)) {
            (1, other) | (other, 1) => Some(other),
            (a, b) if a == b => Some(a),
            _ => None,
        })
        .collect()
}

fn multiplied(left: &[u64], right: &[u64]) -> Option<Dimensions> {
    let [left_outer @ .., rows, _] = left else { return None };
    match right {
        [_] => Some(left_outer.iter().copied().chain([*rows]).collect()),
        [right_outer @ .., _, columns] => {
            let mut sizes = broadcast(left_outer, right_outer)?;
            sizes.extend([*rows, *columns]);
            Some(sizes)
        }
        [] => None,
    }
}

fn reduced(input: &[u64], axes: Option<&[i64]>, keeps: bool) -> Dimensions {
    let gone = |axis: usize| axes.is_none_or(|axes| axes.iter().any(|&reduced| place(reduced, input.len()) == axis));
    input.iter().enumerate().filter(|(axis, _)| keeps || !gone(*axis)).map(|(axis, &size)| if gone(axis) { 1 } else { size }).collect()
}
