//! Workspace that cuDNN requests during a convolution.
//!
//! On GPUs with tensor cores the library copies its operands into its own layout, or transforms them to tiles. In both cases the
//! workspace is a multiple of the call's input and output. The algorithm depends on the filter and the width of the layer, so the
//! multiples are a small table, fitted to measured networks.

use serde::{Deserialize, Serialize};

use super::{Convolution, Direction};

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
        if input == 0.0 && output == 0.0 {
            return 0;
        }
        let mut padded = *call;
        for channels in [&mut padded.input[0], &mut padded.output[0]] {
            *channels = channels.saturating_add(CHANNEL_ALIGNMENT - 1) / CHANNEL_ALIGNMENT * CHANNEL_ALIGNMENT;
        }
        let copies = padded.input_bytes() as f64 * input + padded.output_bytes() as f64 * output;
        (copies as u64).saturating_add(padded.filter_bytes())
    }
}
