//! Random convolutional networks.

use carma_estimate::model::{LayerKind, Model, Source};

use super::activation;
use super::build::Builder;
use crate::data::Fields;
use carma_estimate::learned::ActivationFunction;

/// Maximum width of a block.
const WIDEST: u64 = 2048;

/// Widths of the blocks, and their connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CnnShape {
    /// All equal.
    Uniform,
    /// Growing by a factor, up to the maximum width.
    Pyramid,
    /// Growing by a factor, half way (on a logarithmic scale) to the maximum.
    Gradual,
    /// Wide, narrow, then growing.
    Bottleneck,
    /// Growing, then shrinking.
    Hourglass,
    /// Units of two blocks with a shortcut around them.
    Residual,
    /// Each layer reads all layers before it in its group.
    Dense {
        /// Transitions that halve channels and size; after the first group and, in some of the largest, after the sixth.
        transitions: u64,
    },
}

impl CnnShape {
    /// All shapes; the dense one with its usual transition.
    pub const ALL: [Self; 7] =
        [Self::Uniform, Self::Pyramid, Self::Gradual, Self::Bottleneck, Self::Hourglass, Self::Residual, Self::Dense { transitions: 1 }];

    /// Its name in file names.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Pyramid => "pyramid",
            Self::Gradual => "gradual",
            Self::Bottleneck => "bottleneck",
            Self::Hourglass => "hourglass",
            Self::Residual => "residual",
            Self::Dense { .. } => "dense",
        }
    }
}

/// A random convolutional network.
#[derive(Debug, Clone, PartialEq)]
pub struct Cnn {
    /// Channels of an image.
    pub channels: u64,
    /// Height and width of an image.
    pub size: u64,
    /// Classes.
    pub classes: u64,
    /// Number of blocks in the name; residual and dense networks have fewer or more convolutions.
    pub depth: u64,
    /// Shape of the network.
    pub shape: CnnShape,
    /// Initial width.
    pub filters: u64,
    /// Activation function after each convolution.
    pub activation: ActivationFunction,
    /// Dropout after each, if any.
    pub dropout: Option<f64>,
    /// Whether blocks have batch normalisation.
    pub batch_norm: bool,
}

impl Cnn {
    const KEYS: [&str; 10] =
        ["input_channels", "num_classes", "depth", "arch", "base_filters", "batch", "input_size", "act", "dropout", "batchnorm"];

    /// Parses a network and its batch size from a file name and its number of convolutions.
    pub(in crate::data) fn named(name: &str, convolutions: u64) -> Result<(Self, u64), String> {
        let fields = Fields::of(name, &Self::KEYS);
        let word = fields.text("arch")?;
        let depth = fields.count("depth", 2000)?;
        let shape = match CnnShape::ALL.into_iter().find(|shape| shape.word() == word) {
            Some(CnnShape::Dense { .. }) => CnnShape::Dense { transitions: convolutions.saturating_sub(depth / 4 * 4) },
            Some(shape) => shape,
            None => return Err(format!("{word:?} is no shape of a CNN")),
        };
        let rate = fields.share("dropout")?;
        let network = Self {
            channels: fields.count("input_channels", 100_000)?,
            size: fields.count("input_size", 10_000)?,
            classes: fields.count("num_classes", 1_000_000)?,
            depth,
            shape,
            filters: fields.count("base_filters", 100_000)?,
            activation: activation::named(fields.text("act")?)?,
            dropout: fields.flag("dropout")?.then_some(rate),
            batch_norm: fields.flag("batchnorm")?,
        };
        Ok((network, fields.count("batch", 100_000_000)?))
    }

    /// The file name of the network.
    pub fn file_name(&self, batch: u64) -> String {
        let Self { channels, size, classes, depth, filters, .. } = self;
        let (rate, dropped) = (self.dropout.unwrap_or(0.0), if self.dropout.is_some() { "True" } else { "False" });
        let normalised = if self.batch_norm { "True" } else { "False" };
        let (arch, act) = (self.shape.word(), activation::word(self.activation));
        format!(
            "input_channels:{channels}_num_classes:{classes}_depth:{depth}_arch:{arch}_base_filters:{filters}_batch:{batch}_\
             input_size:{size}_act:{act}_dropout:{rate}_dropout:{dropped}_batchnorm:{normalised}.out"
        )
    }

    /// Widths of the blocks (of the units, in a residual network).
    pub fn widths(&self) -> Vec<u64> {
        let (base, depth) = (self.filters as f64, self.depth as f64);
        let range = WIDEST as f64 / base;
        // Computed as a power of the factor, not of the range: the last digit affects the truncation.
        let grown = |steps: f64, exponent: u64| base * range.powf(1.0 / steps).powf(exponent as f64);
        let rising = self.depth / 2;
        let width = |block: u64| match self.shape {
            CnnShape::Uniform | CnnShape::Dense { .. } => base,
            CnnShape::Pyramid | CnnShape::Residual => grown(depth, block),
            CnnShape::Gradual => grown(2.0 * depth, block),
            CnnShape::Bottleneck if block == 0 => 2.0 * base,
            CnnShape::Bottleneck if self.depth <= 2 => base * 2.0_f64.powf((block - 1) as f64),
            CnnShape::Bottleneck => grown(depth - 1.0, block - 1),
            CnnShape::Hourglass if block < rising => grown(rising as f64, block),
            CnnShape::Hourglass => grown((self.depth - rising) as f64, self.depth - block - 1).max(base),
        };
        (0..self.depth).map(|block| (width(block) as u64).clamp(1, WIDEST)).collect()
    }

    /// Builds its layers.
    pub fn build(&self) -> Model {
        let mut build = Builder::new(&[self.channels, self.size, self.size], None);
        match self.shape {
            CnnShape::Residual => self.residual(&mut build),
            CnnShape::Dense { transitions } => self.dense(&mut build, transitions),
            _ => self.widths().into_iter().for_each(|width| self.block(&mut build, width, 1)),
        }
        let channels = build.dimensions().first().copied().unwrap_or(1);
        build.then("AdaptiveAvgPool2d", &[channels, 1, 1], &[]);
        build.then("Flatten", &[channels], &[]);
        build.linear(self.classes);
        if self.classes > 1 {
            build.same("Softmax", &[]);
        }
        build.finish()
    }

    fn block(&self, build: &mut Builder, width: u64, stride: u64) {
        build.convolution(width, 3, stride);
        self.normalise(build);
        build.activation(self.activation);
        if let Some(rate) = self.dropout {
            build.dropout(rate);
        }
    }

    fn normalise(&self, build: &mut Builder) {
        if self.batch_norm {
            build.batch_norm("BatchNorm2d");
        }
    }

    fn residual(&self, build: &mut Builder) {
        let widths = self.widths();
        // Strides depend on a size that is halved rounding down, although convolutions round up.
        let mut size = self.size;
        for (unit, &width) in widths.iter().enumerate().take(self.depth as usize / 2) {
            let stride = if unit % 2 == 1 && size > 7 { 2 } else { 1 };
            let input = build.last;
            let mut shortcut = input;
            if stride != 1 || build.dimensions().first() != Some(&width) {
                build.convolution(width, 1, stride);
                self.normalise(build);
                shortcut = build.last;
            }
            build.last = input;
            self.block(build, width, stride);
            self.block(build, width, 1);
            build.add(build.last, shortcut);
            if stride == 2 {
                size /= 2;
                if size <= 7 {
                    break;
                }
            }
        }
    }

    fn dense(&self, build: &mut Builder, transitions: u64) {
        const GROWTH: u64 = 32;
        for group in 0..self.depth / 4 {
            for _ in 0..4 {
                let before: Source = build.last;
                let [channels, size, _] = *build.dimensions() else { return };
                self.block(build, GROWTH, 1);
                build.layer("cat", LayerKind::Concatenate, vec![before, build.last], &[channels + GROWTH, size, size], &[]);
            }
            if group % 5 == 0 && group / 5 < transitions {
                let [channels, size, _] = *build.dimensions() else { return };
                build.convolution(channels / 2, 1, 1);
                self.normalise(build);
                build.activation(ActivationFunction::ReLU);
                build.then("AvgPool2d", &[channels / 2, size / 2, size / 2], &[]);
            }
        }
    }
}
