//! The feed-forward part of a block.

use super::super::error::ParseError;
use super::Builder;
use crate::model::{LayerKind, Source};

impl Builder<'_> {
    pub(super) fn feed_forward(&mut self, input: Source) -> Result<Source, ParseError> {
        let (hidden, inner, bias) = (self.config.hidden, self.config.intermediate, self.config.feed_forward_bias);
        let wide = self.sequence(inner);
        let mut current = self.linear(if self.config.gated { "mlp.gate" } else { "mlp.in" }, input, hidden, inner, bias)?;
        current = self.operator("mlp.activation", &self.config.activation, self.activation.clone(), vec![current], wide.clone())?;
        if self.config.gated {
            let up = self.linear("mlp.up", input, hidden, inner, bias)?;
            current = self.operator("mlp.mul", "mul", LayerKind::Multiply, vec![current, up], wide)?;
        }
        if self.config.inner_dropout {
            current = self.dropout("mlp.dropout", current)?;
        }
        self.linear("mlp.out", current, inner, hidden, bias)
    }
}
