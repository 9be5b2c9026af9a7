//! ONNX: a graph with explicit edges; initializers are the parameters. The weights themselves are never read.

mod contents;
mod layers;
mod messages;
mod rearrange;
mod shapes;
mod wire;

use std::collections::HashMap;

use messages::{Dimension, FLOATS, INT64};
use shapes::Known;

use super::error::{ParseError, Problem};
use super::graph::Graph;
use crate::model::{ElementType, Layer, Shape, Source};
use crate::training::Training;

pub(super) fn read(bytes: &[u8], training: &Training) -> Result<Graph, ParseError> {
    let file = messages::Graph::of_file(bytes)?;
    let mut graph = Graph::new(Some(file.name).filter(|name| !name.is_empty()));
    let mut reader = Reader::new(&file, training, &mut graph);
    for (place, node) in file.nodes.iter().enumerate() {
        reader.node(place, node)?;
    }
    reader.graph.note("the graph does not say what runs in place: activations after a normalisation or convolution are taken to");
    Ok(graph)
}

/// Origin of a value.
#[derive(Clone, Copy, PartialEq)]
enum Origin {
    Source(Source),
    /// An initializer, by index.
    Weight(usize),
    /// Computed from constants only.
    Constant,
}

/// A weight tensor.
struct Parameter {
    elements: u64,
    /// Whether it is trainable: floating-point, and not a scalar.
    trains: bool,
    counted: bool,
}

struct Reader<'a, 'f> {
    graph: &'f mut Graph,
    values: HashMap<&'a str, (Origin, Known)>,
    stored: HashMap<&'a str, Vec<u64>>,
    /// Initializers, and copies of them that count as separate parameters.
    weights: Vec<Parameter>,
    /// Values within an expanded GELU, and the number of its remaining operators.
    within_gelu: HashMap<&'a str, u8>,
    batch: u64,
}

impl<'a, 'f> Reader<'a, 'f> {
    fn new(file: &'f messages::Graph<'a>, training: &Training, graph: &'f mut Graph) -> Self {
        let weights: HashMap<&str, usize> = file.initializers.iter().enumerate().map(|(place, tensor)| (tensor.name, place)).collect();
        let first = file.inputs.iter().find(|input| !weights.contains_key(input.name)).and_then(|input| input.dimensions.as_ref()?.first());
        let (batch, batch_name) = match first {
            Some(Dimension::Known(size)) if *size > 0 => (*size, None),
            Some(Dimension::Named(name)) => (training.batch.max(1), Some(*name)),
            _ => (1, None),
        };
        if batch_name.is_none() {
            graph.stated(None, Some(batch));
        }
        let mut named = 0;
        let mut sizes = |dimensions: &[Dimension<'_>]| -> Vec<u64> {
            let size = |dimension: &Dimension<'_>| match dimension {
                Dimension::Known(size) => *size,
                Dimension::Named(name) if Some(*name) == batch_name => batch,
                Dimension::Named(_) => {
                    named += 1;
                    training.sequence.unwrap_or(512)
                }
            };
            dimensions.iter().map(size).collect()
        };
        let mut values: HashMap<&'a str, (Origin, Known)> = HashMap::with_capacity(file.nodes.len() + weights.len());
        for (place, tensor) in file.initializers.iter().enumerate() {
            let content = Some(tensor.numbers.clone()).filter(|numbers| !numbers.is_empty());
            values.insert(
                tensor.name,
                (Origin::Weight(place), Known { dimensions: Some(tensor.dimensions.clone()), content, ..Known::default() }),
            );
        }
        for input in file.inputs.iter().filter(|input| !weights.contains_key(input.name)) {
            let dimensions = input.dimensions.as_deref().map(&mut sizes);
            let shape = Shape::written(dimensions.as_deref().unwrap_or_default(), batch);
            let source = graph.input(shape, element(input.element));
            values.insert(input.name, (Origin::Source(source), Known { dimensions, content: None, ..Known::default() }));
        }
        let known = |info: &&messages::ValueInfo<'a>| {
            let all = |dimension: &Dimension<'_>| !matches!(dimension, Dimension::Named(name) if Some(*name) != batch_name);
            info.dimensions.as_ref().is_some_and(|dimensions| dimensions.iter().all(all))
        };
        let stored = file.values.iter().filter(known).filter_map(|info| Some((info.name, sizes(info.dimensions.as_deref()?)))).collect();
        if named > 0 {
            let length = training.sequence.unwrap_or(512);
            graph.note(&format!("sizes that the graph leaves open are taken to be {length}, the sequence length"));
        }
        let parameter = |tensor: &messages::Tensor<'_>| Parameter {
            elements: tensor.elements(),
            trains: FLOATS.contains(&tensor.element) && !tensor.dimensions.is_empty(),
            counted: false,
        };
        let weights = file.initializers.iter().map(parameter).collect();
        Self { graph, values, stored, weights, within_gelu: HashMap::new(), batch }
    }

    fn node(&mut self, place: usize, node: &'f messages::Node<'a>) -> Result<(), ParseError> {
        let absent = (Origin::Constant, Known::default());
        let inputs: Vec<(Origin, Known)> =
            node.inputs.iter().map(|name| self.values.get(name).cloned().unwrap_or_else(|| absent.clone())).collect();
        let known: Vec<Known> = inputs.iter().map(|(_, known)| known.clone()).collect();
        let mut result = shapes::result(node, &known);
        let Some(&output) = node.outputs.first() else { return Ok(()) };
        if let Some(stored) = self.stored.get(output) {
            result.dimensions = Some(stored.clone());
        }
        let sources: Vec<Source> =
            inputs.iter().filter_map(|(origin, _)| if let Origin::Source(source) = origin { Some(*source) } else { None }).collect();
        if let (true, Some((Origin::Weight(place), _))) = (keeps_weight(node.operator), inputs.first()) {
            let origin = self.copied(node, *place, &result);
            self.values.insert(output, (origin, result));
            return Ok(());
        }
        // Shapes and masks computed from constants, and lists of sizes, take negligible memory.
        if node.operator == "Shape" || result.content.is_some() || (sources.is_empty() && !self.reads_table(node, &inputs)) {
            self.values.insert(output, (Origin::Constant, result));
            return Ok(());
        }
        let Some(dimensions) = result.dimensions.clone() else {
            let problem = format!(
                "the shape of {output:?}, which {} makes, is not in the file: add shapes with onnx.shape_inference.infer_shapes",
                node.operator
            );
            return Err(Problem::Missing(problem).at_byte(node.byte));
        };
        let shape = Shape::written(&dimensions, self.batch);
        let kind = self.kind(node, &inputs, &known);
        let name = if node.name.is_empty() { format!("{}.{place}", node.operator) } else { node.name.to_owned() };
        let tensors = self.weights(node, &inputs);
        let mut layer = Layer::new(name, layers::class(node), kind, sources, shape.clone()).with_tensors(tensors);
        layer.in_place = self.runs_in_place(node, &layer);
        let source = self.graph.push(layer)?;
        self.values.insert(output, (Origin::Source(source), result));
        // Further results of the same operator: the parts of a split, or unused statistics.
        for other in node.outputs.iter().skip(1).filter(|name| !name.is_empty()) {
            let dimensions = self.stored.get(other).cloned().or_else(|| Some(dimensions.clone()));
            self.values.insert(other, (Origin::Source(source), Known { dimensions, content: None, ..Known::default() }));
        }
        Ok(())
    }

    /// Whether a node reads an embedding table, even with constant indices.
    fn reads_table(&self, node: &messages::Node<'_>, inputs: &[(Origin, Known)]) -> bool {
        node.operator == "Gather" && matches!(inputs.first(), Some((Origin::Weight(place), _)) if self.is_float(*place))
    }

    fn is_float(&self, place: usize) -> bool {
        self.weights.get(place).is_some_and(|weight| weight.trains)
    }

    /// A weight behind a node that only reshapes it. Exports store equal vectors once, such as fresh biases; these are separate
    /// parameters. Equal matrices are shared.
    fn copied(&mut self, node: &messages::Node<'_>, place: usize, result: &Known) -> Origin {
        let vector = result.dimensions.as_ref().is_some_and(|dimensions| dimensions.len() == 1);
        match self.weights.get(place) {
            Some(weight) if node.operator == "Identity" && vector => {
                let copy = Parameter { counted: false, ..*weight };
                self.weights.push(copy);
                Origin::Weight(self.weights.len() - 1)
            }
            _ => Origin::Weight(place),
        }
    }

    /// Elements of the parameters that this node reads first. Running statistics and scalars are not parameters.
    fn weights(&mut self, node: &messages::Node<'_>, inputs: &[(Origin, Known)]) -> Vec<u64> {
        let trained = if node.operator == "BatchNormalization" { 3 } else { inputs.len() };
        let mut elements = Vec::new();
        for (origin, _) in inputs.iter().take(trained) {
            if let Origin::Weight(place) = *origin
                && let Some(weight) = self.weights.get_mut(place)
                && weight.trains
                && !weight.counted
            {
                weight.counted = true;
                elements.push(weight.elements);
            }
        }
        elements.sort_unstable_by(|a, b| b.cmp(a));
        elements
    }
}

/// Whether an operator on weights keeps them the same weights.
fn keeps_weight(operator: &str) -> bool {
    matches!(operator, "Identity" | "Transpose" | "Cast" | "Reshape" | "Unsqueeze" | "Squeeze")
}

fn element(number: u64) -> Option<ElementType> {
    match number {
        INT64 => Some(ElementType::Int64),
        6 => Some(ElementType::Int32),
        9 => Some(ElementType::Bool),
        2 | 3 => Some(ElementType::Int8),
        _ => None,
    }
}
