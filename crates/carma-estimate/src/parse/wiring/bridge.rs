//! Functions between modules, which summaries do not list: inferred from the shape of the next module.

use super::super::error::ParseError;
use super::super::tree::Module;
use super::Wiring;
use crate::model::{Layer, LayerKind, Reshaping, Shape, Source};

impl Wiring<'_, '_> {
    /// Dropout before a classifier: adds the missing global average pool or flattening before it.
    pub(super) fn prepare_classifier(&mut self, place: usize) -> Result<(), ParseError> {
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

    /// Converts an image of patches to a sequence of tokens if it is normalised over its channels.
    pub(super) fn as_tokens(&mut self, features: u64) -> Result<(), ParseError> {
        let shape = self.shape(self.current);
        match *shape.dimensions() {
            [channels, height, width] if channels == features && width != features => {
                let tokens = Shape::batched([height.saturating_mul(width), channels]);
                self.function("view", LayerKind::Reshape(Reshaping::View), vec![self.current], tokens)
            }
            _ => Ok(()),
        }
    }

    /// Vision transformers of torchvision and timm: adds the class token and the positions to the patches. Both are parameters that a
    /// printed model does not show.
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

    /// Converts the current result to this shape by the most likely function.
    pub(super) fn bridge(&mut self, wanted: &Shape) -> Result<(), ParseError> {
        if self.graph.shape(self.current).is_none_or(|shape| shape == wanted) {
            return Ok(());
        }
        let shape = self.shape(self.current);
        // Patches of an image as tokens, including the class token.
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

    /// A source for a module that no result fits: a function to its stated input shape, or else the current result.
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
