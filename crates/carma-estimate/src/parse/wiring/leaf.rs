//! Modules without children.

use super::super::error::ParseError;
use super::super::output;
use super::super::role::Role;
use super::super::tree::Module;
use super::{RELU, Wiring};
use crate::model::{LayerKind, Normalisation, Reshaping, Shape};

impl Wiring<'_, '_> {
    pub(super) fn leaf(&mut self, place: usize) -> Result<(), ParseError> {
        let Some(module) = self.modules.get(place) else { return Ok(()) };
        if is_hidden(module) {
            return self.set_aside(module);
        }
        if self.starts_branch(place) {
            self.current = self.frames.last().map_or(self.current, |frame| frame.input);
        }
        match &module.kind {
            LayerKind::Convolution { transposed, .. } => self.convolution(place, module, *transposed),
            LayerKind::Linear => self.linear(place, module),
            LayerKind::Embedding => self.embedding(module),
            LayerKind::MaxPool | LayerKind::AveragePool => self.pool(module),
            LayerKind::Upsample => self.resized(module),
            LayerKind::Reshape(_) => self.reshape(module),
            LayerKind::Recurrent { gates, .. } => self.recurrent(module, *gates),
            LayerKind::Unknown => self.unknown(module),
            _ => self.elementwise(place, module),
        }
    }

    fn set_aside(&mut self, module: &Module<'_>) -> Result<(), ParseError> {
        if module.parameters.unwrap_or(0) > 0 {
            let layer = self.layer(module, LayerKind::Unknown, vec![self.current], Shape::fixed([]));
            self.graph.push(layer)?;
            self.graph.note("some modules are shown without their inside: their parameters are counted, their activations are not");
        }
        Ok(())
    }

    /// Normalisations, activations, dropout: the output has the size of the input.
    fn elementwise(&mut self, place: usize, module: &Module<'_>) -> Result<(), ParseError> {
        let direct =
            self.innermost().filter(|(_, parent)| parent.role == Role::Residual).map(|(frame, parent)| (frame.attends, parent.end));
        let normalises = matches!(module.kind, LayerKind::Normalisation(_));
        match direct {
            Some((true, _)) if normalises => self.add_shortcut()?,
            // The last activation of a residual block comes after the sum.
            Some((false, end)) if end == place + 1 && matches!(module.kind, LayerKind::Activation(_)) => self.add_shortcut()?,
            _ => {}
        }
        if self.skips_depth(module) {
            return Ok(());
        }
        if matches!(module.kind, LayerKind::Dropout { .. }) && module.output.is_none() {
            self.prepare_classifier(place)?;
        }
        if normalises {
            self.feed_normalisation(module)?;
        } else if let Some(output) = &module.output {
            self.bridge(output)?;
        }
        let source = self.current;
        let output = module.output.clone().unwrap_or_else(|| self.shape(source));
        let kind = match (&module.kind, module.attributes.probability) {
            // PyTorch returns the input itself if the dropout rate is 0.
            (LayerKind::Dropout { .. }, Some(probability)) if probability <= 0.0 => LayerKind::Reshape(Reshaping::View),
            (LayerKind::Dropout { .. }, Some(probability)) => LayerKind::Dropout { probability },
            (kind, _) => kind.clone(),
        };
        let in_place = self.runs_in_place(module, source);
        let mut layer = self.layer(module, kind, vec![source], output);
        layer.in_place = in_place;
        self.push(layer)?;
        // A block with post-normalisation starts its next shortcut here.
        let current = self.current;
        if let Some((true, _)) = direct
            && normalises
            && self.graph.layer(source).is_some_and(|before| before.kind == LayerKind::Add)
            && self.innermost().is_some_and(|(frame, _)| {
                self.modules.get(frame.module + 1).is_some_and(|first| first.role == Role::Attention || first.class == "MultiheadAttention")
            })
            && let Some(frame) = self.frames.last_mut()
        {
            frame.shortcut = current;
        }
        if module.name == "linear1" && self.innermost().is_some_and(|(_, parent)| parent.class == "TransformerEncoderLayer") {
            let shape = self.shape(self.current);
            self.function("relu", RELU, vec![self.current], shape)?;
        }
        Ok(())
    }

    /// Stochastic depth is listed in every block, but runs only in those that add their input.
    fn skips_depth(&self, module: &Module<'_>) -> bool {
        module.output.is_none()
            && matches!(module.class, "StochasticDepth" | "DropPath")
            && self.innermost().is_some_and(|(frame, _)| self.graph.shape(frame.shortcut) != self.graph.shape(self.current))
    }

    /// A normalisation has its output's channels: if the current result has others, branches were concatenated before it.
    fn feed_normalisation(&mut self, module: &Module<'_>) -> Result<(), ParseError> {
        if module.output.is_some() && self.graph.shape(self.current) == module.output.as_ref() {
            return Ok(());
        }
        let shape = self.shape(self.current);
        if let Some(output) = &module.output {
            let wanted = output.dimensions().first().copied().unwrap_or(0);
            let had = shape.dimensions().first().copied().unwrap_or(0);
            if let Some(missing) = wanted.checked_sub(had).filter(|&missing| missing > 0)
                && output.dimensions().get(1..) == shape.dimensions().get(1..)
                && let Some(skip) = self.find_skip(missing)
            {
                return self.function("cat", LayerKind::Concatenate, vec![skip, self.current], output.clone());
            }
            if let Some(source) = self.find_shape(output).filter(|_| output.per_sample() > shape.per_sample()) {
                self.current = source;
                return Ok(());
            }
            return self.bridge(output);
        }
        let (Some(wanted), false) = (module.attributes.inputs, shape.dimensions().is_empty()) else { return Ok(()) };
        if module.kind == LayerKind::Normalisation(Normalisation::Layer) {
            return if module.class.ends_with("2d") { Ok(()) } else { self.as_tokens(wanted) };
        }
        let had = shape.dimensions().first().copied().unwrap_or(0);
        if had != wanted
            && let Some(missing) = wanted.checked_sub(had)
            && let Some(skip) = self.find_skip(missing)
        {
            let mut dimensions = vec![wanted];
            dimensions.extend(shape.dimensions().get(1..).unwrap_or_default());
            return self.function("cat", LayerKind::Concatenate, vec![skip, self.current], Shape::batched(dimensions));
        }
        Ok(())
    }

    fn pool(&mut self, module: &Module<'_>) -> Result<(), ParseError> {
        if let Some(input) = &module.input {
            self.bridge(input)?;
        } else if let Some(output) = &module.output {
            let wanted = output.dimensions().first().copied();
            let fits =
                |shape: &Shape| (shape.dimensions().first().copied() == wanted && shape.per_sample() >= output.per_sample()).then_some(0);
            if let Some((source, _)) = self.find(fits) {
                self.current = source;
            }
        }
        let input = self.shape(self.current);
        let output = module.output.clone().unwrap_or_else(|| output::of(module, &[&input]));
        let layer = self.layer(module, module.kind.clone(), vec![self.current], output);
        self.push(layer)
    }

    fn resized(&mut self, module: &Module<'_>) -> Result<(), ParseError> {
        let input = self.shape(self.current);
        let output = module.output.clone().unwrap_or_else(|| output::of(module, &[&input]));
        let layer = self.layer(module, LayerKind::Upsample, vec![self.current], output);
        self.push(layer)
    }

    fn reshape(&mut self, module: &Module<'_>) -> Result<(), ParseError> {
        let input = self.shape(self.current);
        let output = match (&module.output, module.class) {
            (Some(output), _) => {
                if self.splits_heads(output, &input) {
                    self.attention_of_heads(output)?;
                } else if output.per_sample() != input.per_sample() {
                    self.bridge(output)?;
                }
                output.clone()
            }
            (None, "Permute") => self.permuted(&input),
            (None, _) => output::of(module, &[&input]),
        };
        let layer = self.layer(module, module.kind.clone(), vec![self.current], output);
        self.push(layer)
    }

    /// Permuting modules do not print their order: the first moves channels last, the next moves them back.
    fn permuted(&mut self, input: &Shape) -> Shape {
        let mut dimensions = input.dimensions().to_vec();
        if !dimensions.is_empty() {
            if self.channels_last {
                dimensions.rotate_right(1);
            } else {
                dimensions.rotate_left(1);
            }
            self.channels_last = !self.channels_last;
        }
        Shape::batched(dimensions)
    }

    fn recurrent(&mut self, module: &Module<'_>, gates: u64) -> Result<(), ParseError> {
        let attributes = &module.attributes;
        let directions = if attributes.bidirectional { 2 } else { 1 };
        let output = module.output.clone().unwrap_or_else(|| output::of(module, &[&self.shape(self.current)]));
        let hidden = attributes.outputs.unwrap_or_else(|| output.features() / directions);
        let kind = LayerKind::Recurrent { gates, hidden, layers: attributes.layers.unwrap_or(1).saturating_mul(directions) };
        let layer = self.layer(module, kind, vec![self.current], output);
        self.push(layer)
    }

    fn unknown(&mut self, module: &Module<'_>) -> Result<(), ParseError> {
        let output = module.output.clone().unwrap_or_else(|| self.shape(self.current));
        let ends = self.frames.last().map_or(Vec::new(), |frame| self.graph.loose_ends(frame.first));
        let input = module.input.as_ref().and_then(|input| self.find_shape(input));
        let inputs = match input {
            Some(input) => vec![input],
            // An unknown module may read everything that no other layer has read.
            None if ends.len() > 1 && ends.len() < 16 => ends,
            None => vec![self.current],
        };
        let layer = self.layer(module, LayerKind::Unknown, inputs, output);
        self.push(layer)
    }
}

/// A container listed without contents and shape: only its parameters count.
fn is_hidden(module: &Module<'_>) -> bool {
    let listed = matches!(module.class, "ModuleList" | "ModuleDict" | "ParameterList")
        || (module.class == "Sequential" && module.parameters.unwrap_or(0) == 0);
    // Fused kernels apply dropout to attention scores themselves; the module is listed but does not run.
    listed || (matches!(&*module.name, "attn_drop" | "attn_dropout") && module.output.is_none())
}
