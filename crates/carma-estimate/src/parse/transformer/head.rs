//! The part after the last block: words, classes, and the loss over words.

use super::super::error::ParseError;
use super::{Attention, Builder, Classifier, Head};
use crate::model::{Activation, ElementType, LayerKind, Reshaping, Shape, Source};

/// tanh and ReLU save their output.
const KEEPS_OUTPUT: LayerKind = LayerKind::Activation(Activation::KeepsOutput);

impl Builder<'_> {
    pub(super) fn head(&mut self, last: Source) -> Result<(), ParseError> {
        let config = self.config;
        // XLNet has a separate embedding for words to predict, used or not.
        if config.attention == Attention::Relative {
            let mask =
                self.named("mask_embedding", "Parameter", LayerKind::Reshape(Reshaping::View), vec![last], Shape::fixed([config.hidden]));
            self.graph.push(mask.with_tensors([config.hidden]))?;
        }
        let hidden = config.hidden;
        let mut pooled = None;
        if config.pooler {
            let first = self.first_token(last, 0)?;
            let dense = self.linear("pooler.dense", first, hidden, hidden, true)?;
            pooled = Some(self.operator("pooler.activation", "Tanh", KEEPS_OUTPUT, vec![dense], Shape::batched([hidden]))?);
        }
        match config.head {
            Head::None => Ok(()),
            Head::Masked => {
                let dense = self.linear("head.transform", last, hidden, hidden, true)?;
                let shape = self.sequence(hidden);
                let active = self.operator("head.activation", &config.activation, self.activation.clone(), vec![dense], shape)?;
                let normed = self.norm("head.LayerNorm", active, hidden)?;
                self.vocabulary(normed, true)
            }
            Head::Causal { bias } => self.vocabulary(last, bias),
            Head::Classifier { labels, style } => self.classes(last, pooled, labels, style),
        }
    }

    /// Features of one token of each sample.
    fn first_token(&mut self, last: Source, number: u64) -> Result<Source, ParseError> {
        let name = format!("head.token{number}");
        self.operator(&name, "getitem", LayerKind::Reshape(Reshaping::View), vec![last], Shape::batched([self.config.hidden]))
    }

    /// Scores of all words, and the loss: its log-softmax is computed in 4 bytes at any precision.
    fn vocabulary(&mut self, input: Source, bias: bool) -> Result<(), ParseError> {
        let (hidden, words) = (self.config.hidden, self.config.vocabulary);
        let logits = self.sequence(words);
        let weight = if self.config.tied { 0 } else { hidden.saturating_mul(words) };
        let layer = self.named("head.decoder", "Linear", LayerKind::Linear, vec![input], logits.clone());
        let mut scores = self.graph.push(layer.with_tensors([weight, if bias { words } else { 0 }]))?;
        if self.config.capped_words {
            scores = self.capped("head", scores, &logits)?;
        }
        let mut loss = self.named("loss", "log_softmax", LayerKind::Softmax, vec![scores], logits);
        loss.element = Some(ElementType::Float32);
        self.graph.push(loss)?;
        Ok(())
    }

    fn classes(&mut self, last: Source, pooled: Option<Source>, labels: u64, style: Classifier) -> Result<(), ParseError> {
        let hidden = self.config.hidden;
        let input = match style {
            Classifier::EveryToken => last,
            Classifier::Plain | Classifier::Pooled => {
                let token = match pooled {
                    Some(pooled) => pooled,
                    None => self.first_token(last, 1)?,
                };
                self.dropout("head.dropout", token)?
            }
            Classifier::Dense => {
                let token = self.first_token(last, 1)?;
                let dense = self.linear("head.dense", token, hidden, hidden, true)?;
                let active = self.operator("head.activation", "Tanh", KEEPS_OUTPUT, vec![dense], Shape::batched([hidden]))?;
                self.dropout("head.dropout", active)?
            }
        };
        self.linear("head.classifier", input, hidden, labels, style != Classifier::EveryToken)?;
        Ok(())
    }
}
