//! Shapes of tensors that are sliced, concatenated and reshaped, and their content if they are shapes
//! themselves.

use super::contents;
use super::messages::Node;
use super::shapes::{Dimensions, Known, place};

pub(super) fn unsqueezed(inputs: &[Known], axes: Option<Vec<i64>>) -> Known {
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

pub(super) fn squeezed(inputs: &[Known], axes: Option<&[i64]>) -> Known {
    let Some(input) = inputs.first() else { return Known::default() };
    let dimensions = input.dimensions.as_ref().map(|sizes| {
        let gone = |axis: usize, size: u64| match axes {
            Some(axes) => axes.iter().any(|&squeezed| place(squeezed, sizes.len()) == axis),
            None => size == 1,
        };
        sizes.iter().enumerate().filter(|&(axis, &size)| !gone(axis, size)).map(|(_, &size)| size).collect()
    });
    Known { dimensions, content: input.content.clone(), ..Known::default() }
}

pub(super) fn concatenated(node: &Node<'_>, inputs: &[Known]) -> Known {
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

pub(super) fn gathered(node: &Node<'_>, inputs: &[Known]) -> Known {
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
pub(super) fn sliced(inputs: &[Known]) -> Known {
    let list = |place: usize| inputs.get(place).and_then(|input| input.content.as_deref());
    let (Some(input), Some(starts), Some(ends)) = (inputs.first(), list(1), list(2)) else { return Known::default() };
    let mut dimensions = input.dimensions.clone();
    let mut content = input.content.clone();
    for (number, (usual, (&start, &end))) in (0_i64..).zip(starts.iter().zip(ends)).enumerate() {
        let axis = list(3).and_then(|axes| axes.get(number).copied()).unwrap_or(usual);
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

/// The first part of a split, into equal parts per result or of the given sizes.
pub(super) fn parted(node: &Node<'_>, input: &[u64], sizes: Option<&[i64]>) -> Dimensions {
    let axis = place(node.number("axis").unwrap_or(0), input.len());
    let first = node.numbers("split").or(sizes).and_then(|sizes| sizes.first()).and_then(|&size| u64::try_from(size).ok());
    let parts = node.outputs.len().max(1) as u64;
    input
        .iter()
        .enumerate()
        .map(|(place, &size)| if place == axis { first.unwrap_or_else(|| size.div_ceil(parts)) } else { size })
        .collect()
}
