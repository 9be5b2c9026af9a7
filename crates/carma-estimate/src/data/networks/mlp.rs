//! Random networks of fully connected layers.

use crate::model::Model;

use super::ActivationFunction;
use super::build::Builder;
use crate::data::Fields;

/// How the widths of the hidden layers run.
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
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Uniform, Self::Pyramid, Self::Gradual, Self::Bottleneck];

    /// As file names write it.
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
    /// Hidden layers, as the name states them.
    pub depth: u64,
    /// How their widths run.
    pub shape: MlpShape,
    /// The function between layers.
    pub activation: ActivationFunction,
    /// Share of elements dropped after each, if any.
    pub dropout: Option<f64>,
    /// Whether hidden layers are normalised.
    pub batch_norm: bool,
}

impl Mlp {
    const KEYS: [&str; 8] = ["input", "output", "depth", "arch", "batch", "act", "dropout", "batchnorm"];

    /// The network that a file name describes, and its batch.
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
            activation: ActivationFunction::named(fields.text("act")?)?,
            dropout: fields.flag("dropout")?.then_some(rate),
            batch_norm: fields.flag("batchnorm")?,
        };
        Ok((network, fields.count("batch", 100_000_000)?))
    }

    /// The file name that describes it.
    pub fn file_name(&self, batch: u64) -> String {
        let Self { input, output, depth, .. } = self;
        let (rate, dropped) = (self.dropout.unwrap_or(0.0), if self.dropout.is_some() { "True" } else { "False" });
        let normalised = if self.batch_norm { "True" } else { "False" };
        let (arch, act) = (self.shape.word(), self.activation.word());
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
                // Rounded towards minus infinity, as Python divides.
                let step = (input - output).div_euclid(depth);
                (1..=depth).map(|layer| (input - layer * step).max(output).cast_unsigned()).collect()
            }
        }
    }

    /// Its layers: linear, normalisation, activation, dropout; and a softmax, or a sigmoid for one class.
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
