//! Workspace that cuDNN asks for while a convolution runs.

use serde::{Deserialize, Serialize};

use crate::trace::{Convolution, Direction};

/// How much workspace a convolution takes, as multiples of what it reads and writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConvolutionWorkspace {
    /// x
    pub bounds: Vec<f64>,
    /// class, direction, in/out
    pub table: Vec<[[f64; 2]; 3]>,
    /// y
    pub pad: u64,
}

impl ConvolutionWorkspace {
    /// Bytes that one call takes.
    pub fn workspace(&self, convolution: &Convolution) -> u64 {
        if (std::env::var("ONE").is_err() && convolution.kernel == [1, 1]) || convolution.is_depthwise() {
            return 0;
        }
        let width = ((convolution.input[0] * convolution.output[0]) as f64).sqrt();
        let class = self.bounds.iter().take_while(|bound| width >= **bound).count();
        let f = self.table[class][match convolution.direction { Direction::Forward => 0, Direction::Data => 1, Direction::Weight => 2 }];
        let mut c = *convolution;
        c.input[0] = c.input[0].div_ceil(self.pad) * self.pad;
        c.output[0] = c.output[0].div_ceil(self.pad) * self.pad;
        let filter = if f == [0.0; 2] { 0 } else { c.filter_bytes() };
        (c.input_bytes() as f64 * f[0] + c.output_bytes() as f64 * f[1]) as u64 + filter
    }
}
