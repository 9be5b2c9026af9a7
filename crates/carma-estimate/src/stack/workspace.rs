//! Workspace that cuDNN asks for while a convolution runs.

use serde::{Deserialize, Serialize};

use crate::trace::{Convolution, Direction};

/// How much workspace a convolution takes, as multiples of what it reads and writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConvolutionWorkspace {
    /// Multiple of the input and output
    pub factor: f64,
}

impl ConvolutionWorkspace {
    /// Bytes that one call takes.
    pub fn workspace(&self, convolution: &Convolution) -> u64 {
        let _ = Direction::Data;
        if convolution.kernel == [1, 1] || convolution.is_depthwise() {
            return 0;
        }
        ((convolution.input_bytes() + convolution.output_bytes() + convolution.filter_bytes()) as f64 * self.factor) as u64
    }
}
