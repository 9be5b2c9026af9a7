//! Writes a model as our own description, so that any other format can be converted.

use std::fmt::Write as _;

use super::kinds;
use super::schema::FORMAT;
use crate::model::{Activation, ElementType, Layer, LayerKind, Model, Reshaping, Shape, Source};

/// Writes a model in our own format.
///
/// ```
/// use carma_estimate::{parse, training::Training};
/// let text = "input = [3, 32, 32]\n[[layer]]\ntype = \"Conv2d\"\nchannels = 8\nkernel = 3\n";
/// let model = parse::read(text.as_bytes(), None, &Training::default()).unwrap().model;
/// let written = parse::write_toml(&model);
/// assert_eq!(parse::read(written.as_bytes(), None, &Training::default()).unwrap().model, model);
/// ```
pub fn write_toml(model: &Model) -> String {
    let mut out = String::with_capacity(64 + 160 * model.layers.len());
    let batch = model.stated_batch.filter(|&batch| batch > 0);
    line(&mut out, "format", &quoted(FORMAT));
    if let Some(name) = &model.name {
        line(&mut out, "name", &quoted(name));
    }
    if let Some(batch) = batch {
        line(&mut out, "batch", &number(batch));
    }
    if let Some(parameters) = model.stated_parameters {
        line(&mut out, "stated_parameters", &number(parameters));
    }
    if !model.inputs.is_empty() {
        let inputs: Vec<String> = model
            .inputs
            .iter()
            .map(|input| {
                let element = input.element.map_or(String::new(), |element| format!(", dtype = {}", quoted(element_name(element))));
                let fixed = if input.shape.is_batched() { "" } else { ", fixed = true" };
                format!("{{ shape = {}{element}{fixed} }}", shape(&input.shape, batch))
            })
            .collect();
        line(&mut out, "inputs", &format!("[{}]", inputs.join(", ")));
    }
    for (place, layer) in model.layers.iter().enumerate() {
        write_layer(&mut out, model, place, layer, batch);
    }
    out
}

fn write_layer(out: &mut String, model: &Model, place: usize, layer: &Layer, batch: Option<u64>) {
    out.push_str("\n[[layer]]\n");
    line(out, "name", &quoted(&layer.name));
    line(out, "type", &quoted(&layer.class));
    let by_class = LayerKind::of_class(&layer.class);
    let view = layer.kind == LayerKind::Reshape(Reshaping::View);
    let reshapes = matches!(layer.kind, LayerKind::Reshape(_)) && matches!(by_class, LayerKind::Reshape(_));
    if !view && !reshapes && kinds::name(&by_class) != kinds::name(&layer.kind) {
        line(out, "kind", &quoted(kinds::name(&layer.kind)));
    }
    let before = place.checked_sub(1).map_or(Source::Input(0), Source::Layer);
    if layer.inputs != [before] {
        let names: Vec<String> = layer.inputs.iter().map(|source| quoted(&source_name(model, *source))).collect();
        line(out, "inputs", &format!("[{}]", names.join(", ")));
    }
    line(out, "output", &shape(&layer.output, batch));
    if !layer.output.is_batched() {
        line(out, "fixed", "true");
    }
    if layer.parameters > 0 {
        line(out, "parameters", &number(layer.parameters));
        line(out, "tensors", &list(&layer.tensors));
    }
    write_attributes(out, &layer.kind);
    if layer.in_place {
        line(out, "in_place", "true");
    }
    if view {
        line(out, "view", "true");
    }
    if let Some(element) = layer.element {
        line(out, "dtype", &quoted(element_name(element)));
    }
    if let Some(block) = &layer.block {
        line(out, "module", &quoted(block));
    }
}

fn write_attributes(out: &mut String, kind: &LayerKind) {
    match kind {
        LayerKind::Convolution { kernel, stride, groups, transposed } => {
            line(out, "kernel", &list(kernel));
            line(out, "stride", &list(stride));
            line(out, "groups", &number(*groups));
            if *transposed {
                line(out, "transposed", "true");
            }
        }
        LayerKind::Dropout { probability } => line(out, "dropout", &format!("{probability:?}")),
        LayerKind::Attention { heads, dropout } => {
            line(out, "heads", &number(*heads));
            line(out, "dropout", &format!("{dropout:?}"));
        }
        LayerKind::Activation(Activation::Composed { kept }) => line(out, "kept", &number(*kept)),
        LayerKind::Recurrent { gates, hidden, layers } => {
            line(out, "gates", &number(*gates));
            line(out, "hidden", &number(*hidden));
            line(out, "layers", &number(*layers));
        }
        _ => {}
    }
}

fn line(out: &mut String, key: &str, value: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{key} = {value}");
}

/// Name of a layer's source; inputs are numbered from the second on.
fn source_name(model: &Model, source: Source) -> String {
    match source {
        Source::Input(0) => "input".to_owned(),
        Source::Input(input) => format!("input{}", input + 1),
        Source::Layer(layer) => model.layers.get(layer).map_or_else(String::new, |layer| layer.name.clone()),
    }
}

/// With a leading batch dimension; 1 if none is stated.
fn shape(shape: &Shape, batch: Option<u64>) -> String {
    let leading = shape.is_batched().then(|| batch.unwrap_or(1));
    list(&leading.into_iter().chain(shape.dimensions().iter().copied()).collect::<Vec<_>>())
}

fn list(numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(|each| number(*each)).collect();
    format!("[{}]", numbers.join(", "))
}

/// TOML integers have at most 63 bits.
fn number(number: u64) -> String {
    number.min(i64::MAX as u64).to_string()
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\u{0}'..='\u{1f}' | '\u{7f}' => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(letter));
            }
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

pub(super) const fn element_name(element: ElementType) -> &'static str {
    match element {
        ElementType::Float64 => "float64",
        ElementType::Float32 => "float32",
        ElementType::Float16 => "float16",
        ElementType::BFloat16 => "bfloat16",
        ElementType::Int64 => "int64",
        ElementType::Int32 => "int32",
        ElementType::Int8 => "int8",
        ElementType::Bool => "bool",
    }
}
