//! Builds transformers operator by operator from their sizes; shared by configurations, printed models and weights files.

mod attention;
mod config;
mod feed_forward;
mod head;

pub(super) use config::{Attention, Classifier, Head, LONGEST_ASSUMED, Norm, Patches, Positions, TransformerConfig};

use super::error::ParseError;
use super::graph::Graph;
use crate::model::{Activation, ElementType, Layer, LayerKind, Normalisation, Reshaping, Shape, Source};

/// A transformer under construction.
struct Builder<'a> {
    graph: &'a mut Graph,
    config: &'a TransformerConfig,
    /// The path of the current block, with a trailing dot.
    path: String,
    activation: LayerKind,
}

/// Adds all operators of a transformer.
pub(super) fn build(config: &TransformerConfig, graph: &mut Graph) -> Result<(), ParseError> {
    let mut builder = Builder { graph, config, path: String::new(), activation: LayerKind::of_class(&config.activation) };
    let embedded = if let Some(patches) = config.patches { builder.patches(patches)? } else { builder.words()? };
    let mut last = builder.stack("encoder", config.layers, embedded, None)?;
    if config.decoder_layers > 0 {
        let embedded = builder.decoder_words()?;
        last = builder.stack("decoder", config.decoder_layers, embedded, Some(last))?;
    }
    builder.head(last)
}

impl Builder<'_> {
    /// Tokens per sample.
    fn tokens(&self) -> u64 {
        self.config.patches.map_or(self.config.sequence, |patches| {
            let across = |side: u64| side / patches.side.max(1);
            across(patches.image[0]).saturating_mul(across(patches.image[1])).saturating_add(1)
        })
    }

    /// A shape with this many features per token.
    fn sequence(&self, features: u64) -> Shape {
        Shape::batched([self.tokens(), features])
    }

    fn named(&mut self, name: &str, class: &str, kind: LayerKind, inputs: Vec<Source>, output: Shape) -> Layer {
        let mut full = String::with_capacity(self.path.len() + name.len());
        full.push_str(&self.path);
        full.push_str(name);
        Layer::new(full, class, kind, inputs, output)
    }

    fn operator(&mut self, name: &str, class: &str, kind: LayerKind, inputs: Vec<Source>, output: Shape) -> Result<Source, ParseError> {
        let layer = self.named(name, class, kind, inputs, output);
        self.graph.push(layer)
    }

    /// Embeddings of words, segments and positions, summed.
    fn words(&mut self) -> Result<Source, ParseError> {
        let (hidden, tokens) = (self.config.hidden, self.tokens());
        let ids = self.graph.input(Shape::batched([tokens]), Some(ElementType::Int64));
        let words = self.named("embeddings.word_embeddings", "Embedding", LayerKind::Embedding, vec![ids], self.sequence(hidden));
        let mut sum = self.graph.push(words.with_tensors([self.config.vocabulary.saturating_mul(hidden)]))?;
        if self.config.token_types > 0 {
            let types = self.graph.input(Shape::batched([tokens]), Some(ElementType::Int64));
            let kinds =
                self.named("embeddings.token_type_embeddings", "Embedding", LayerKind::Embedding, vec![types], self.sequence(hidden));
            let kinds = self.graph.push(kinds.with_tensors([self.config.token_types.saturating_mul(hidden)]))?;
            sum = self.operator("embeddings.add_types", "add", LayerKind::Add, vec![sum, kinds], self.sequence(hidden))?;
        }
        if let Positions::Learned(rows) = self.config.positions {
            let places = Shape::fixed([tokens, hidden]);
            let positions = self.named("embeddings.position_embeddings", "Embedding", LayerKind::Embedding, vec![ids], places);
            let positions = self.graph.push(positions.with_tensors([rows.saturating_mul(hidden)]))?;
            sum = self.operator("embeddings.add_positions", "add", LayerKind::Add, vec![sum, positions], self.sequence(hidden))?;
        }
        if self.config.embedding_norm {
            sum = self.norm("embeddings.LayerNorm", sum, hidden)?;
        }
        self.dropout("embeddings.dropout", sum)
    }

    /// The decoder's input: other words, the same table.
    fn decoder_words(&mut self) -> Result<Source, ParseError> {
        let ids = self.graph.input(Shape::batched([self.tokens()]), Some(ElementType::Int64));
        let words = self.sequence(self.config.hidden);
        let words = self.operator("decoder.word_embeddings", "Embedding", LayerKind::Embedding, vec![ids], words)?;
        self.dropout("decoder.embedding_dropout", words)
    }

    /// Patches of an image, with a leading class token and a position for each.
    fn patches(&mut self, patches: Patches) -> Result<Source, ParseError> {
        let hidden = self.config.hidden;
        let [height, width] = patches.image;
        let image = self.graph.input(Shape::batched([patches.channels, height, width]), None);
        let side = patches.side.max(1);
        let kind = LayerKind::Convolution { kernel: [side, side], stride: [side, side], groups: 1, transposed: false };
        let grid = Shape::batched([hidden, height / side, width / side]);
        let cut = self.named("embeddings.projection", "Conv2d", kind, vec![image], grid);
        let weight = side.saturating_mul(side).saturating_mul(patches.channels).saturating_mul(hidden);
        let cut = self.graph.push(cut.with_tensors([weight, hidden]))?;
        let tokens = self.tokens();
        let flat = Shape::batched([tokens.saturating_sub(1), hidden]);
        let flat = self.operator("embeddings.flatten", "flatten", LayerKind::Reshape(Reshaping::View), vec![cut], flat)?;
        let all = self.named("embeddings.cls_token", "cat", LayerKind::Concatenate, vec![flat], self.sequence(hidden));
        let all = self.graph.push(all.with_tensors([hidden]))?;
        let placed = self.named("embeddings.position_embeddings", "add", LayerKind::Add, vec![all], self.sequence(hidden));
        let placed = self.graph.push(placed.with_tensors([tokens.saturating_mul(hidden)]))?;
        self.dropout("embeddings.dropout", placed)
    }

    /// A stack of blocks; with `memory`, each block also attends to it.
    fn stack(&mut self, name: &str, layers: u64, embedded: Source, memory: Option<Source>) -> Result<Source, ParseError> {
        let mut current = embedded;
        for layer in 0..layers {
            let block = format!("{name}.{layer}");
            self.path = format!("{block}.");
            self.graph.block = Some(block);
            current = self.block(layer, current, memory)?;
        }
        self.graph.block = None;
        self.path.clear();
        if self.config.final_norm {
            current = self.norm(&format!("{name}.final_norm"), current, self.config.hidden)?;
        }
        // T5 and XLNet apply dropout to the last layer's output.
        if self.config.inner_dropout { self.dropout(&format!("{name}.final_dropout"), current) } else { Ok(current) }
    }

    fn block(&mut self, layer: u64, input: Source, memory: Option<Source>) -> Result<Source, ParseError> {
        let hidden = self.config.hidden;
        if self.config.parallel {
            let attended = self.norm("input_norm", input, hidden)?;
            let attended = self.attention(layer, attended, None)?;
            let attended = self.dropout("attention_dropout", attended)?;
            let fed = self.norm("post_attention_norm", input, hidden)?;
            let fed = self.feed_forward(fed)?;
            let fed = self.dropout("output_dropout", fed)?;
            let both = self.operator("add_both", "add", LayerKind::Add, vec![fed, attended], self.sequence(hidden))?;
            return self.operator("add", "add", LayerKind::Add, vec![both, input], self.sequence(hidden));
        }
        let mut current = self.residual("attention", input, |builder, source| builder.attention(layer, source, None))?;
        if let Some(memory) = memory {
            current = self.residual("cross_attention", current, |builder, source| builder.attention(layer, source, Some(memory)))?;
        }
        self.residual("feed_forward", current, Builder::feed_forward)
    }

    /// A part of a block with its dropout, sum and normalisation; the latter comes first or last.
    fn residual(
        &mut self,
        name: &str,
        input: Source,
        part: impl FnOnce(&mut Self, Source) -> Result<Source, ParseError>,
    ) -> Result<Source, ParseError> {
        let hidden = self.config.hidden;
        let normed = if self.config.pre_norm { self.norm(&format!("{name}.norm"), input, hidden)? } else { input };
        let mut result = part(self, normed)?;
        if self.config.result_norm {
            result = self.norm(&format!("{name}.result_norm"), result, hidden)?;
        }
        let result = self.dropout(&format!("{name}.dropout"), result)?;
        let sum = self.operator(&format!("{name}.add"), "add", LayerKind::Add, vec![result, input], self.sequence(hidden))?;
        if self.config.pre_norm { Ok(sum) } else { self.norm(&format!("{name}.norm"), sum, hidden) }
    }

    fn linear(&mut self, name: &str, input: Source, from: u64, to: u64, bias: bool) -> Result<Source, ParseError> {
        let output = super::output::with_features(&self.graph.shape(input).cloned().unwrap_or_else(|| self.sequence(from)), to);
        let class = self.config.linear;
        let layer = self.named(name, class, LayerKind::Linear, vec![input], output);
        self.graph.push(layer.with_tensors([from.saturating_mul(to), if bias { to } else { 0 }]))
    }

    fn norm(&mut self, name: &str, input: Source, width: u64) -> Result<Source, ParseError> {
        let output = self.graph.shape(input).cloned().unwrap_or_else(|| self.sequence(width));
        let (class, kind, tensors) = match self.config.norm {
            Norm::Layer => ("LayerNorm", Normalisation::Layer, vec![width, width]),
            Norm::RootMeanSquare(class) => (class, Normalisation::RootMeanSquare, vec![width]),
        };
        let layer = self.named(name, class, LayerKind::Normalisation(kind), vec![input], output);
        self.graph.push(layer.with_tensors(tensors))
    }

    /// A limit on scores: divided, through a tanh, and multiplied. Only the tanh saves anything.
    fn capped(&mut self, name: &str, scores: Source, shape: &Shape) -> Result<Source, ParseError> {
        let divided = self.operator(&format!("{name}.capped_div"), "div", LayerKind::Add, vec![scores], shape.clone())?;
        let limited = self.operator(
            &format!("{name}.capped_tanh"),
            "tanh",
            LayerKind::Activation(Activation::KeepsOutput),
            vec![divided],
            shape.clone(),
        )?;
        self.operator(&format!("{name}.capped_mul"), "mul", LayerKind::Add, vec![limited], shape.clone())
    }

    /// PyTorch does nothing if the dropout rate is 0.
    fn dropout(&mut self, name: &str, input: Source) -> Result<Source, ParseError> {
        let probability = self.config.dropout;
        if probability <= 0.0 {
            return Ok(input);
        }
        let output = self.graph.shape(input).cloned().unwrap_or_else(|| Shape::batched([]));
        self.operator(name, "Dropout", LayerKind::Dropout { probability }, vec![input], output)
    }
}
