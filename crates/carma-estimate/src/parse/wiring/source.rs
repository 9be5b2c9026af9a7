//! Finds a module's input if it cannot be the previous result.

use super::Wiring;
use crate::model::{Shape, Source};

/// Number of recent results to search.
const RECENT: usize = 64;

/// Penalty for the input of an enclosing block, relative to the previous result.
const BLOCK_INPUT: u32 = 2;

/// Penalty for earlier results within a block with branches, and for any others.
const WITHIN_BRANCHES: u32 = 25;
const ANY_RECENT: u32 = 60;

impl Wiring<'_, '_> {
    /// The source that fits best: `misfit` is 0 for a usual shape, and none for an impossible one.
    pub(super) fn find(&self, misfit: impl Fn(&Shape) -> Option<u32>) -> Option<(Source, u32)> {
        let rate = |source: Source, penalty: u32| {
            let misfit = misfit(self.graph.shape(source)?)?;
            Some((source, misfit.saturating_add(penalty)))
        };
        let mut best = rate(self.current, 0);
        // Rating is slow: skips sources that cannot beat the best one.
        let cannot_improve = |best: Option<(Source, u32)>, penalty: u32| best.is_some_and(|(_, least)| least <= penalty);
        let better = |best: Option<(Source, u32)>, source: Source, penalty: u32| {
            let found = if cannot_improve(best, penalty) { None } else { rate(source, penalty) };
            found.filter(|(_, misfit)| !cannot_improve(best, *misfit)).or(best)
        };
        for (level, frame) in self.frames.iter().rev().enumerate() {
            best = better(best, frame.input, BLOCK_INPUT + level as u32);
        }
        if cannot_improve(best, WITHIN_BRANCHES) {
            return best;
        }
        let branches = self.frames.iter().rev().find(|frame| self.module(frame).is_some_and(|module| module.role.joins_branches()));
        let newest = self.graph.layers().len();
        for (distance, layer) in (newest.saturating_sub(RECENT)..newest).rev().enumerate() {
            let within = branches.is_some_and(|frame| layer >= frame.first);
            let penalty = if within { WITHIN_BRANCHES + distance.min(10) as u32 } else { ANY_RECENT + distance as u32 };
            best = better(best, Source::Layer(layer), penalty);
        }
        best
    }

    /// The nearest result of exactly this shape, at any distance.
    pub(super) fn find_shape(&self, shape: &Shape) -> Option<Source> {
        const FAR: usize = 2000;
        if self.graph.shape(self.current) == Some(shape) {
            return Some(self.current);
        }
        if let Some(frame) = self.frames.iter().rev().find(|frame| self.graph.shape(frame.input) == Some(shape)) {
            return Some(frame.input);
        }
        self.graph
            .layers()
            .iter()
            .enumerate()
            .rev()
            .take(FAR)
            .find(|(_, layer)| layer.output == *shape)
            .map(|(place, _)| Source::Layer(place))
    }

    /// An earlier result with this many channels and the current size, for concatenation: the skip connection of a U-Net, or the results
    /// so far in a dense block.
    pub(super) fn find_skip(&self, missing: u64) -> Option<Source> {
        const FAR: usize = 2000;
        let current = self.graph.shape(self.current)?;
        let (_, size) = current.dimensions().split_first()?;
        let fits = |source: Source| {
            source != self.current
                && self.graph.shape(source).is_some_and(|shape| {
                    shape.is_batched() == current.is_batched()
                        && shape.dimensions().split_first().is_some_and(|(&channels, rest)| channels == missing && rest == size)
                })
        };
        if size.is_empty() {
            return None;
        }
        let frames = self.frames.iter().rev().map(|frame| frame.input);
        let newest = self.graph.layers().len();
        frames.chain((newest.saturating_sub(FAR)..newest).rev().map(Source::Layer)).find(|&source| fits(source))
    }
}
