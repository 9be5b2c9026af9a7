//! One kernel: its work, how much of the GPU it fills, and its roofline.

use super::Device;

/// Tile size of a matrix product per thread block and side: the smallest in common use. Libraries choose it if larger tiles would leave
/// multiprocessors idle.
const TILE: f64 = 64.0;
/// Minimum terms that a block sums up if a product is split along its depth.
const SLICE: f64 = 512.0;
/// Elements of a block of an elementwise kernel: 128 threads, four elements each.
const ELEMENTS: f64 = 512.0;

/// Arithmetic units that a kernel uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pipe {
    /// Elementwise operators, reductions, copies: no matrix product.
    Elementwise,
    /// Matrix products in 4-byte floats without tensor cores.
    Plain,
    /// Matrix products in TF32 on tensor cores.
    Tensor,
    /// Matrix products in 2-byte floats on tensor cores.
    Half,
}

/// What limits a kernel's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Arithmetic.
    Compute,
    /// Memory traffic.
    Memory,
    /// Launch overhead.
    Launch,
}

/// One kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kernel {
    /// Floating point operations.
    pub flops: f64,
    /// Minimum bytes read and written.
    pub bytes: f64,
    /// Thread blocks.
    pub blocks: f64,
    /// Units that it uses.
    pub pipe: Pipe,
}

impl Kernel {
    /// An elementwise kernel over this many elements.
    pub fn elementwise(elements: f64, flops_each: f64, bytes: f64) -> Self {
        Self { flops: elements * flops_each, bytes, blocks: (elements / ELEMENTS).ceil().max(1.0), pipe: Pipe::Elementwise }
    }

    /// A reduction to this many results, with one block per result or, if useful, several.
    pub fn reduction(elements: f64, results: f64, flops_each: f64, bytes: f64) -> Self {
        let blocks = results.max(elements / (16.0 * ELEMENTS)).ceil().max(1.0);
        Self { blocks, ..Self::elementwise(elements, flops_each, bytes) }
    }

    /// `count` products of a `rows` x `depth` and a `depth` x `columns` matrix with `bytes` of traffic.
    pub fn product([rows, depth, columns]: [f64; 3], count: f64, bytes: f64, pipe: Pipe) -> Self {
        let blocks = (rows / TILE).ceil().max(1.0) * (columns / TILE).ceil().max(1.0) * count;
        Self { flops: 2.0 * rows * depth * columns * count, bytes, blocks, pipe }
    }

    /// Splits the depth over blocks until they fill the device, as libraries do for weight gradients.
    #[must_use]
    pub fn divided(mut self, depth: f64, device: &Device) -> Self {
        let slices = (device.multiprocessors / self.blocks).min(depth / SLICE).max(1.0);
        self.blocks *= slices.floor();
        self
    }

    /// Seconds by the roofline, and what limits them.
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

    /// Waves of thread blocks, one block per multiprocessor.
    pub fn waves(&self, device: &Device) -> f64 {
        self.blocks / device.multiprocessors
    }

    /// Share of multiprocessors with a block, over all waves: the last may be partly empty.
    pub fn fill(&self, device: &Device) -> f64 {
        let waves = self.waves(device);
        waves / waves.ceil().max(1.0)
    }

    /// Seconds on the device if multiprocessors without a block are idle; a few of them saturate the memory.
    pub fn device_seconds(&self, device: &Device) -> f64 {
        let filled = self.waves(device).clamp(1.0 / device.multiprocessors, 1.0);
        let compute = self.flops / (device.peak(self.pipe) * filled);
        let memory = self.bytes / (device.bandwidth * (2.0 * filled).min(1.0));
        // An almost empty kernel ends before the next one can be launched.
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
