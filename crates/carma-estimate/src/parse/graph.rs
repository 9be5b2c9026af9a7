//! Collects layers within limits, with notes on assumptions.

use std::collections::HashSet;

use super::error::{ParseError, Problem};
use crate::model::{ElementType, Layer, LayerKind, Model, Shape, Source, Tensor};

/// Maximum number of layers: the largest trained models have a tenth of it.
pub(super) const MOST_LAYERS: usize = 200_000;

/// A model under construction.
pub(super) struct Graph {
    model: Model,
    /// Whether any layer reads the output of the layer at this index.
    read: Vec<bool>,
    notes: Vec<String>,
    /// The enclosing block of the next layers.
    pub block: Option<String>,
    /// The current line, for errors.
    pub line: usize,
}

impl Graph {
    pub(super) fn new(name: Option<&str>) -> Self {
        let model = Model { name: name.map(str::to_owned), ..Model::default() };
        Self { model, read: Vec::new(), notes: Vec::new(), block: None, line: 1 }
    }

    /// Sets the model's name from the description.
    pub(super) fn name(&mut self, name: &str) {
        self.model.name = Some(name.to_owned()).filter(|name| !name.is_empty());
    }

    /// Whether the model has one of these names.
    pub(super) fn is_named(&self, names: &[&str]) -> bool {
        self.model.name.as_deref().is_some_and(|name| names.contains(&name))
    }

    /// Adds an input of the model.
    pub(super) fn input(&mut self, shape: Shape, element: Option<ElementType>) -> Source {
        self.model.inputs.push(Tensor { shape, element });
        Source::Input(self.model.inputs.len() - 1)
    }

    /// Reserves capacity for layers, to avoid repeated copies.
    pub(super) fn reserve(&mut self, layers: usize) {
        let layers = layers.min(MOST_LAYERS);
        self.model.layers.reserve(layers);
        self.read.reserve(layers);
    }

    /// Whether the model already has an input.
    pub(super) fn has_input(&self) -> bool {
        !self.model.inputs.is_empty()
    }

    /// Layers so far.
    pub(super) fn layers(&self) -> &[Layer] {
        &self.model.layers
    }

    /// Adds a layer to the current block.
    pub(super) fn push(&mut self, mut layer: Layer) -> Result<Source, ParseError> {
        let position = self.model.layers.len();
        if position >= MOST_LAYERS {
            return Err(Problem::TooManyLayers(MOST_LAYERS).at_line(self.line));
        }
        for source in &layer.inputs {
            if let Source::Layer(read) = *source
                && let Some(read) = self.read.get_mut(read)
            {
                *read = true;
            }
        }
        if layer.block.is_none() {
            layer.block.clone_from(&self.block);
        }
        self.model.layers.push(layer);
        self.read.push(false);
        Ok(Source::Layer(position))
    }

    /// Adds a layer without a module, named after its class and index.
    pub(super) fn function(&mut self, class: &str, kind: LayerKind, inputs: Vec<Source>, output: Shape) -> Result<Source, ParseError> {
        let name = format!("{class}.{}", self.model.layers.len());
        self.push(Layer::new(name, class, kind, inputs, output))
    }

    /// Marks the last layer as in-place.
    pub(super) fn overwrite_last(&mut self) {
        if let Some(layer) = self.model.layers.last_mut() {
            layer.in_place = true;
        }
    }

    /// The shape of a source; none for an unknown input.
    pub(super) fn shape(&self, source: Source) -> Option<&Shape> {
        match source {
            Source::Input(input) => self.model.inputs.get(input).map(|tensor| &tensor.shape),
            Source::Layer(layer) => self.model.layers.get(layer).map(|layer| &layer.output),
        }
    }

    /// The layer at a source.
    pub(super) fn layer(&self, source: Source) -> Option<&Layer> {
        if let Source::Layer(layer) = source { self.model.layers.get(layer) } else { None }
    }

    /// Outputs from `first` on that no layer reads yet, in order.
    pub(super) fn loose_ends(&self, first: usize) -> Vec<Source> {
        (first..self.read.len()).filter(|&layer| !self.read.get(layer).copied().unwrap_or(true)).map(Source::Layer).collect()
    }

    /// Adds a note on an assumption, once.
    pub(super) fn note(&mut self, note: &str) {
        if !self.notes.iter().any(|known| known == note) {
            self.notes.push(note.to_owned());
        }
    }

    /// The model and the notes; makes names unique.
    pub(super) fn finish(mut self) -> Result<(Model, Vec<String>), ParseError> {
        if self.model.layers.is_empty() {
            return Err(Problem::Empty.at_line(self.line));
        }
        if self.names_may_repeat() {
            let mut seen: HashSet<&str> = HashSet::with_capacity(self.model.layers.len());
            let again: Vec<usize> = self
                .model
                .layers
                .iter()
                .enumerate()
                .filter(|(_, layer)| !seen.insert(layer.name.as_str()))
                .map(|(place, _)| place)
                .collect();
            let mut taken: HashSet<String> = self.model.layers.iter().map(|layer| layer.name.clone()).collect();
            for place in again {
                if let Some(layer) = self.model.layers.get_mut(place) {
                    // Calls of one module get a number as suffix; if that is taken too, their index.
                    let name = (2..9).map(|call| format!("{}#{call}", layer.name)).find(|name| !taken.contains(name));
                    layer.name = name.unwrap_or_else(|| format!("{}#{}", layer.name, place + 9));
                    while !taken.insert(layer.name.clone()) {
                        layer.name.push('\'');
                    }
                }
            }
        }
        Ok((self.model, self.notes))
    }

    /// Fast check, since names are almost always unique: whether two have the same checksum (FNV-1a).
    fn names_may_repeat(&self) -> bool {
        let checksum =
            |name: &str| name.bytes().fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        let mut checksums: Vec<u64> = self.model.layers.iter().map(|layer| checksum(&layer.name)).collect();
        checksums.sort_unstable();
        checksums.windows(2).any(|pair| matches!(pair, [a, b] if a == b))
    }

    /// Sets the totals that the description states.
    pub(super) fn stated(&mut self, parameters: Option<u64>, batch: Option<u64>) {
        self.model.stated_parameters = parameters;
        self.model.stated_batch = batch;
    }
}
