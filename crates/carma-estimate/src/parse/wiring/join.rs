//! The end of a container: branches are added, concatenated, or multiplied.

use super::super::error::ParseError;
use super::super::role::Role;
use super::super::tree::Module;
use super::{RELU, Wiring};
use crate::model::{LayerKind, Reshaping, Shape, Source};

impl Wiring<'_, '_> {
    /// Ends the innermost frame, which is that of `module`.
    pub(super) fn finish_frame(&mut self, module: &Module<'_>) -> Result<(), ParseError> {
        let Some(frame) = self.frames.last() else { return Ok(()) };
        let (input, first) = (frame.input, frame.first);
        if self.graph.layers().len() == first {
            return Ok(());
        }
        match module.role {
            Role::SqueezeExcite => {
                let output = self.shape(input);
                self.function("mul", LayerKind::Multiply, vec![input, self.current], output)?;
            }
            Role::Residual => {
                self.add_own_parameters(module)?;
                self.add_shortcut()?;
                self.reconcile(module, first, input)?;
            }
            Role::PooledBranches | Role::ForkedBranches | Role::Branches => self.concatenate(module, first, input)?,
            Role::WrapperWithActivation if self.is_normalised(self.current) => {
                let output = self.shape(self.current);
                self.function("relu", RELU, vec![self.current], output)?;
                self.run_in_place();
            }
            Role::Attention => {
                if let Some(mixed) = self.mix(first)? {
                    self.current = mixed;
                }
                self.reconcile(module, first, input)?;
            }
            Role::NormalisedActivation => {}
            Role::Aside => self.current = input,
            _ => {
                self.add_own_parameters(module)?;
                self.reconcile(module, first, input)?;
            }
        }
        Ok(())
    }

    /// Adds parameters of a container outside its modules, such as a scale per channel.
    fn add_own_parameters(&mut self, module: &Module<'_>) -> Result<(), ParseError> {
        if module.parameters.is_none_or(|own| own == 0) {
            return Ok(());
        }
        // Those of a whole model or encoder, such as positions, are used somewhere within: only their number counts.
        let scales = module.role == Role::Residual;
        let (kind, output) =
            if scales { (LayerKind::Multiply, self.shape(self.current)) } else { (LayerKind::Reshape(Reshaping::View), Shape::fixed([])) };
        let mut layer = self.layer(module, kind, vec![self.current], output);
        layer.name.push_str(".parameters");
        if scales { self.push(layer) } else { self.graph.push(layer).map(|_| ()) }
    }

    /// Marks the last layer as in-place.
    fn run_in_place(&mut self) {
        self.graph.overwrite_last();
    }

    /// Adds the shortcut of the innermost frame to the current result: a separate branch if there is one, else the input.
    pub(super) fn add_shortcut(&mut self) -> Result<(), ParseError> {
        let Some((frame, module)) = self.innermost() else { return Ok(()) };
        let (shortcut, first, attends, joined) = (frame.shortcut, frame.first, frame.attends, frame.joined);
        if joined || self.current == shortcut {
            return Ok(());
        }
        let shape = self.shape(self.current);
        let mut branch = None;
        if !attends {
            branch = self.graph.loose_ends(first).into_iter().find(|&end| end != self.current && self.graph.shape(end) == Some(&shape));
        }
        let inputs = match branch {
            // The branch that ran first is the main path.
            Some(branch) => vec![branch, self.current],
            None if self.graph.shape(shortcut) == Some(&shape) => vec![self.current, shortcut],
            None => return Ok(()),
        };
        let overwrites = !attends && matches!(module.class, "BasicBlock" | "Bottleneck" | "MBConv" | "FusedMBConv" | "Block" | "CNBlock");
        self.function("add", LayerKind::Add, inputs, shape)?;
        if overwrites {
            self.run_in_place();
        }
        let current = self.current;
        if let Some(frame) = self.frames.last_mut() {
            frame.joined = !attends;
            frame.shortcut = current;
        }
        Ok(())
    }

    /// Concatenates the loose ends of a block with branches.
    fn concatenate(&mut self, module: &Module<'_>, first: usize, input: Source) -> Result<(), ParseError> {
        let size = |shape: &Shape| shape.dimensions().get(1..).map(<[u64]>::to_vec).unwrap_or_default();
        let current = self.shape(self.current);
        let mut ends: Vec<Source> =
            self.graph.loose_ends(first).into_iter().filter(|&end| size(&self.shape(end)) == size(&current)).collect();
        let channels = |wiring: &Self, source: Source| wiring.shape(source).dimensions().first().copied().unwrap_or(0);
        let sum = ends.iter().fold(0, |sum: u64, &end| sum.saturating_add(channels(self, end)));
        let carried = channels(self, input);
        let stated = module.output.as_ref().and_then(|output| output.dimensions().first().copied());
        // The max pool that reduces the block's input beside the convolutions has no module.
        let pools = stated.map_or(matches!(module.class, "InceptionB" | "InceptionD"), |stated| stated == sum.saturating_add(carried));
        if pools {
            let mut dimensions = vec![carried];
            dimensions.extend(size(&current));
            ends.push(self.graph.function("max_pool2d", LayerKind::MaxPool, vec![input], Shape::batched(dimensions))?);
        }
        let total = if pools { sum.saturating_add(carried) } else { sum };
        if ends.len() > 1 && stated.is_none_or(|stated| stated == total) {
            let mut dimensions = vec![total];
            dimensions.extend(size(&current));
            self.function("cat", LayerKind::Concatenate, ends, Shape::batched(dimensions))
        } else {
            self.reconcile(module, first, input)
        }
    }

    /// Converts the current result to the container's stated output, if possible.
    fn reconcile(&mut self, module: &Module<'_>, first: usize, input: Source) -> Result<(), ParseError> {
        let Some(output) = &module.output else { return Ok(()) };
        let shape = self.shape(self.current);
        // A module that returns a list is listed with its first element, often its own input.
        if *output == shape || self.graph.shape(input) == Some(output) || !output.is_batched() {
            return Ok(());
        }
        let size = output.dimensions().get(1..).unwrap_or_default();
        let ends: Vec<Source> = self
            .graph
            .loose_ends(first)
            .into_iter()
            .filter(|&end| self.graph.shape(end).is_some_and(|shape| shape.dimensions().get(1..) == Some(size)))
            .collect();
        let channels = |source: Source| self.graph.shape(source).and_then(|shape| shape.dimensions().first().copied()).unwrap_or(0);
        let sum = ends.iter().fold(0, |sum: u64, &end| sum.saturating_add(channels(end)));
        let wanted = output.dimensions().first().copied().unwrap_or(0);
        if output.per_sample() == shape.per_sample() {
            return self.function("view", LayerKind::Reshape(Reshaping::View), vec![self.current], output.clone());
        }
        if ends.len() > 1 && sum == wanted {
            return self.function("cat", LayerKind::Concatenate, ends, output.clone());
        }
        // More channels than the block's own result: its input, whole or in half, is concatenated.
        let carried = channels(input);
        if let [only] = ends.as_slice()
            && size.len() == 2
            && self.graph.shape(input).and_then(|shape| shape.dimensions().get(1..)) == Some(size)
            && (sum.saturating_add(carried) == wanted || sum.saturating_add(carried / 2) == wanted)
        {
            return self.function("cat", LayerKind::Concatenate, vec![input, *only], output.clone());
        }
        Ok(())
    }
}
