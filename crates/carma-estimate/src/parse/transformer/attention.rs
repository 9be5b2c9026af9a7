//! Attention of a block: by a fused kernel, step by step, or with relative positions.

use super::super::error::ParseError;
use super::{Attention, Builder, Positions};
use crate::model::{Layer, LayerKind, Reshaping, Shape, Source};

impl Builder<'_> {
    /// Attention over `input`, or from it to `memory`, including the output projection.
    pub(super) fn attention(&mut self, layer: u64, input: Source, memory: Option<Source>) -> Result<Source, ParseError> {
        let config = self.config;
        if config.attention == Attention::Relative {
            return self.relative(input);
        }
        let name = if memory.is_some() { "cross_attention" } else { "attention" };
        let (width, key_width) = (config.heads.saturating_mul(config.head_width), config.key_heads.saturating_mul(config.head_width));
        let bias = config.projection_bias;
        let inputs = if config.joint && memory.is_none() {
            let all = width.saturating_add(key_width.saturating_mul(2));
            let joint = self.linear(&format!("{name}.qkv"), input, config.hidden, all, bias)?;
            if config.positions == Positions::Rotary { self.parted(name, joint, width, key_width)? } else { vec![joint] }
        } else {
            let from = memory.unwrap_or(input);
            let query = self.linear(&format!("{name}.query"), input, config.hidden, width, bias)?;
            let key = self.linear(&format!("{name}.key"), from, config.hidden, key_width, bias)?;
            let value = self.linear(&format!("{name}.value"), from, config.hidden, key_width, bias)?;
            let (query, key) = if config.query_norm { self.normed_heads(name, query, key)? } else { (query, key) };
            self.placed(name, [query, key, value], key_width, width)?
        };
        let mixed = match config.attention {
            Attention::Fused | Attention::Relative => {
                let kind = LayerKind::Attention { heads: config.heads, dropout: config.attention_dropout };
                let output = self.sequence(width);
                self.operator(&format!("{name}.mix"), "scaled_dot_product_attention", kind, inputs, output)?
            }
            Attention::Eager => self.step_by_step(name, layer, &inputs, width, memory.is_some())?,
        };
        self.linear(&format!("{name}.output"), mixed, width, config.hidden, config.output_bias)
    }

    /// Queries and keys, normalised head by head with one weight for all heads.
    fn normed_heads(&mut self, name: &str, query: Source, key: Source) -> Result<(Source, Source), ParseError> {
        let width = self.config.head_width;
        Ok((self.norm(&format!("{name}.query_norm"), query, width)?, self.norm(&format!("{name}.key_norm"), key, width)?))
    }

    /// Query, key and value as parts of one joint result.
    fn parted(&mut self, name: &str, joint: Source, width: u64, key_width: u64) -> Result<Vec<Source>, ParseError> {
        let mut part = |part: &str, features: u64| {
            let shape = self.sequence(features);
            self.operator(&format!("{name}.{part}"), "getitem", LayerKind::Reshape(Reshaping::View), vec![joint], shape)
        };
        let parts = [part("query", width)?, part("key", key_width)?, part("value", key_width)?];
        self.placed(name, parts, key_width, width)
    }

    /// Applies rotary positions to queries and keys; repeats keys and values that several queries share.
    fn placed(
        &mut self,
        name: &str,
        [mut query, mut key, mut value]: [Source; 3],
        key_width: u64,
        width: u64,
    ) -> Result<Vec<Source>, ParseError> {
        if self.config.positions == Positions::Rotary {
            for (part, source, features) in [("query", &mut query, width), ("key", &mut key, key_width)] {
                let shape = self.sequence(features);
                let turned =
                    self.operator(&format!("{name}.{part}_rotated"), "cat", LayerKind::Concatenate, vec![*source], shape.clone())?;
                *source = self.operator(&format!("{name}.{part}_placed"), "add", LayerKind::Add, vec![*source, turned], shape)?;
            }
        }
        if key_width < width {
            for (part, source) in [("key", &mut key), ("value", &mut value)] {
                let (kind, shape) = (LayerKind::Reshape(Reshaping::Copy), self.sequence(width));
                *source = self.operator(&format!("{name}.{part}_repeated"), "repeat_interleave", kind, vec![*source], shape)?;
            }
        }
        Ok(vec![query, key, value])
    }

    /// Eager attention: scores of all token pairs and their dropout are in memory.
    fn step_by_step(&mut self, name: &str, layer: u64, inputs: &[Source], width: u64, crosses: bool) -> Result<Source, ParseError> {
        let tokens = self.tokens();
        let scores = Shape::batched([self.config.heads, tokens, tokens]);
        let (query, value) = (inputs.first().copied(), inputs.last().copied());
        let reads: Vec<Source> = query.into_iter().chain(inputs.get(1).copied()).collect();
        let mut current = self.operator(&format!("{name}.scores"), "matmul", LayerKind::MatrixProduct, reads, scores.clone())?;
        // Scaling by a number and adding a mask save nothing.
        if let Positions::Bias(rows) = self.config.positions {
            let mut reads = vec![current];
            if layer == 0 && !crosses {
                reads.push(self.distance_bias(name, rows, tokens)?);
            }
            current = self.operator(&format!("{name}.biased"), "add", LayerKind::Add, reads, scores.clone())?;
            self.graph.overwrite_last();
        } else {
            current = self.operator(&format!("{name}.scaled"), "div", LayerKind::Add, vec![current], scores.clone())?;
            if self.config.capped_scores {
                current = self.capped(name, current, &scores)?;
            }
            current = self.operator(&format!("{name}.masked"), "add", LayerKind::Add, vec![current], scores.clone())?;
        }
        current = self.probabilities(name, current, &scores)?;
        let reads: Vec<Source> = [current].into_iter().chain(value).collect();
        let output = self.sequence(width);
        let mixed = self.operator(&format!("{name}.mix"), "matmul", LayerKind::MatrixProduct, reads, output.clone())?;
        self.operator(&format!("{name}.joined"), "contiguous", LayerKind::Reshape(Reshaping::Copy), vec![mixed], output)
    }

    fn distance_bias(&mut self, name: &str, rows: u64, tokens: u64) -> Result<Source, ParseError> {
        let heads = self.config.heads;
        let table = Layer::new(
            format!("{}{name}.distance_bias", self.path),
            "Embedding",
            LayerKind::Embedding,
            vec![Source::Input(0)],
            Shape::fixed([tokens, tokens, heads]),
        );
        self.graph.push(table.with_tensors([rows.saturating_mul(heads)]))
    }

    /// Softmax and dropout of scores.
    fn probabilities(&mut self, name: &str, scores: Source, shape: &Shape) -> Result<Source, ParseError> {
        let kept = self.operator(&format!("{name}.softmax"), "softmax", LayerKind::Softmax, vec![scores], shape.clone())?;
        let probability = self.config.attention_dropout;
        if probability <= 0.0 {
            return Ok(kept);
        }
        self.operator(&format!("{name}.score_dropout"), "Dropout", LayerKind::Dropout { probability }, vec![kept], shape.clone())
    }

    /// Attention of `XLNet`: scores by content and by distance, from products with three-dimensional weights.
    fn relative(&mut self, input: Source) -> Result<Source, ParseError> {
        let config = self.config;
        let width = config.heads.saturating_mul(config.head_width);
        let (tokens, matrix) = (self.tokens(), config.hidden.saturating_mul(width));
        let wide = self.sequence(width);
        let distances = Shape::batched([tokens.saturating_mul(2), width]);
        let product = |builder: &mut Self, name: &str, from: Source, output: &Shape, tensors: Vec<u64>| {
            let layer = builder.named(name, "einsum", LayerKind::Linear, vec![from], output.clone());
            builder.graph.push(layer.with_tensors(tensors))
        };
        let query = product(self, "attention.query", input, &wide, vec![matrix])?;
        let key = product(self, "attention.key", input, &wide, vec![matrix])?;
        let value = product(self, "attention.value", input, &wide, vec![matrix])?;
        // Distance encodings are the same for every layer, and copied for every sample.
        let encodings = Shape::batched([tokens.saturating_mul(2), config.hidden]);
        let encoded =
            self.operator("attention.distances", "expand", LayerKind::Reshape(Reshaping::Copy), vec![Source::Input(0)], encodings)?;
        let distance = product(self, "attention.distance", encoded, &distances, vec![matrix])?;
        let scores = Shape::batched([config.heads, tokens, tokens]);
        // Segments have biases too (two rows and one), which exist but are not used without segment ids.
        let content = self.named("attention.content_query", "add", LayerKind::Add, vec![query], wide.clone());
        let content = self.graph.push(content.with_tensors([width, width.saturating_mul(2), width]))?;
        let by_content = self.operator("attention.content", "einsum", LayerKind::MatrixProduct, vec![content, key], scores.clone())?;
        let placed = self.named("attention.distance_query", "add", LayerKind::Add, vec![query], wide.clone());
        let placed = self.graph.push(placed.with_tensors([width]))?;
        let far = Shape::batched([config.heads, tokens, tokens.saturating_mul(2)]);
        let by_distance = self.operator("attention.by_distance", "einsum", LayerKind::MatrixProduct, vec![placed, distance], far)?;
        let shifted = LayerKind::Reshape(Reshaping::Copy);
        let shifted = self.operator("attention.shifted", "index_select", shifted, vec![by_distance], scores.clone())?;
        let sum = self.operator("attention.sum", "add", LayerKind::Add, vec![by_content, shifted], scores.clone())?;
        let scaled = self.operator("attention.scaled", "mul", LayerKind::Add, vec![sum], scores.clone())?;
        let kept = self.probabilities("attention", scaled, &scores)?;
        let mixed = self.operator("attention.mix", "einsum", LayerKind::MatrixProduct, vec![kept, value], wide)?;
        let output = self.sequence(config.hidden);
        product(self, "attention.output", mixed, &output, vec![matrix])
    }
}
