//! Modules without children.

use super::super::error::ParseError;
use super::super::output;
use super::super::role::Role;
use super::super::tree::Module;
use super::{RELU, Wiring};
use crate::model::{Layer, LayerKind, Normalisation, Reshaping, Shape, Source};

impl Wiring<'_, '_> {
    pub(super) fn leaf(&mut self, place: usize) -> Result<(), ParseError> {
        let Some(module) = self.modules.get(place) else { return Ok(()) };
        if self.is_hidden(module) {
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

    /// A container that is shown without its inside and without a shape: only its parameters count.
    fn is_hidden(&self, module: &Module<'_>) -> bool {
        let listed = matches!(module.class, "ModuleList" | "ModuleDict" | "ParameterList")
            || (module.class == "Sequential" && module.parameters.unwrap_or(0) == 0);
        // Fused kernels drop attention scores themselves; the module is listed but not run.
        listed || (matches!(&*module.name, "attn_drop" | "attn_dropout") && module.output.is_none())
    }

    fn set_aside(&mut self, module: &Module<'_>) -> Result<(), ParseError> {
        if module.parameters.unwrap_or(0) > 0 {
            let layer = self.layer(module, LayerKind::Unknown, vec![self.current], Shape::fixed([]));
            self.graph.push(layer)?;
            self.graph.note("some modules are shown without their inside: their parameters are counted, their activations are not");
        }
        Ok(())
    }

    /// Normalisations, activations, dropout: the output is as large as the input.
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
            (LayerKind::Dropout { .. }, Some(probability)) => LayerKind::Dropout { probability },
            (kind, _) => kind.clone(),
        };
        let in_place = self.runs_in_place(module, source);
        let mut layer = self.layer(module, kind, vec![source], output);
        layer.in_place = in_place;
        self.push(layer)?;
        // A block that normalises after each sum starts its next shortcut here.
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

    /// Stochastic depth is listed in every block and run only in those that add their input.
    fn skips_depth(&self, module: &Module<'_>) -> bool {
        module.output.is_none()
            && matches!(module.class, "StochasticDepth" | "DropPath")
            && self.innermost().is_some_and(|(frame, _)| self.graph.shape(frame.shortcut) != self.graph.shape(self.current))
    }

    /// Dropout before a classifier: the mean over the image, or its flattening, that no module stands for comes before it.
    fn prepare_classifier(&mut self, place: usize) -> Result<(), ParseError> {
        let after = self.modules.get(place + 1..).unwrap_or_default();
        let next = after
            .iter()
            .find(|module| !matches!(module.kind, LayerKind::Activation(_) | LayerKind::Dropout { .. } | LayerKind::Reshape(_)));
        let Some(need) = next.filter(|next| next.kind == LayerKind::Linear).and_then(|next| next.attributes.inputs) else { return Ok(()) };
        let shape = self.shape(self.current);
        match *shape.dimensions() {
            [_, _, _] if shape.per_sample() == need => {
                self.function("flatten", LayerKind::Reshape(Reshaping::View), vec![self.current], Shape::batched([need]))
            }
            [channels, _, _] if channels == need => self.function("mean", LayerKind::Reduce, vec![self.current], Shape::batched([need])),
            _ => Ok(()),
        }
    }

    /// A normalisation's channels are its output's: where the current result has others, branches were joined before it.
    fn feed_normalisation(&mut self, module: &Module<'_>) -> Result<(), ParseError> {
        let shape = self.shape(self.current);
        if let Some(output) = &module.output {
            if *output == shape {
                return Ok(());
            }
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

    /// An image of patches that is normalised over its channels has been made a sequence of tokens.
    fn as_tokens(&mut self, features: u64) -> Result<(), ParseError> {
        let shape = self.shape(self.current);
        match *shape.dimensions() {
            [channels, height, width] if channels == features && width != features => {
                let tokens = Shape::batched([height.saturating_mul(width), channels]);
                self.function("view", LayerKind::Reshape(Reshaping::View), vec![self.current], tokens)
            }
            _ => Ok(()),
        }
    }

    /// The patches of torchvision's and timm's vision transformers: a token for the class joins them, and each gets a position. Both are
    /// parameters that a printed model does not show.
    pub(super) fn class_token(&mut self) -> Result<(), ParseError> {
        let [features, height, width] = *self.shape(self.current).dimensions() else { return Ok(()) };
        self.as_tokens(features)?;
        let tokens = height.saturating_mul(width).saturating_add(1);
        let shape = Shape::batched([tokens, features]);
        let joined = Layer::new("class_token", "cat", LayerKind::Concatenate, vec![self.current], shape.clone());
        self.push(joined.with_tensors([features]))?;
        let placed = Layer::new("pos_embedding", "add", LayerKind::Add, vec![self.current], shape);
        self.push(placed.with_tensors([tokens.saturating_mul(features)]))?;
        self.graph.note("a token for the class and a position for each patch were added: a printed model does not show them");
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

    /// Modules that permute do not print how: the first moves channels last, the next moves them back.
    fn permuted(&mut self, input: &Shape) -> Shape {
        let mut dimensions = input.dimensions().to_vec();
        if !dimensions.is_empty() {
            if self.channels_last {
                dimensions.rotate_right(1)
            } else {
                dimensions.rotate_left(1)
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
            // Something that is not known may well read all that nothing else has.
            None if ends.len() > 1 && ends.len() < 16 => ends,
            None => vec![self.current],
        };
        let layer = self.layer(module, LayerKind::Unknown, inputs, output);
        self.push(layer)
    }

    /// Makes the current result one of this shape by the function that most likely stood between.
    pub(super) fn bridge(&mut self, wanted: &Shape) -> Result<(), ParseError> {
        let shape = self.shape(self.current);
        if *wanted == shape || (shape.dimensions().is_empty() && self.graph.shape(self.current).is_none()) {
            return Ok(());
        }
        // Patches of an image as tokens, one for the class among them.
        if let ([from, height, width], [tokens, to]) = (shape.dimensions(), wanted.dimensions())
            && from == to
            && height.saturating_mul(*width).checked_add(1) == Some(*tokens)
        {
            self.as_tokens(*from)?;
            return self.function("cat", LayerKind::Concatenate, vec![self.current], wanted.clone());
        }
        let (class, kind) = match (shape.dimensions(), wanted.dimensions()) {
            _ if shape.per_sample() == wanted.per_sample() => ("view", LayerKind::Reshape(Reshaping::View)),
            ([from, _, _], [to]) if from == to => ("mean", LayerKind::Reduce),
            ([tokens, from], [more, to]) if from == to && tokens.checked_add(1) == Some(*more) => ("cat", LayerKind::Concatenate),
            ([_, from], [to]) if from == to => ("getitem", LayerKind::Reshape(Reshaping::View)),
            ([from, height, width], [to, less, fewer]) if from == to && less <= height && fewer <= width => {
                self.graph.note("a shrinking function between listed modules is taken to be a maximum over windows");
                ("max_pool2d", LayerKind::MaxPool)
            }
            ([from, height, width], [to, more, wider]) if from == to && more >= height && wider >= width => {
                ("interpolate", LayerKind::Upsample)
            }
            _ => {
                if let Some(source) = self.find_shape(wanted) {
                    self.current = source;
                    return Ok(());
                }
                self.graph.note("functions that no module stands for were left as layers of unknown kind");
                ("function", LayerKind::Unknown)
            }
        };
        self.function(class, kind, vec![self.current], wanted.clone())
    }

    /// A source for a module that none fits: what it states to have read, by way of a function, or else the current result.
    pub(super) fn bridge_to(&mut self, module: &Module<'_>) -> Result<Source, ParseError> {
        if let Some(input) = &module.input {
            let ends = self.graph.loose_ends(self.frames.last().map_or(0, |frame| frame.first));
            let skip = self
                .shape(self.current)
                .dimensions()
                .first()
                .zip(input.dimensions().first())
                .and_then(|(had, want)| want.checked_sub(*had));
            if self.shape(self.current).dimensions().get(1..) == input.dimensions().get(1..)
                && let Some(skip) = skip.filter(|&missing| missing > 0).and_then(|missing| self.find_skip(missing))
            {
                self.function("cat", LayerKind::Concatenate, vec![skip, self.current], input.clone())?;
            } else if ends.len() > 1 && ends.len() < 64 && self.find_shape(input).is_none() && input.dimensions().len() < 3 {
                self.graph.note("functions that no module stands for were left as layers of unknown kind");
                self.function("function", LayerKind::Unknown, ends, input.clone())?;
            } else {
                self.bridge(input)?;
            }
        } else if self.graph.shape(self.current).is_some() {
            self.graph.note("what some modules read could not be told: they are taken to read the one before");
        }
        Ok(self.current)
    }
}
