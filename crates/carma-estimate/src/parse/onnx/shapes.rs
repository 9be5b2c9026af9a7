//! Shapes of results that the file does not store, for the operators that are common.

use super::super::convolution;
use super::contents;
use super::messages::Node;

/// Dimensions with the batch among them.
pub(super) type Dimensions = Vec<u64>;

/// What is known of a value: its dimensions, and its content where it is a short list of whole numbers, such as a shape.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    pub dimensions: Option<Dimensions>,
    pub content: Option<Vec<i64>>,
    /// The only number, where it is a fraction.
    pub fraction: Option<f32>,
}

/// What is known of a node's first result.
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
            let reversed: Vec<i64> = (0..input.len() as i64).rev().collect();
            let order = node.numbers("perm").unwrap_or(&reversed);
            order.iter().map(|&axis| input.get(usize::try_from(axis).ok()?).copied()).collect()
        }),
        "Unsqueeze" => return unsqueezed(inputs, axes()),
        "Squeeze" => return squeezed(inputs, axes()),
        "Concat" => return concatenated(node, inputs),
        "Gather" => return gathered(node, inputs),
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
        "Slice" => return sliced(inputs),
        "Split" => dimensions(0).map(|input| parted(node, input, content(1))),
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

/// An axis that may be counted from the end.
fn place(axis: i64, rank: usize) -> usize {
    if axis < 0 { (rank as i64).saturating_add(axis).max(0) as usize } else { axis as usize }
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

/// 0 keeps a dimension, -1 takes what is left.
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

fn unsqueezed(inputs: &[Known], axes: Option<Vec<i64>>) -> Known {
    let Some(input) = inputs.first() else { return Known::default() };
    let dimensions = input.dimensions.as_ref().zip(axes).map(|(sizes, axes)| {
        let rank = sizes.len() + axes.len();
        let mut sizes = sizes.clone();
        let mut places: Vec<usize> = axes.iter().map(|&axis| place(axis, rank)).collect();
        places.sort_unstable();
        for place in places {
            sizes.insert(place.min(sizes.len()), 1);
        }
        sizes
    });
    Known { dimensions, content: input.content.clone(), ..Known::default() }
}

fn squeezed(inputs: &[Known], axes: Option<Vec<i64>>) -> Known {
    let Some(input) = inputs.first() else { return Known::default() };
    let dimensions = input.dimensions.as_ref().map(|sizes| {
        let gone = |axis: usize, size: u64| match &axes {
            Some(axes) => axes.iter().any(|&squeezed| place(squeezed, sizes.len()) == axis),
            None => size == 1,
        };
        sizes.iter().enumerate().filter(|&(axis, &size)| !gone(axis, size)).map(|(_, &size)| size).collect()
    });
    Known { dimensions, content: input.content.clone(), ..Known::default() }
}

fn concatenated(node: &Node<'_>, inputs: &[Known]) -> Known {
    let all: Option<Vec<&Dimensions>> = inputs.iter().map(|input| input.dimensions.as_ref()).collect();
    let dimensions = all.and_then(|all| {
        let mut sizes = (*all.first()?).clone();
        let axis = place(node.number("axis").unwrap_or(0), sizes.len());
        *sizes.get_mut(axis)? = all.iter().fold(0, |sum: u64, each| sum.saturating_add(each.get(axis).copied().unwrap_or(0)));
        Some(sizes)
    });
    let content: Option<Vec<i64>> = inputs.iter().map(|input| input.content.clone()).collect::<Option<Vec<_>>>().map(|all| all.concat());
    Known { dimensions, content: content.filter(|content| content.len() <= contents::LONGEST), ..Known::default() }
}

fn gathered(node: &Node<'_>, inputs: &[Known]) -> Known {
    let (data, indices) = (inputs.first(), inputs.get(1));
    let dimensions = data.and_then(|data| data.dimensions.as_ref()).zip(indices.and_then(|indices| indices.dimensions.as_ref()));
    let dimensions = dimensions.and_then(|(data, indices)| {
        let axis = place(node.number("axis").unwrap_or(0), data.len());
        Some(data.get(..axis)?.iter().chain(indices).chain(data.get(axis + 1..)?).copied().collect())
    });
    let content = data.and_then(|data| data.content.as_ref()).zip(indices.and_then(|indices| indices.content.as_ref()));
    let content = content.and_then(|(data, indices)| indices.iter().map(|&index| data.get(place(index, data.len())).copied()).collect());
    Known { dimensions, content, ..Known::default() }
}

/// Starts, ends, axes and steps are inputs.
fn sliced(inputs: &[Known]) -> Known {
    let list = |place: usize| inputs.get(place).and_then(|input| input.content.as_deref());
    let (Some(input), Some(starts), Some(ends)) = (inputs.first(), list(1), list(2)) else { return Known::default() };
    let mut dimensions = input.dimensions.clone();
    let mut content = input.content.clone();
    for (number, (&start, &end)) in starts.iter().zip(ends).enumerate() {
        let axis = list(3).and_then(|axes| axes.get(number).copied()).unwrap_or(number as i64);
        let step = list(4).and_then(|steps| steps.get(number).copied()).unwrap_or(1);
        let Some(sizes) = dimensions.as_mut() else { break };
        let axis = place(axis, sizes.len());
        let Some(size) = sizes.get_mut(axis) else { break };
        let length = usize::try_from(*size).unwrap_or(usize::MAX);
        let (from, to) = (place(start, length).min(length), place(end, length).min(length));
        let kept = to.saturating_sub(from);
        *size = (kept as u64).div_ceil(step.unsigned_abs().max(1));
        content = content.filter(|_| step == 1).and_then(|content| content.get(from..to.max(from)).map(<[i64]>::to_vec));
    }
    Known { dimensions, content, ..Known::default() }
}

/// The first part of a tensor that is split into as many as the operator has results, or as long as it says.
fn parted(node: &Node<'_>, input: &[u64], sizes: Option<&[i64]>) -> Dimensions {
    let axis = place(node.number("axis").unwrap_or(0), input.len());
    let first = node.numbers("split").or(sizes).and_then(|sizes| sizes.first()).and_then(|&size| u64::try_from(size).ok());
    let parts = node.outputs.len().max(1) as u64;
    input
        .iter()
        .enumerate()
        .map(|(place, &size)| if place == axis { first.unwrap_or_else(|| size.div_ceil(parts)) } else { size })
        .collect()
}
