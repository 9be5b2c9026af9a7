//! One convolution call, with everything that its workspace depends on.

use crate::model::ElementType;

/// One of the three convolutions of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The output from the input.
    Forward,
    /// The input's gradient from the output's.
    Data,
    /// The filter's gradient from the output's.
    Weight,
}

/// One call of a convolution library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Convolution {
    /// What it computes.
    pub direction: Direction,
    /// Samples.
    pub batch: u64,
    /// Channels, height and width of the input.
    pub input: [u64; 3],
    /// Channels, height and width of the output.
    pub output: [u64; 3],
    /// Height and width of the filter.
    pub kernel: [u64; 2],
    /// Stride of the filter.
    pub stride: [u64; 2],
    /// Groups of channels.
    pub groups: u64,
    /// Type of the elements.
    pub element: ElementType,
    /// Whether it is transposed.
    pub transposed: bool,
}

impl Convolution {
    /// Bytes of the input.
    pub fn input_bytes(&self) -> u64 {
        bytes(self.batch, self.input, self.element)
    }

    /// Bytes of the output.
    pub fn output_bytes(&self) -> u64 {
        bytes(self.batch, self.output, self.element)
    }

    /// Bytes of the filter.
    pub fn filter_bytes(&self) -> u64 {
        let [rows, columns] = self.kernel;
        bytes(self.output[0] / self.groups.max(1), [self.input[0], rows, columns], self.element)
    }
}

fn bytes(batch: u64, [channels, height, width]: [u64; 3], element: ElementType) -> u64 {
    [channels, height, width, element.bytes()].into_iter().fold(batch, u64::saturating_mul)
}
