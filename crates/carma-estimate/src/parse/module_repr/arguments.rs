//! Arguments of a printed module.

use super::super::parameters;
use super::super::text::{self, pair};
use super::super::tree::Module;
use crate::model::{LayerKind, Normalisation};

/// Parses arguments into a module's attributes; ignores unknown ones.
pub(super) fn read(module: &mut Module<'_>, arguments: &str) {
    let mut place = 0;
    for argument in split(arguments) {
        if let Some((key, value)) = argument.split_once('=') {
            named(module, key.trim(), value.trim());
        } else {
            positional(module, place, argument);
            place += 1;
        }
    }
}

/// Splits arguments at commas outside brackets.
fn split(arguments: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(arguments);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut depth = 0_u32;
        let comma = text.bytes().position(|byte| {
            match byte {
                b'(' | b'[' => depth += 1,
                b')' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            byte == b',' && depth == 0
        });
        rest = comma.and_then(|comma| text.get(comma + 1..));
        Some(text.get(..comma.unwrap_or(text.len())).unwrap_or_default().trim())
    })
    .filter(|argument| !argument.is_empty())
}

fn positional(module: &mut Module<'_>, place: usize, value: &str) {
    let attributes = &mut module.attributes;
    let number = text::count(value);
    match (&module.kind, place) {
        (LayerKind::Convolution { .. } | LayerKind::Linear | LayerKind::Recurrent { .. } | LayerKind::Embedding, 0)
        | (LayerKind::Normalisation(Normalisation::Group), 1) => attributes.inputs = number,
        (LayerKind::Convolution { .. } | LayerKind::Linear | LayerKind::Recurrent { .. } | LayerKind::Embedding, 1) => {
            attributes.outputs = number;
        }
        (LayerKind::Normalisation(Normalisation::Group), 0) if !module.class.starts_with("Instance") => attributes.groups = number,
        (LayerKind::Normalisation(_), 0) => {
            let shape = text::shape(value).map(|(shape, _)| shape);
            // A normalisation over several dimensions has a parameter pair per element.
            attributes.inputs =
                number.or_else(|| shape.map(|shape| shape.iter().fold(1, |product: u64, &size| product.saturating_mul(size))));
        }
        (LayerKind::Unknown, 0) if module.class.ends_with("Embedding") => {
            module.kind = LayerKind::Embedding;
            attributes.inputs = number;
        }
        _ => {}
    }
}

fn named(module: &mut Module<'_>, key: &str, value: &str) {
    let attributes = &mut module.attributes;
    match key {
        "in_features" | "nx" | "input_size" | "num_features" => attributes.inputs = text::count(value),
        "out_features" | "nf" | "hidden_size" => attributes.outputs = text::count(value),
        "kernel_size" => attributes.kernel = pair(value),
        "stride" => attributes.stride = pair(value),
        "padding" => {
            let same = value.contains("same");
            attributes.padding = if same { attributes.kernel.map(|kernel| kernel.map(|side| side / 2)) } else { pair(value) };
        }
        "dilation" => attributes.dilation = pair(value),
        "groups" => attributes.groups = text::count(value),
        "bias" => attributes.bias = Some(value == "True"),
        "affine" | "elementwise_affine" if value == "False" => module.parameters = Some(0),
        "affine" if module.class.starts_with("InstanceNorm") && value == "True" => attributes.bias = Some(true),
        "inplace" => attributes.in_place = Some(value == "True"),
        "p" | "drop_prob" => attributes.probability = value.parse().ok().filter(|share| (0.0..=1.0).contains(share)),
        "ceil_mode" => attributes.round_up = value == "True",
        "output_size" => attributes.output_size = if value == "None" { Some([0, 0]) } else { pair(value) },
        "num_layers" => attributes.layers = text::count(value),
        "num_heads" => attributes.heads = text::count(value),
        "bidirectional" => attributes.bidirectional = value == "True",
        "scale_factor" => attributes.scale = scale(value),
        "num_parameters" => module.parameters = text::count(value),
        _ => {}
    }
}

fn scale(value: &str) -> Option<f64> {
    let first = value.trim_start_matches('(').split(',').next()?;
    first.trim_end_matches(')').trim().parse().ok().filter(|scale: &f64| scale.is_finite() && *scale > 0.0)
}

/// Computes a module's own parameters from its arguments.
pub(super) fn count(module: &mut Module<'_>) {
    let rows = module.attributes.inputs;
    if module.class.starts_with("SelectAdaptivePool") && module.kind == LayerKind::Unknown {
        module.kind = LayerKind::AveragePool;
        module.attributes.output_size = Some([1, 1]);
    }
    if matches!(module.kind, LayerKind::Unknown) {
        return;
    }
    let no_affine = module.class.starts_with("InstanceNorm") && module.attributes.bias != Some(true);
    module.parameters = Some(if no_affine { 0 } else { parameters::by_arguments(module, rows) });
}
