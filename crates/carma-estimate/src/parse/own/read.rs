//! Reads our own description, full or short.

use std::collections::HashMap;

use toml::Spanned;

use super::super::error::{ParseError, Problem};
use super::super::graph::{Graph, MOST_LAYERS};
use super::super::role::Role;
use super::super::tree::{Attributes, Module};
use super::super::{Description, Format, Hints, output, parameters};
use super::kinds;
use super::schema::{self, FORMAT, File, Sides};
use crate::model::{Activation, ElementType, Layer, LayerKind, Reshaping, Shape, Source};
use crate::training::{Precision, Training};

pub(in super::super) fn read(text: &str, training: &Training) -> Result<Description, ParseError> {
    let line_of = |byte: usize| lines_in(text, 0, byte) + 1;
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(span.start));
        Problem::Form(error.message().to_owned()).at_line(line)
    })?;
    let at = |span: &Spanned<String>| line_of(span.span().start);
    if let Some(format) = file.format.as_ref().filter(|format| format.get_ref() != FORMAT) {
        return Err(Problem::expected(format.get_ref(), "a version that is known: \"carma-model 1\"").at_line(at(format)));
    }
    if let Some(batch) = file.batch.as_ref().filter(|batch| *batch.get_ref() == 0) {
        return Err(Problem::expected("0", "a batch of 1 or more").at_line(line_of(batch.span().start)));
    }
    if file.layers.len() > MOST_LAYERS {
        return Err(Problem::TooManyLayers(MOST_LAYERS).at_line(1));
    }
    let precision = match &file.precision {
        Some(written) => Some(precision(written.get_ref()).ok_or_else(|| {
            Problem::expected(written.get_ref(), "a precision: float32, float16, bfloat16, mixed or half").at_line(at(written))
        })?),
        None => None,
    };
    let batch = file.batch.as_ref().map(|batch| *batch.get_ref());
    let hints = Hints {
        batch: file.training.batch.or(batch),
        sequence: file.training.sequence,
        precision: file.training.precision.or(precision),
        optimizer: file.training.optimizer,
        checkpointing: file.training.checkpointing,
        fusion: file.training.fusion,
        stack: file.training.stack.clone(),
        ..Hints::default()
    };
    let mut graph = Graph::new(file.name.as_deref());
    graph.stated(file.stated_parameters, batch);
    let mut reader = Reader { graph, names: HashMap::new(), batch: batch.unwrap_or(1), strict: file.format.is_some() };
    reader.inputs(&file, training).map_err(|problem| problem.at_line(1))?;
    // Layers are in file order, so lines are counted incrementally.
    let (mut line, mut from) = (1, 0);
    for layer in &file.layers {
        let start = layer.span().start;
        line += lines_in(text, from, start);
        from = from.max(start);
        reader.graph.line = line;
        reader.layer(layer.get_ref()).map_err(|problem| problem.at_line(line))?;
    }
    let (model, notes) = reader.graph.finish()?;
    Ok(Description { format: Format::Toml, model, hints, notes })
}

/// Number of line ends between two bytes.
fn lines_in(text: &str, from: usize, to: usize) -> usize {
    text.get(from..to.min(text.len())).unwrap_or_default().matches('\n').count()
}

/// A model under construction.
struct Reader {
    graph: Graph,
    names: HashMap<String, Source>,
    batch: u64,
    /// Whether this is the full form, in which absent flags are false.
    strict: bool,
}

impl Reader {
    fn inputs(&mut self, file: &File, training: &Training) -> Result<(), Problem> {
        for input in &file.inputs {
            let element = match &input.dtype {
                Some(name) => Some(element(name.get_ref())?),
                None => None,
            };
            let shape = self.shape(&input.shape, input.fixed);
            self.graph.input(shape, element);
        }
        if file.inputs.is_empty()
            && let Some(sample) = file.input.as_ref().or(training.input.as_ref())
        {
            self.graph.input(Shape::batched(sample.as_slice()), None);
        }
        Ok(())
    }

    fn shape(&self, dimensions: &[u64], fixed: bool) -> Shape {
        if fixed { Shape::fixed(dimensions) } else { Shape::written(dimensions, self.batch) }
    }

    fn layer(&mut self, entry: &schema::Layer) -> Result<(), Problem> {
        let place = self.graph.layers().len();
        let inputs = match &entry.inputs {
            Some(names) => names.iter().map(|name| self.source(name)).collect::<Result<Vec<_>, _>>()?,
            None => vec![place.checked_sub(1).map_or(Source::Input(0), Source::Layer)],
        };
        let kind = self.kind(entry)?;
        let mut module = module(entry, &kind);
        let stated = entry.output.as_ref().map(|output| self.shape(output, entry.fixed));
        if let Some(output) = stated.as_ref().filter(|_| !self.graph.has_input() && inputs.contains(&Source::Input(0))) {
            self.guess_input(&module, output);
        }
        let shapes: Vec<Shape> = inputs.iter().filter_map(|&source| self.graph.shape(source).cloned()).collect();
        let first = shapes.first();
        if entry.output.is_none() {
            if first.is_none() {
                return Err(Problem::Missing(
                    "output is missing, and the input's size: give `input = [3, 224, 224]` or the like above".to_owned(),
                ));
            }
            self.complete(&mut module, entry);
        }
        module.attributes.inputs = first.map(|shape| parameters::inputs(&module, shape));
        let output = stated.unwrap_or_else(|| output::of(&module, &shapes.iter().collect::<Vec<_>>()));
        let kind = attributed(kind, &module, entry, &output);
        let name = entry.name.clone().unwrap_or_else(|| format!("{}.{place}", entry.class));
        let mut layer = Layer::new(&*name, &*entry.class, kind, inputs, output);
        let own = match (entry.parameters, &entry.shares, &entry.output) {
            (Some(own), ..) => own,
            (None, Some(_), _) | (None, None, Some(_)) => 0,
            (None, None, None) => parameters::by_arguments(&module, entry.rows),
        };
        let tensors = entry.tensors.clone().unwrap_or_else(|| parameters::tensors(&module, &layer.output, own));
        let sum = tensors.iter().fold(0, |sum: u64, &each| sum.saturating_add(each));
        if sum != own && !tensors.is_empty() {
            return Err(Problem::Form(format!("tensors add up to {sum}, parameters say {own}: leave tensors out, or correct one of them")));
        }
        layer.tensors = tensors;
        layer.parameters = own;
        layer.in_place = entry.in_place;
        layer.block.clone_from(&entry.module);
        layer.element = match &entry.dtype {
            Some(name) => Some(element(name)?),
            None => None,
        };
        let source = self.graph.push(layer).map_err(|error| error.problem)?;
        match self.names.insert(name.clone(), source) {
            Some(_) => Err(Problem::expected(&name, "a unique name: another layer has it, so append #2")),
            None => Ok(()),
        }
    }

    /// Fills in common defaults of the short form.
    fn complete(&mut self, module: &mut Module<'_>, entry: &schema::Layer) {
        if let (LayerKind::Convolution { .. }, None, Some(kernel)) = (&module.kind, entry.padding, module.attributes.kernel) {
            module.attributes.padding = Some(kernel.map(|side| side / 2));
            self.graph.note("convolutions without padding written are taken to pad by half their filter");
        }
    }

    fn source(&mut self, name: &str) -> Result<Source, Problem> {
        if let Some(&source) = self.names.get(name) {
            return Ok(source);
        }
        let number = name.strip_prefix("input").map(|digits| if digits.is_empty() { Some(1) } else { digits.parse::<usize>().ok() });
        match number {
            Some(Some(number @ 1..=1000)) => Ok(Source::Input(number - 1)),
            _ => Err(Problem::expected(name, "the name of an earlier layer, or input, input2 ...")),
        }
    }

    fn kind(&self, entry: &schema::Layer) -> Result<LayerKind, Problem> {
        let by_class = match &entry.kind {
            Some(name) => kinds::named(name).ok_or_else(|| Problem::expected(name, "a kind, such as convolution, linear or unknown"))?,
            None => LayerKind::of_class(&entry.class),
        };
        Ok(match by_class {
            _ if entry.view => LayerKind::Reshape(Reshaping::View),
            // In the full form, a reshape that is not marked as a view is a copy.
            LayerKind::Reshape(Reshaping::View) if self.strict && entry.output.is_some() && entry.kind.is_none() => {
                LayerKind::Reshape(Reshaping::Copy)
            }
            kind => kind,
        })
    }

    /// Infers the model's input from its first layer.
    fn guess_input(&mut self, module: &Module<'_>, output: &Shape) {
        let own = module.parameters.unwrap_or(0);
        let shape = match (&module.kind, output.image()) {
            (LayerKind::Convolution { transposed: false, .. }, Some([outputs, height, width])) => {
                let (kernel, stride) = (module.attributes.kernel.unwrap_or([1, 1]), module.attributes.stride.unwrap_or([1, 1]));
                let area = kernel[0].saturating_mul(kernel[1]).saturating_mul(outputs).max(1);
                Shape::batched([
                    (own / area).saturating_mul(module.attributes.groups.unwrap_or(1)).max(1),
                    height.saturating_mul(stride[0]),
                    width.saturating_mul(stride[1]),
                ])
            }
            (LayerKind::Linear, _) => output::with_features(output, (own / output.features().max(1)).max(1)),
            (LayerKind::Embedding, _) => {
                let [rows @ .., _] = output.dimensions() else { return };
                let rows = Shape::batched(rows);
                self.graph.input(rows, Some(ElementType::Int64));
                return;
            }
            _ => output.clone(),
        };
        self.graph.input(shape, None);
    }
}

/// Converts an entry to a module.
fn module<'e>(entry: &'e schema::Layer, kind: &LayerKind) -> Module<'e> {
    let attributes = Attributes {
        outputs: entry.channels.or(entry.features).or(entry.hidden),
        kernel: entry.kernel.map(Sides::pair),
        stride: entry.stride.map(Sides::pair),
        padding: entry.padding.map(Sides::pair),
        dilation: entry.dilation.map(Sides::pair),
        output_size: entry.size.map(Sides::pair),
        groups: entry.groups,
        layers: entry.layers,
        heads: entry.heads,
        bias: entry.bias,
        scale: entry.scale,
        probability: entry.dropout,
        ..Attributes::default()
    };
    Module {
        name: (&*entry.class).into(),
        class: &entry.class,
        kind: kind.clone(),
        role: Role::Plain,
        end: 0,
        line: 0,
        input: None,
        output: None,
        parameters: entry.parameters,
        attributes,
    }
}

/// The kind with the entry's attributes.
fn attributed(kind: LayerKind, module: &Module<'_>, entry: &schema::Layer, output: &Shape) -> LayerKind {
    let attributes = &module.attributes;
    match kind {
        LayerKind::Convolution { transposed, .. } => LayerKind::Convolution {
            kernel: attributes.kernel.unwrap_or([1, 1]),
            stride: attributes.stride.unwrap_or([1, 1]),
            groups: attributes.groups.unwrap_or(1),
            transposed: entry.transposed.unwrap_or(transposed),
        },
        LayerKind::Dropout { probability } => LayerKind::Dropout { probability: entry.dropout.unwrap_or(probability) },
        LayerKind::Attention { heads, dropout } => {
            LayerKind::Attention { heads: entry.heads.unwrap_or(heads), dropout: entry.dropout.unwrap_or(dropout) }
        }
        LayerKind::Activation(Activation::Composed { kept }) => {
            LayerKind::Activation(Activation::Composed { kept: entry.kept.unwrap_or(kept) })
        }
        LayerKind::Recurrent { gates, .. } => LayerKind::Recurrent {
            gates: entry.gates.unwrap_or(gates),
            hidden: entry.hidden.unwrap_or_else(|| output.features()),
            layers: entry.layers.unwrap_or(1),
        },
        kind => kind,
    }
}

fn element(name: &str) -> Result<ElementType, Problem> {
    ElementType::named(name).ok_or_else(|| Problem::expected(name, "a type of elements, such as float32 or int64"))
}

fn precision(name: &str) -> Option<Precision> {
    match name {
        "mixed" | "amp" => Some(Precision::Mixed),
        "half" => Some(Precision::Half),
        _ => match ElementType::named(name)? {
            ElementType::Float32 => Some(Precision::Float32),
            ElementType::Float16 | ElementType::BFloat16 => Some(Precision::Half),
            _ => None,
        },
    }
}
