//! Random Transformer encoders.

use carma_estimate::model::{ElementType, LayerKind, Model, Reshaping};

use super::build::Builder;
use crate::data::Fields;

/// A random encoder: `nn.TransformerEncoder` with learned positions and a classifier over the mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Transformer {
    /// Size of the vocabulary.
    pub vocabulary: u64,
    /// Tokens in a sample.
    pub sequence: u64,
    /// Width of the residual stream.
    pub embedding: u64,
    /// Encoder layers.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Width inside the feed-forward blocks.
    pub feed_forward: u64,
    /// Classes.
    pub classes: u64,
    /// Dropout probability.
    pub dropout: f64,
}

impl Transformer {
    const KEYS: [&str; 10] = [
        "num_classes",
        "embedding_size",
        "num_layers",
        "num_heads",
        "ff_hidden_size",
        "dropout_rate",
        "seq_length",
        "input_size",
        "num_samples",
        "batch_size",
    ];

    /// Parses a network and its batch size from a file name.
    pub(in crate::data) fn named(name: &str) -> Result<(Self, u64), String> {
        let fields = Fields::of(name, &Self::KEYS);
        let network = Self {
            vocabulary: fields.count("input_size", 1_000_000_000)?,
            sequence: fields.count("seq_length", 1_000_000)?,
            embedding: fields.count("embedding_size", 1_000_000)?,
            layers: fields.count("num_layers", 500)?,
            heads: fields.count("num_heads", 10_000)?,
            feed_forward: fields.count("ff_hidden_size", 1_000_000)?,
            classes: fields.count("num_classes", 1_000_000)?,
            dropout: fields.share("dropout_rate")?,
        };
        Ok((network, fields.count("batch_size", 100_000_000)?))
    }

    /// The file name of the network.
    pub fn file_name(&self, batch: u64) -> String {
        let Self { vocabulary, sequence, embedding, layers, heads, feed_forward, classes, dropout } = self;
        format!(
            "num_classes:{classes}_embedding_size:{embedding}_num_layers:{layers}_num_heads:{heads}_ff_hidden_size:{feed_forward}_\
             dropout_rate:{dropout}_seq_length:{sequence}_input_size:{vocabulary}_num_samples:1000_batch_size:{batch}.out"
        )
    }

    /// Parameters that the published table omits: positions, the projections of query, key and value, and normalisations.
    pub fn unlisted_parameters(&self) -> u64 {
        let (sequence, embedding) = (self.sequence, self.embedding);
        sequence * embedding + self.layers * (3 * embedding * embedding + 7 * embedding)
    }

    /// Builds its layers.
    pub fn build(&self) -> Model {
        let (sequence, width) = (self.sequence, self.embedding);
        let stream = [sequence, width];
        let mut build = Builder::new(&[sequence], Some(ElementType::Int64));
        build.then("Embedding", &stream, &[self.vocabulary * width]);
        build.layer("add", LayerKind::Add, vec![build.last], &stream, &[sequence * width]);
        let norm = [width, width];
        for _ in 0..self.layers {
            let input = build.last;
            build.linear(3 * width);
            // One copy separates query, key and value; another one joins the heads.
            build.layer("contiguous", LayerKind::Reshape(Reshaping::Copy), vec![build.last], &[sequence, 3 * width], &[]);
            let attention = LayerKind::Attention { heads: self.heads, dropout: self.dropout };
            build.layer("scaled_dot_product_attention", attention, vec![build.last], &stream, &[]);
            build.layer("contiguous", LayerKind::Reshape(Reshaping::Copy), vec![build.last], &stream, &[]);
            build.linear(width);
            build.dropout(self.dropout);
            build.add(input, build.last);
            build.same("LayerNorm", &norm);
            let input = build.last;
            build.linear(self.feed_forward);
            build.same("ReLU", &[]);
            build.dropout(self.dropout);
            build.linear(width);
            build.dropout(self.dropout);
            build.add(input, build.last);
            build.same("LayerNorm", &norm);
        }
        build.then("mean", &[width], &[]);
        build.linear(self.classes);
        build.finish()
    }
}
