//! The forward pass.

use std::ops::Range;

use crate::model::{ElementType, Layer, LayerKind, Normalisation, Reshaping, Source};
use crate::trace::{Convolution, Direction, Event, Purpose, StorageId};

use super::saving::{Saving, saving};
use super::{LayerOutput, Synthesis};

impl<F: FnMut(Event)> Synthesis<'_, F> {
    /// Runs layers in order; `saving` is off in the first pass over a checkpointed block.
    pub(super) fn forward(&mut self, layers: Range<usize>, keep: bool) {
        for position in layers {
            self.run(position, keep);
        }
    }

    fn run(&mut self, position: usize, keep: bool) {
        let model = self.model;
        let layer = &model.layers[position];
        let keep = keep && self.differentiable[position];
        let begin = self.saved.len() as u32;
        let made = match self.alias(layer) {
            Some(made) => LayerOutput { storage: self.tape.hold(made.storage), ..made },
            None => self.compute(layer, keep),
        };
        let mut rule = saving(&layer.kind, layer.in_place, self.training.fusion);
        // A mean over everything needs only the shape of its input; a mean over windows reads it again.
        rule.inputs |= layer.kind == LayerKind::AveragePool && layer.output.image().is_some_and(|[_, height, width]| height * width > 1);
        if keep {
            self.keep(layer, made, rule);
        }
        self.saved_of[position] = (begin, self.saved.len() as u32);
        self.made[position] = Some(made);
        self.drop_read(position);
    }

    /// The storage that a layer's output shares with its first input, if any.
    fn alias(&self, layer: &Layer) -> Option<LayerOutput> {
        let elementwise = matches!(layer.kind, LayerKind::Activation(_) | LayerKind::Dropout { .. });
        let no_dropout = matches!(layer.kind, LayerKind::Dropout { probability } if probability == 0.0);
        let shares =
            layer.kind == LayerKind::Reshape(Reshaping::View) || layer.in_place || no_dropout || (elementwise && self.training.fusion);
        shares.then(|| layer.inputs.first().and_then(|&source| self.source(source))).flatten()
    }

    fn compute(&mut self, layer: &Layer, keep: bool) -> LayerOutput {
        let element = layer.element.unwrap_or_else(|| self.element_of(layer));
        let elements = layer.output.elements(self.batch);
        let mut casts: Vec<StorageId> = Vec::new();
        if self.is_half(&layer.kind) {
            self.cast_to_half(layer, &mut casts);
        }
        let storage = self.tape.allocate(elements.saturating_mul(element.bytes()), Purpose::Activations);
        match layer.kind {
            LayerKind::Convolution { .. } => {
                if let Some(call) = self.convolution(layer, Direction::Forward) {
                    self.tape.convolution(call);
                }
            }
            LayerKind::Linear | LayerKind::MatrixProduct => self.tape.matrix_product(),
            _ => {}
        }
        for cast in casts {
            if keep {
                self.saved.push(cast);
            } else {
                self.tape.release(cast);
            }
        }
        LayerOutput { storage, element }
    }

    /// Automatic mixed precision uses half-precision copies of the weights and of full-precision inputs.
    fn cast_to_half(&mut self, layer: &Layer, casts: &mut Vec<StorageId>) {
        if layer.parameters > 0 {
            casts.push(self.tape.allocate(layer.parameters.saturating_mul(2), Purpose::Activations));
        }
        for &source in &layer.inputs {
            if self.source(source).is_some_and(|made| made.element == ElementType::Float32) {
                let bytes = self.elements(source).saturating_mul(2);
                casts.push(self.tape.allocate(bytes, Purpose::Activations));
            }
        }
    }

    fn keep(&mut self, layer: &Layer, made: LayerOutput, rule: Saving) {
        let elements = layer.output.elements(self.batch);
        let half = self.is_half(&layer.kind);
        if rule.inputs {
            for &source in &layer.inputs {
                // If a half-precision copy exists, it is saved instead.
                if let Some(input) = self.source(source).filter(|input| !(half && input.element == ElementType::Float32)) {
                    let storage = self.tape.hold(input.storage);
                    self.saved.push(storage);
                }
            }
        }
        if rule.output {
            let storage = self.tape.hold(made.storage);
            self.saved.push(storage);
        }
        let copies = std::iter::repeat_n(made.element.bytes(), rule.copies as usize);
        for bytes in copies.chain((rule.bytes_per_element > 0).then_some(rule.bytes_per_element)) {
            let storage = self.tape.allocate(elements.saturating_mul(bytes), Purpose::Activations);
            self.saved.push(storage);
        }
        for bytes in self.statistics(layer).into_iter().flatten() {
            let storage = self.tape.allocate(bytes, Purpose::Activations);
            self.saved.push(storage);
        }
    }

    /// Small tensors beside an output: means and deviations, attention's log-sum-exp, a recurrent layer's reserve.
    fn statistics(&self, layer: &Layer) -> [Option<u64>; 2] {
        let features = layer.output.features().max(1);
        match layer.kind {
            LayerKind::Normalisation(Normalisation::Batch) => {
                let channels = layer.tensors.first().copied().unwrap_or(features);
                [Some(channels * 4); 2]
            }
            LayerKind::Normalisation(Normalisation::Layer | Normalisation::Group) => {
                [Some(layer.output.elements(self.batch) / features * 4); 2]
            }
            LayerKind::Attention { heads, .. } => [Some((layer.output.elements(self.batch) / features).saturating_mul(heads) * 4), None],
            LayerKind::Recurrent { gates, hidden, layers } => {
                let steps = layer.output.elements(self.batch) / features;
                let reserve = [gates + 2, hidden, layers, 4].into_iter().fold(steps, u64::saturating_mul);
                [Some(reserve), None]
            }
            _ => [None; 2],
        }
    }

    /// Releases outputs that no later layer reads.
    fn drop_read(&mut self, position: usize) {
        for number in 0..self.model.layers[position].inputs.len() {
            if let Source::Layer(before) = self.model.layers[position].inputs[number]
                && self.last_reader[before] == position
                && let Some(made) = self.made[before].take()
            {
                self.tape.release(made.storage);
            }
        }
    }

    fn element_of(&self, layer: &Layer) -> ElementType {
        use crate::training::Precision;
        let widened = matches!(
            layer.kind,
            LayerKind::Normalisation(Normalisation::Layer | Normalisation::Group | Normalisation::RootMeanSquare)
                | LayerKind::Softmax
                | LayerKind::Embedding
        );
        match self.training.precision {
            Precision::Half => ElementType::BFloat16,
            Precision::Float32 => ElementType::Float32,
            Precision::Mixed if widened => ElementType::Float32,
            Precision::Mixed if self.is_half(&layer.kind) => ElementType::BFloat16,
            // All other layers use the type of their input.
            Precision::Mixed => {
                let read = layer.inputs.iter().filter_map(|&source| self.source(source)).map(|made| made.element);
                read.max_by_key(|element| element.bytes()).filter(|element| element.bytes() <= 4).unwrap_or(ElementType::BFloat16)
            }
        }
    }

    /// The library call of a convolution layer.
    pub(super) fn convolution(&self, layer: &Layer, direction: Direction) -> Option<Convolution> {
        let LayerKind::Convolution { kernel, stride, groups, transposed } = layer.kind else { return None };
        let input = match *layer.inputs.first()? {
            Source::Input(number) => self.model.inputs.get(number)?.shape.image()?,
            Source::Layer(before) => self.model.layers[before].output.image()?,
        };
        let element = layer.element.unwrap_or_else(|| self.training.precision.activations());
        Some(Convolution {
            direction,
            batch: self.batch,
            input,
            output: layer.output.image()?,
            kernel,
            stride,
            groups,
            element,
            transposed,
        })
    }
}
