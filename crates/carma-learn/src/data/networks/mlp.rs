//! Random networks of fully connected layers.

use carma_estimate::model::Model;

use super::activation;
use super::build::Builder;
use crate::data::Fields;
use carma_estimate::learned::ActivationFunction;

/// Widths of the hidden layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MlpShape {
    /// All as wide as the input.
    Uniform,
    /// Halved from layer to layer, down to the output's width.
    Pyramid,
    /// In even steps from the input's width to the output's.
    Gradual,
    /// As a pyramid, with one layer more.
    Bottleneck,
}

impl MlpShape {
    /// All shapes.
    pub const ALL: [Self; 4] = [Self::Uniform, Self::Pyramid, Self::Gradual, Self::Bottleneck];

    /// Its name in file names.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Pyramid => "pyramid",
            Self::Gradual => "gradual",
            Self::Bottleneck => "bottleneck",
        }
    }
}

/// A random network of fully connected layers.
#[derive(Debug, Clone, PartialEq)]
pub struct Mlp {
    /// Features of a sample.
    pub input: u64,
    /// Classes.
    pub output: u64,
    /// Number of hidden layers in the name.
    pub depth: u64,
    /// Shape of the network.
    pub shape: MlpShape,
    /// Activation function between layers.
    pub activation: ActivationFunction,
    /// Dropout after each, if any.
    pub dropout: Option<f64>,
    /// Whether hidden layers have batch normalisation.
    pub batch_norm: bool,
}

impl Mlp {
    const KEYS: [&str; 8] = ["input", "output", "depth", "arch", "batch", "act", "dropout", "batchnorm"];

    /// Parses a network and its batch size from a file name.
    pub(in crate::data) fn named(name: &str) -> Result<(Self, u64), String> {
        let fields = Fields::of(name, &Self::KEYS);
        let word = fields.text("arch")?;
        let shape =
            MlpShape::ALL.into_iter().find(|shape| shape.word() == word).ok_or_else(|| format!("{word:?} is no shape of an MLP"))?;
        let rate = fields.share("dropout")?;
        let network = Self {
            input: fields.count("input", 1_000_000)?,
            output: fields.count("output", 1_000_000)?,
            depth: fields.count("depth", 2000)?,
            shape,
            activation: activation::named(fields.text("act")?)?,
            dropout: fields.flag("dropout")?.then_some(rate),
            batch_norm: fields.flag("batchnorm")?,
        };
        Ok((network, fields.count("batch", 100_000_000)?))
    }

    /// The file name of the network.
    pub fn file_name(&self, batch: u64) -> String {
        let Self { input, output, depth, .. } = self;
        let (rate, dropped) = (self.dropout.unwrap_or(0.0), if self.dropout.is_some() { "True" } else { "False" });
        let normalised = if self.batch_norm { "True" } else { "False" };
        let (arch, act) = (self.shape.word(), activation::word(self.activation));
        format!(
            "input:{input}_output:{output}_depth:{depth}_arch:{arch}_batch:{batch}_act:{act}_dropout:{rate}_dropout:{dropped}_batchnorm:{normalised}.out"
        )
    }

    /// Widths of the hidden layers.
    pub fn widths(&self) -> Vec<u64> {
        let halved = |layers: u64| {
            let mut width = self.input;
            (0..layers)
                .map(|_| {
                    width = (width / 2).max(self.output);
                    width
                })
                .collect()
        };
        match self.shape {
            MlpShape::Uniform => vec![self.input; self.depth as usize],
            MlpShape::Pyramid => halved(self.depth),
            MlpShape::Bottleneck => halved(self.depth + 1),
            MlpShape::Gradual => {
                let (input, output, depth) = (self.input.cast_signed(), self.output.cast_signed(), self.depth.cast_signed());
                // Rounded down, as in Python's integer division.
                let step = (input - output).div_euclid(depth);
                (1..=depth).map(|layer| (input - layer * step).max(output).cast_unsigned()).collect()
            }
        }
    }

    /// Builds its layers: linear, normalisation, activation, dropout; and a softmax, or a sigmoid for one class.
    pub fn build(&self) -> Model {
        let mut build = Builder::new(&[self.input], None);
        for width in self.widths() {
            build.linear(width);
            if self.batch_norm {
                build.batch_norm("BatchNorm1d");
            }
            build.activation(self.activation);
            if let Some(rate) = self.dropout {
                build.dropout(rate);
            }
        }
        build.linear(self.output);
        build.same(if self.output == 1 { "Sigmoid" } else { "Softmax" }, &[]);
        build.finish()
    }
}
