//! Attention in trees of modules: query, key and value, separate or joint, and the fused kernel, which has no module.

use super::super::error::ParseError;
use super::super::output::with_features;
use super::super::role::Role;
use super::super::tree::children;
use super::Wiring;
use crate::model::{Layer, LayerKind, Shape, Source};

/// Default width of a head; most models use it.
pub(in super::super) const HEAD_WIDTH: u64 = 64;

/// Default number of heads for a width.
pub(in super::super) const fn usual_heads(width: u64) -> u64 {
    if width >= HEAD_WIDTH && width.is_multiple_of(HEAD_WIDTH) { width / HEAD_WIDTH } else { 1 }
}

impl Wiring<'_, '_> {
    /// The input of a linear layer in an attention module, if it is not the previous result: query, key and value all read the module's
    /// input, and the layer after them reads the attention's output.
    pub(super) fn projection(&mut self, place: usize) -> Result<Option<Source>, ParseError> {
        let Some((frame, parent)) = self.innermost() else { return Ok(None) };
        if parent.role != Role::Attention {
            return Ok(None);
        }
        let linear = |child: &usize| self.modules.get(*child).is_some_and(|module| module.kind == LayerKind::Linear);
        let projections: Vec<usize> = children(self.modules, frame.module).filter(linear).take(4).collect();
        let (input, first) = (frame.input, frame.first);
        match projections.iter().position(|&child| child == place) {
            Some(0..3) if projections.len() >= 3 => Ok(Some(input)),
            Some(3) => self.mix(first),
            _ => Ok(None),
        }
    }

    /// Attention over three results that no layer reads yet.
    pub(super) fn mix(&mut self, first: usize) -> Result<Option<Source>, ParseError> {
        let ends = self.graph.loose_ends(first);
        let [query, key, value] = ends.as_slice() else { return Ok(None) };
        let output = self.shape(*query);
        if output.dimensions().len() < 2 {
            return Ok(None);
        }
        let kind = LayerKind::Attention { heads: usual_heads(output.features()), dropout: 0.0 };
        self.graph.note("heads of attention are not written: 64 features a head were assumed");
        self.graph.function("scaled_dot_product_attention", kind, vec![*query, *key, *value], output).map(Some)
    }

    /// Attention over the current result, which holds query, key and value side by side.
    pub(super) fn fused_attention(&mut self, width: u64) -> Result<(), ParseError> {
        let output = with_features(&self.shape(self.current), width);
        self.graph.note("heads of attention are not written: 64 features a head were assumed");
        let kind = LayerKind::Attention { heads: usual_heads(width), dropout: 0.0 };
        self.function("scaled_dot_product_attention", kind, vec![self.current], output)
    }

    /// Whether a shape `[heads, tokens, width]` within attention is the query part of joint query, key and value.
    pub(super) fn splits_heads(&self, part: &Shape, whole: &Shape) -> bool {
        self.innermost().is_some_and(|(_, parent)| parent.role == Role::Attention)
            && matches!(part.dimensions(), [_, tokens, _] if whole.dimensions().first() == Some(tokens))
            && part.per_sample().checked_mul(3) == Some(whole.per_sample())
    }

    /// Attention with the number of heads from the shape of one of its parts.
    pub(super) fn attention_of_heads(&mut self, part: &Shape) -> Result<(), ParseError> {
        let [heads, tokens, width] = *part.dimensions() else { return Ok(()) };
        let kind = LayerKind::Attention { heads, dropout: 0.0 };
        let output = Shape::batched([tokens, heads.saturating_mul(width)]);
        self.function("scaled_dot_product_attention", kind, vec![self.current], output)
    }

    /// `nn.MultiheadAttention`, which does not run its children as modules.
    pub(super) fn multihead(&mut self, place: usize) -> Result<(), ParseError> {
        let Some(module) = self.modules.get(place) else { return Ok(()) };
        let projection = self.modules.get(place + 1..module.end).and_then(<[_]>::first);
        let input = self.shape(self.current);
        let width = projection.and_then(|projection| projection.attributes.inputs).unwrap_or_else(|| input.features());
        let heads = module.attributes.heads.unwrap_or_else(|| usual_heads(width));
        let square = width.saturating_mul(width);
        let base = self.layer(module, LayerKind::Linear, Vec::new(), input.clone()).name;
        let stated = module.parameters.filter(|&parameters| parameters > 0).map(|own| {
            let child = projection.and_then(|projection| projection.parameters).unwrap_or(0);
            own.saturating_add(child)
        });
        let biased = stated.is_none_or(|stated| stated > square.saturating_mul(4));
        let bias = |features: u64| if biased { features } else { 0 };
        let (triple, kind) = (width.saturating_mul(3), LayerKind::Attention { heads, dropout: 0.0 });
        let joint = Layer::new(format!("{base}.in_proj"), "Linear", LayerKind::Linear, vec![self.current], with_features(&input, triple));
        self.push(joint.with_tensors([square.saturating_mul(3), bias(triple)]))?;
        let attention =
            Layer::new(format!("{base}.attention"), "scaled_dot_product_attention", kind, vec![self.current], with_features(&input, width));
        self.push(attention)?;
        let out = Layer::new(format!("{base}.out_proj"), "Linear", LayerKind::Linear, vec![self.current], with_features(&input, width));
        self.push(out.with_tensors([square, bias(width)]))?;
        if module.attributes.heads.is_none() {
            self.graph.note("heads of attention are not written: 64 features a head were assumed");
        }
        Ok(())
    }
}
