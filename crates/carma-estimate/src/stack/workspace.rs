//! Workspace that cuDNN requests during a convolution.
//!
//! On GPUs with tensor cores the library copies its operands into its own layout, or transforms them to tiles. In both cases the
//! workspace is a multiple of the call's input and output. The algorithm depends on the filter and the width of the layer, so the
//! multiples are a small table, fitted to measured networks.

use serde::{Deserialize, Serialize};

use super::{Convolution, Direction, MIB};

/// Channels are padded to a multiple of this in the library's own layout.
const CHANNEL_ALIGNMENT: u64 = 8;

/// Kinds of filters that the library treats the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filter {
    /// 1x1: a matrix product.
    Point,
    /// Up to 3x3.
    Small,
    /// Larger.
    Large,
    /// Grouped channels, including depthwise.
    Grouped,
}

/// Multiples for one kind of filters up to a width.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// The filters.
    pub filter: Filter,
    /// Upper limit of width (geometric mean of input and output channels); absent: no limit.
    pub below: Option<f64>,
    /// Multiples of the input's and the output's bytes in the forward pass.
    pub forward: [f64; 2],
    /// The same for the gradient of the input.
    pub data: [f64; 2],
    /// The same for the gradient of the filter.
    pub weight: [f64; 2],
    /// Gradients of the filter that are first computed for each sample, then summed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_sums: Option<SampleSums>,
}

/// Where the gradient of a filter is computed for each sample and then summed: small images and large filters, which give a kernel
/// too little to do otherwise. The workspace has one filter for each sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleSums {
    /// Pixels of an output image, at most.
    pub pixels: u64,
    /// MiB of the filter, at least.
    pub filter: f64,
    /// MiB of workspace, at most: the library chooses another kernel above.
    pub most: f64,
}

impl SampleSums {
    fn workspace(self, call: &Convolution) -> u64 {
        let [_, height, width] = call.output;
        let filter = call.filter_bytes();
        let all = filter.saturating_mul(call.batch);
        let fits = height.saturating_mul(width) <= self.pixels && filter as f64 >= self.filter * MIB && all as f64 <= self.most * MIB;
        if fits { all } else { 0 }
    }
}

/// Workspace of convolutions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConvolutionWorkspace {
    bands: Vec<Band>,
}

impl ConvolutionWorkspace {
    /// Bytes of workspace of one call.
    pub fn workspace(&self, call: &Convolution) -> u64 {
        let filter = match call.kernel {
            _ if call.groups > 1 => Filter::Grouped,
            [1, 1] => Filter::Point,
            [rows, columns] if rows <= 3 && columns <= 3 => Filter::Small,
            _ => Filter::Large,
        };
        let width = (call.input[0] as f64 * call.output[0] as f64).sqrt();
        let Some(band) = self.bands.iter().find(|band| band.filter == filter && band.below.is_none_or(|below| width < below)) else {
            return 0;
        };
        let [input, output] = match call.direction {
            Direction::Forward => band.forward,
            Direction::Data => band.data,
            Direction::Weight => band.weight,
        };
        let sums = band.sample_sums.filter(|_| call.direction == Direction::Weight).map_or(0, |sums| sums.workspace(call));
        if input == 0.0 && output == 0.0 {
            return sums;
        }
        let mut padded = *call;
        for channels in [&mut padded.input[0], &mut padded.output[0]] {
            *channels = channels.saturating_add(CHANNEL_ALIGNMENT - 1) / CHANNEL_ALIGNMENT * CHANNEL_ALIGNMENT;
        }
        let copies = padded.input_bytes() as f64 * input + padded.output_bytes() as f64 * output;
        (copies as u64).saturating_add(padded.filter_bytes()).max(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ElementType;
    use crate::stack::Stack;

    /// The last convolution of `MobileNetV2` on images of 86 pixels: 320 to 1280 channels, a filter of 1.6 MiB.
    fn last(batch: u64, direction: Direction) -> Convolution {
        Convolution {
            direction,
            batch,
            input: [320, 3, 3],
            output: [1280, 3, 3],
            kernel: [1, 1],
            stride: [1, 1],
            groups: 1,
            element: ElementType::Float32,
            transposed: false,
        }
    }

    #[test]
    fn gradients_are_summed_over_samples_on_small_images_up_to_a_limit() {
        let workspace = Stack::named("pytorch").and_then(|stack| stack.plain_convolutions.clone()).unwrap();
        let filter = 320 * 1280 * 4;
        assert_eq!(workspace.workspace(&last(251, Direction::Weight)), 251 * filter);
        assert_eq!(workspace.workspace(&last(500, Direction::Weight)), 0, "more than 512 MiB");
        assert_eq!(workspace.workspace(&last(251, Direction::Data)), 0);
        let larger = Convolution { output: [1280, 4, 4], ..last(251, Direction::Weight) };
        assert_eq!(workspace.workspace(&larger), 0, "more than nine pixels");
    }
}
