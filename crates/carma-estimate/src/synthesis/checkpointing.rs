//! Gradient checkpointing: a block's forward pass saves only its inputs, and runs again when the backward pass reaches it.

use std::ops::Range;

use crate::model::{Model, Source};
use crate::trace::Event;

use super::{LayerOutput, Synthesis};

/// A block to recompute.
#[derive(Debug)]
pub(super) struct Checkpoint {
    pub(super) layers: Range<usize>,
    /// Layers outside the block that it reads, with their outputs.
    inputs: Vec<(usize, LayerOutput)>,
}

/// Runs of layers that belong to the same block.
pub(super) fn blocks(model: &Model) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for (position, layer) in model.layers.iter().enumerate() {
        if layer.block.is_none() {
            continue;
        }
        match blocks.last_mut() {
            Some(last) if last.end == position && model.layers[last.start].block == layer.block => last.end += 1,
            _ => blocks.push(position..position + 1),
        }
    }
    blocks.retain(|block| block.len() > 1);
    blocks
}

impl<F: FnMut(Event)> Synthesis<'_, F> {
    /// The forward pass of the whole model, with or without checkpoints.
    pub(super) fn forward_pass(&mut self) {
        let mut next = 0;
        for block in std::mem::take(&mut self.checkpointed) {
            self.forward(next..block.start, true);
            next = block.end;
            self.forward_without_keeping(block.clone());
            self.checkpointed.push(block);
        }
        self.forward(next..self.model.layers.len(), true);
    }

    fn forward_without_keeping(&mut self, layers: Range<usize>) {
        let mut inputs: Vec<(usize, LayerOutput)> = Vec::new();
        for &source in layers.clone().flat_map(|position| &self.model.layers[position].inputs) {
            if let Source::Layer(before) = source
                && before < layers.start
                && inputs.iter().all(|&(known, _)| known != before)
                && let Some(made) = self.made[before]
            {
                self.tape.hold(made.storage);
                inputs.push((before, made));
            }
        }
        self.forward(layers.clone(), false);
        self.checkpoints.push(Checkpoint { layers, inputs });
    }

    /// Recomputes a block when the backward pass reaches its last layer, and saves what that needs.
    pub(super) fn recompute_before(&mut self, position: usize) {
        let Some(checkpoint) = self.checkpoints.pop_if(|checkpoint| checkpoint.layers.end == position + 1) else { return };
        for &(before, made) in &checkpoint.inputs {
            self.made[before] = Some(made);
        }
        self.forward(checkpoint.layers.clone(), true);
        // Inputs that no layer inside reads any more have no reader left.
        for position in checkpoint.inputs.iter().map(|&(before, _)| before).chain(checkpoint.layers) {
            if let Some(made) = self.made[position].take() {
                self.tape.release(made.storage);
            }
        }
    }
}
