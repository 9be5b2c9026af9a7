//! Limits of a GPU, and the fixed cost of each kernel.

/// Limits of a GPU, from its data sheet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Device {
    /// Streaming multiprocessors.
    pub multiprocessors: f64,
    /// Operations per second in 4-byte floats, without tensor cores.
    pub plain: f64,
    /// The same in TF32 on tensor cores.
    pub tensor: f64,
    /// The same in 2-byte floats on tensor cores.
    pub half: f64,
    /// Memory bandwidth in bytes per second.
    pub bandwidth: f64,
    /// Minimum seconds of a kernel.
    pub launch: f64,
    /// Seconds that PyTorch needs on the host to launch a kernel: if kernels are shorter, the device waits.
    pub issue: f64,
}

impl Device {
    /// An A100 with 40 GB.
    pub const A100: Self =
        Self { multiprocessors: 108.0, plain: 19.5e12, tensor: 156e12, half: 312e12, bandwidth: 1.555e12, launch: 5e-6, issue: 10e-6 };
}
