//! One kernel: its work, how much of the GPU it fills, and the roofline over it.

use super::Device;

/// Elements of a result that one thread block of a matrix product makes along each side: the smallest tile in common use, which libraries
/// choose where larger ones would leave multiprocessors idle.
const TILE: f64 = 64.0;
/// Terms that a block sums up at least where a product is divided along its depth.
const SLICE: f64 = 512.0;
/// Elements of a block of an elementwise kernel: 128 threads, four elements each.
const ELEMENTS: f64 = 512.0;

/// Which arithmetic units a kernel keeps busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pipe {
    /// Elementwise operators, reductions, copies: no matrix product.
    Elementwise,
    /// Matrix products in 4-byte floats without tensor cores.
    Plain,
    /// Matrix products in shortened floats on tensor cores.
    Tensor,
    /// Matrix products in 2-byte floats on tensor cores.
    Half,
}

/// What a kernel's time is decided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Arithmetic.
    Compute,
    /// Traffic to and from memory.
    Memory,
    /// The cost of any kernel.
    Launch,
}

/// One kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kernel {
    /// Floating point operations.
    pub flops: f64,
    /// Bytes read and written at least.
    pub bytes: f64,
    /// Thread blocks.
    pub blocks: f64,
    /// Units that it keeps busy.
    pub pipe: Pipe,
}

impl Kernel {
    /// An elementwise kernel over so many elements.
    pub fn elementwise(elements: f64, flops_each: f64, bytes: f64) -> Self {
        Self { flops: elements * flops_each, bytes, blocks: (elements / ELEMENTS).ceil().max(1.0), pipe: Pipe::Elementwise }
    }

    /// A reduction to so many results, each by a block or, where it pays, by several.
    pub fn reduction(elements: f64, results: f64, flops_each: f64, bytes: f64) -> Self {
        let blocks = results.max(elements / (16.0 * ELEMENTS)).ceil().max(1.0);
        Self { blocks, ..Self::elementwise(elements, flops_each, bytes) }
    }

    /// `count` products of a `rows` x `depth` and a `depth` x `columns` matrix that move `bytes`.
    pub fn product([rows, depth, columns]: [f64; 3], count: f64, bytes: f64, pipe: Pipe) -> Self {
        let blocks = (rows / TILE).ceil().max(1.0) * (columns / TILE).ceil().max(1.0) * count;
        Self { flops: 2.0 * rows * depth * columns * count, bytes, blocks, pipe }
    }

    /// The same with its depth divided over blocks until they fill the device, as libraries do for gradients of weights.
    #[must_use]
    pub fn divided(mut self, depth: f64, device: &Device) -> Self {
        let slices = (device.multiprocessors / self.blocks).min(depth / SLICE).max(1.0);
        self.blocks *= slices.floor();
        self
    }

    /// Seconds by the roofline, and what decides them.
    pub fn roofline(&self, device: &Device) -> (f64, Bound) {
        let (compute, memory) = (self.flops / device.peak(self.pipe), self.bytes / device.bandwidth);
        if device.launch >= compute.max(memory) {
            (device.launch, Bound::Launch)
        } else if compute > memory {
            (compute, Bound::Compute)
        } else {
            (memory, Bound::Memory)
        }
    }

    /// Rounds of thread blocks, one on each multiprocessor.
    pub fn waves(&self, device: &Device) -> f64 {
        self.blocks / device.multiprocessors
    }

    /// Share of multiprocessors with a block, over all rounds: the last may be half empty.
    pub fn fill(&self, device: &Device) -> f64 {
        let waves = self.waves(device);
        waves / waves.ceil().max(1.0)
    }

    /// Seconds on the device when multiprocessors without a block do nothing; a few of them are enough to saturate the memory.
    pub fn device_seconds(&self, device: &Device) -> f64 {
        let filled = self.waves(device).clamp(1.0 / device.multiprocessors, 1.0);
        let compute = self.flops / (device.peak(self.pipe) * filled);
        let memory = self.bytes / (device.bandwidth * (2.0 * filled).min(1.0));
        // A kernel that does next to nothing ends sooner than the next can be launched.
        compute.max(memory).max(0.4 * device.launch)
    }
}

impl Device {
    fn peak(&self, pipe: Pipe) -> f64 {
        match pipe {
            Pipe::Elementwise | Pipe::Plain => self.plain,
            Pipe::Tensor => self.tensor,
            Pipe::Half => self.half,
        }
    }
}
