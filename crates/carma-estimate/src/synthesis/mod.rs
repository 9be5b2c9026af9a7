//! Events of the static estimator: allocations and frees of forward pass, backward pass and optimizer, from the layer graph alone.
//!
//! The passes follow PyTorch: a tensor lives while a later layer or the user's code needs it or the backward pass has saved it; gradients
//! are made in reverse order, accumulated in place if nothing else holds them, and freed after use.

mod backward;
mod checkpointing;
mod forward;
mod loss;
mod optimizer;
mod saving;
mod tape;
mod weights;

use std::ops::Range;

use crate::model::{ElementType, LayerKind, Model, Source};
use crate::trace::{Event, Mark, Purpose, StorageId};
use crate::training::{Optimizer, Parallel, Training};
use checkpointing::Checkpoint;
use tape::Tape;

/// Iterations until the allocator is in a steady state: the optimizer's state appears at the end of the first, the second is the first
/// complete one, and the third meets the holes that the second left.
pub const ITERATIONS: u32 = 3;

/// Allocation events of [`ITERATIONS`] training iterations on the first GPU.
pub fn events(model: &Model, training: &Training) -> Vec<Event> {
    let mut events = Vec::with_capacity(model.layers.len() * 24);
    each_event(model, training, |event| events.push(event));
    events
}

/// Passes the same events to `take` one by one.
pub fn each_event(model: &Model, training: &Training, take: impl FnMut(Event)) {
    let mut synthesis = Synthesis::new(model, training, take);
    synthesis.place_weights();
    if let Some(samples) = training.rehearsal {
        synthesis.rehearse(samples);
    }
    for iteration in 1..=ITERATIONS {
        synthesis.iteration(iteration);
    }
    synthesis.tape.mark(Mark::End);
}

/// A pending gradient of a layer's output.
#[derive(Debug, Clone, Copy)]
struct Gradient {
    storage: StorageId,
    /// Whether it is a slice of a larger one: libraries copy it before they read it.
    slice: bool,
}

/// A tensor that a layer has produced.
#[derive(Debug, Clone, Copy)]
struct LayerOutput {
    storage: StorageId,
    element: ElementType,
}

struct Synthesis<'model, F> {
    model: &'model Model,
    training: &'model Training,
    /// Samples on the first GPU.
    batch: u64,
    tape: Tape<F>,
    /// Elements of each layer's adapters; empty if the layers themselves are trained.
    adapters: Vec<u64>,
    /// Index of the last layer that reads each layer's output; its own index if none does.
    last_reader: Vec<usize>,
    /// Whether gradients flow to each layer's output.
    differentiable: Vec<bool>,
    inputs: Vec<LayerOutput>,
    made: Vec<Option<LayerOutput>>,
    /// Storages saved for the backward pass: the range of each layer in `saved`.
    saved: Vec<StorageId>,
    saved_of: Vec<(u32, u32)>,
    /// Blocks to recompute, and those still pending in this iteration.
    checkpointed: Vec<Range<usize>>,
    checkpoints: Vec<Checkpoint>,
    gradients: Vec<Option<Gradient>>,
    parameter_gradients: Vec<StorageId>,
    /// The loss, and other tensors of the last iteration that the user's loop still holds.
    held: Vec<StorageId>,
}

impl<'model, F: FnMut(Event)> Synthesis<'model, F> {
    fn new(model: &'model Model, training: &'model Training, take: F) -> Self {
        let layers = model.layers.len();
        let mut last_reader: Vec<usize> = (0..layers).collect();
        let mut differentiable = Vec::with_capacity(layers);
        for (position, layer) in model.layers.iter().enumerate() {
            let mut flows = training.trained_elements(layer) > 0;
            for source in &layer.inputs {
                if let Source::Layer(before) = *source {
                    last_reader[before] = position;
                    flows |= differentiable[before];
                }
            }
            differentiable.push(flows && training.optimizer != Optimizer::None);
        }
        let batch = match training.parallel {
            Parallel::DataParallel { gpus } => training.batch.div_ceil(gpus.max(1)),
            _ => training.batch,
        };
        Self {
            model,
            training,
            batch,
            tape: Tape::new(take, layers * 16),
            adapters: if training.adapters.is_some() {
                model.layers.iter().map(|layer| training.trained_elements(layer)).collect()
            } else {
                Vec::new()
            },
            last_reader,
            differentiable,
            inputs: Vec::new(),
            made: vec![None; layers],
            saved: Vec::new(),
            saved_of: vec![(0, 0); layers],
            checkpointed: if training.checkpointing && training.optimizer != Optimizer::None {
                checkpointing::blocks(model)
            } else {
                Vec::new()
            },
            checkpoints: Vec::new(),
            gradients: vec![None; layers],
            parameter_gradients: Vec::new(),
            held: Vec::new(),
        }
    }

    /// One forward pass whose results are discarded.
    fn rehearse(&mut self, samples: u64) {
        let batch = std::mem::replace(&mut self.batch, samples);
        let input = self.model.inputs.iter().map(|input| input.shape.elements(samples)).sum::<u64>();
        let input = self.tape.allocate(input.saturating_mul(4), Purpose::Inputs);
        self.forward(0..self.model.layers.len(), true);
        for storage in self.keep_outputs().into_iter().chain(std::mem::take(&mut self.saved)) {
            self.tape.release(storage);
        }
        self.tape.release(input);
        self.batch = batch;
    }

    fn iteration(&mut self, number: u32) {
        self.tape.mark(Mark::Iteration(number));
        for gradient in std::mem::take(&mut self.parameter_gradients) {
            self.tape.release(gradient);
        }
        self.load_batch();
        self.tape.mark(Mark::Forward);
        self.saved.clear();
        self.forward_pass();
        // The loop's variables hold the last iteration's outputs until they are overwritten.
        let outputs = self.keep_outputs();
        for storage in std::mem::replace(&mut self.held, outputs) {
            self.tape.release(storage);
        }
        let loss = self.loss();
        if self.training.optimizer == Optimizer::None {
            loss.saved.into_iter().for_each(|storage| self.tape.release(storage));
            return;
        }
        self.tape.mark(Mark::Backward);
        self.backward(loss);
        self.tape.mark(Mark::Optimizer);
        self.step(number == 1);
    }

    /// The loop's variables hold the next batch on the host before it is copied, so the last one is freed by then.
    fn load_batch(&mut self) {
        for old in std::mem::take(&mut self.inputs) {
            self.tape.release(old.storage);
        }
        for input in &self.model.inputs {
            let element = input.element.unwrap_or(self.training.precision.weights());
            let bytes = input.shape.elements(self.training.batch).saturating_mul(element.bytes());
            let storage = self.tape.allocate(bytes, Purpose::Inputs);
            self.inputs.push(LayerOutput { storage, element });
        }
    }

    fn source(&self, source: Source) -> Option<LayerOutput> {
        match source {
            Source::Input(number) => self.inputs.get(number).copied(),
            Source::Layer(position) => self.made.get(position).copied().flatten(),
        }
    }

    fn elements(&self, source: Source) -> u64 {
        match source {
            Source::Input(number) => self.model.inputs.get(number).map_or(0, |tensor| tensor.shape.elements(self.batch)),
            Source::Layer(position) => self.model.layers[position].output.elements(self.batch),
        }
    }

    fn gradient_flows_to(&self, source: Source) -> bool {
        matches!(source, Source::Layer(position) if self.differentiable[position])
    }

    /// Outputs that no layer reads are the model's results.
    fn keep_outputs(&mut self) -> Vec<StorageId> {
        let results = (0..self.model.layers.len()).filter(|&position| self.last_reader[position] == position);
        let mut kept = Vec::new();
        for position in results {
            if let Some(made) = self.made[position].take() {
                kept.push(made.storage);
            }
        }
        kept
    }

    fn is_half(&self, kind: &LayerKind) -> bool {
        self.training.precision == crate::training::Precision::Mixed
            && matches!(kind, LayerKind::Convolution { .. } | LayerKind::Linear | LayerKind::MatrixProduct | LayerKind::Attention { .. })
    }
}
