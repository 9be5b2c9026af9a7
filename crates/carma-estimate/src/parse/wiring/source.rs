//! What a module read, where it cannot have been the result before it.

use super::Wiring;
use crate::model::{Shape, Source};

/// How far back results are looked at.
const RECENT: usize = 64;

/// How much less likely the input of an enclosing block is than the result before.
const BLOCK_INPUT: u32 = 2;

/// The same for earlier results within a block that joins branches, and for any others.
const WITHIN_BRANCHES: u32 = 25;
const ANY_RECENT: u32 = 60;

impl Wiring<'_, '_> {
    /// The source that fits best: `misfit` of a shape is 0 where all is as usual, and nothing where it cannot be.
    pub(super) fn find(&self, misfit: impl Fn(&Shape) -> Option<u32>) -> Option<(Source, u32)> {
        let rate = |source: Source, penalty: u32| {
            let misfit = misfit(self.graph.shape(source)?)?;
            Some((source, misfit.saturating_add(penalty)))
        };
        let mut best = rate(self.current, 0);
        if best.is_some_and(|(_, misfit)| misfit == 0) {
            return best;
        }
        let mut consider = |found: Option<(Source, u32)>| {
            if let Some((_, misfit)) = found
                && best.is_none_or(|(_, least)| misfit < least)
            {
                best = found;
            }
        };
        for (level, frame) in self.frames.iter().rev().enumerate() {
            consider(rate(frame.input, BLOCK_INPUT + level as u32));
        }
        let branches = self.frames.iter().rev().find(|frame| self.module(frame).is_some_and(|module| module.role.joins_branches()));
        let newest = self.graph.layers().len();
        for (distance, layer) in (newest.saturating_sub(RECENT)..newest).rev().enumerate() {
            let within = branches.is_some_and(|frame| layer >= frame.first);
            let penalty = if within { WITHIN_BRANCHES + distance.min(10) as u32 } else { ANY_RECENT + distance as u32 };
            consider(rate(Source::Layer(layer), penalty));
        }
        best
    }

    /// The nearest result of exactly this shape, if any, however far back.
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

    /// An earlier result with this many channels and the current one's size, to be joined with it: the skip connection of a U-Net, or what
    /// the layers of a dense block have made so far.
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
