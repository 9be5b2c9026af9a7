//! Other models: convolutions and products in storage order, as one sequence. A rough estimate.

use super::super::error::{ParseError, Problem};
use super::super::graph::Graph;
use super::super::tree::{Attributes, Tree};
use super::super::wiring::{self, Naming};
use super::{Weight, is_statistic};
use crate::model::{LayerKind, Shape};
use crate::training::Training;

/// Convolutions do not reduce images below this size.
const SMALLEST: u64 = 7;

pub(super) fn wire(weights: &[Weight], training: &Training, graph: &mut Graph) -> Result<(), ParseError> {
    let first = weights.iter().find(|weight| weight.shape.len() >= 2);
    let input = match (training.input.as_deref(), first.map(|weight| weight.shape.as_slice())) {
        (Some(given), _) => given.to_vec(),
        (None, Some(&[_, channels, _, _])) => vec![channels, 224, 224],
        (None, Some(&[_, features])) => vec![features],
        _ => {
            return Err(
                Problem::Missing("no architecture is known by these weights: give config.json, or print(model)".to_owned()).at_byte(8)
            );
        }
    };
    graph.input(Shape::batched(input.as_slice()), None);
    graph.note("only weights are stored: their layers are taken to follow each other, which makes the estimate a rough one");
    let mut tree = Tree::default();
    let mut size = input.get(1).copied().unwrap_or(1);
    let mut channels = input.first().copied().unwrap_or(1);
    for weight in weights.iter().filter(|weight| !is_statistic(&weight.name) && weight.name.ends_with("weight")) {
        let path = weight.name.strip_suffix(".weight").unwrap_or(&weight.name);
        let sibling =
            |part: &str| weights.iter().find(|other| other.name.strip_prefix(path).and_then(|rest| rest.strip_prefix('.')) == Some(part));
        let bias = sibling("bias").map_or(0, Weight::elements);
        let class = match weight.shape.len() {
            4 => "Conv2d",
            2 => "Linear",
            1 if sibling("running_mean").is_some() => "BatchNorm2d",
            1 => "LayerNorm",
            _ => continue,
        };
        let module = tree.open(path, class, 1)?;
        module.parameters = Some(weight.elements().saturating_add(bias));
        module.attributes = attributes(&weight.shape, bias > 0, channels, &mut size);
        if matches!(module.kind, LayerKind::Convolution { .. }) {
            channels = weight.shape.first().copied().unwrap_or(1);
        }
        tree.close();
    }
    wiring::wire(&tree.modules, graph, Naming::Own)
}

/// A convolution that increases the channels also halves the image, as is usual; the first does if its filter is large.
fn attributes(shape: &[u64], bias: bool, before: u64, size: &mut u64) -> Attributes {
    match *shape {
        [outputs, inputs, height, width] => {
            let groups = if inputs > 0 && before > inputs && before.is_multiple_of(inputs) && outputs.is_multiple_of(before / inputs) {
                before / inputs
            } else {
                1
            };
            let shrinks = height > 1 && *size > SMALLEST && (outputs > inputs.saturating_mul(groups)) && (inputs > 3 || height > 3);
            let stride = if shrinks { 2 } else { 1 };
            *size /= stride;
            Attributes {
                inputs: Some(inputs.saturating_mul(groups)),
                outputs: Some(outputs),
                kernel: Some([height, width]),
                stride: Some([stride, stride]),
                padding: Some([height / 2, width / 2]),
                groups: Some(groups),
                bias: Some(bias),
                ..Attributes::default()
            }
        }
        [outputs, inputs] => Attributes { inputs: Some(inputs), outputs: Some(outputs), bias: Some(bias), ..Attributes::default() },
        _ => Attributes { inputs: shape.first().copied(), bias: Some(bias), ..Attributes::default() },
    }
}
