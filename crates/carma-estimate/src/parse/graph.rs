//! Layers as they are found, within the limits, with what had to be assumed on the way.

use std::collections::HashSet;

use super::error::{ParseError, Problem};
use crate::model::{ElementType, Layer, LayerKind, Model, Shape, Source, Tensor};

/// Layers of a model at most: the largest that are trained have a tenth of it.
pub(super) const MOST_LAYERS: usize = 200_000;

/// A model in the making.
pub(super) struct Graph {
    model: Model,
    /// Whether some layer reads the output of the layer at this position.
    read: Vec<bool>,
    notes: Vec<String>,
    /// The enclosing block of the layers that come next.
    pub block: Option<String>,
    /// The line that is being read, for errors.
    pub line: usize,
}

impl Graph {
    pub(super) fn new(name: Option<&str>) -> Self {
        let model = Model { name: name.map(str::to_owned), ..Model::default() };
        Self { model, read: Vec::new(), notes: Vec::new(), block: None, line: 1 }
    }

    /// What the description calls the model.
    pub(super) fn name(&mut self, name: &str) {
        self.model.name = Some(name.to_owned()).filter(|name| !name.is_empty());
    }

    /// Whether the model is called one of these.
    pub(super) fn is_named(&self, names: &[&str]) -> bool {
        self.model.name.as_deref().is_some_and(|name| names.contains(&name))
    }

    /// One more input of the model.
    pub(super) fn input(&mut self, shape: Shape, element: Option<ElementType>) -> Source {
        self.model.inputs.push(Tensor { shape, element });
        Source::Input(self.model.inputs.len() - 1)
    }

    /// Whether the model has an input already.
    pub(super) fn has_input(&self) -> bool {
        !self.model.inputs.is_empty()
    }

    /// Layers so far.
    pub(super) fn layers(&self) -> &[Layer] {
        &self.model.layers
    }

    /// One more layer, in the current block.
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

    /// One more layer that no module stands for, named after its class and its place.
    pub(super) fn function(&mut self, class: &str, kind: LayerKind, inputs: Vec<Source>, output: Shape) -> Result<Source, ParseError> {
        let name = format!("{class}.{}", self.model.layers.len());
        self.push(Layer::new(name, class, kind, inputs, output))
    }

    /// The layer that was added last overwrites its first input.
    pub(super) fn overwrite_last(&mut self) {
        if let Some(layer) = self.model.layers.last_mut() {
            layer.in_place = true;
        }
    }

    /// The shape that a source has; an input that is not known yet has none.
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

    /// Outputs from `first` on that nothing has read yet, in order.
    pub(super) fn loose_ends(&self, first: usize) -> Vec<Source> {
        (first..self.read.len()).filter(|&layer| !self.read.get(layer).copied().unwrap_or(true)).map(Source::Layer).collect()
    }

    /// Says, once, what was assumed.
    pub(super) fn note(&mut self, note: &str) {
        if !self.notes.iter().any(|known| known == note) {
            self.notes.push(note.to_owned());
        }
    }

    /// The model and what was assumed; names are made unique.
    pub(super) fn finish(mut self) -> Result<(Model, Vec<String>), ParseError> {
        if self.model.layers.is_empty() {
            return Err(Problem::Empty.at_line(self.line));
        }
        let mut seen: HashSet<&str> = HashSet::with_capacity(self.model.layers.len());
        let again: Vec<usize> =
            self.model.layers.iter().enumerate().filter(|(_, layer)| !seen.insert(layer.name.as_str())).map(|(place, _)| place).collect();
        if !again.is_empty() {
            let mut taken: HashSet<String> = self.model.layers.iter().map(|layer| layer.name.clone()).collect();
            for place in again {
                if let Some(layer) = self.model.layers.get_mut(place) {
                    // Calls of one module are told apart by a number; by the place where that is taken as well.
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

    /// What the description states of the whole.
    pub(super) fn stated(&mut self, parameters: Option<u64>, batch: Option<u64>) {
        self.model.stated_parameters = parameters;
        self.model.stated_batch = batch;
    }
}
