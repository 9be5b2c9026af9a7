//! Features of an iteration's work on a GPU.

use super::work::{self, Bound, Device, Kernel, LayerKernels, Pipe};
use crate::model::{LayerKind, Model};
use crate::training::{Parallel, Training};

/// Work of one training iteration on an A100.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Features {
    /// Samples per GPU.
    pub batch: f64,
    /// Elements of the model's inputs, which are loaded and copied to the device.
    pub inputs: f64,
    /// Trained parameters.
    pub parameters: f64,
    /// Floating point operations of the forward pass.
    pub forward_flops: f64,
    /// Floating point operations of the backward pass.
    pub backward_flops: f64,
    /// All operations of an iteration, including loss and optimizer.
    pub flops: f64,
    /// Bytes of memory traffic in an iteration.
    pub bytes: f64,
    /// Operations per byte.
    pub intensity: f64,
    /// Kernels of an iteration.
    pub kernels: f64,
    /// Share of kernels that are too small to fill every multiprocessor with a thread block.
    pub unfilled_kernels: f64,
    /// Share of layers with only such kernels.
    pub unfilled_layers: f64,
    /// Roofline time of an iteration in seconds: each kernel takes the maximum of its compute, memory and launch time.
    pub seconds: f64,
    /// Share of it in launch-bound kernels.
    pub launch_bound: f64,
    /// Share of it in memory-bound kernels.
    pub memory_bound: f64,
    /// Share of it in compute-bound kernels.
    pub compute_bound: f64,
    /// Seconds on the device, including idle multiprocessors.
    pub device_seconds: f64,
    /// Seconds on the host to launch the kernels.
    pub issue_seconds: f64,
    /// Share of multiprocessors with a block while a kernel runs.
    pub fill: f64,
    /// Share of device time in matrix products: they have few but busy warps.
    pub products: f64,
    /// Share of device time in matrix products on tensor cores.
    pub tensor: f64,
    /// Share of time that memory is busy, if the device never waits for the host.
    pub memory_busy: f64,
    /// Whether images are loaded.
    pub images: f64,
}

/// Features of a model in training, on its first GPU.
///
/// ```
/// use carma_estimate::{parse, training::Training, utilisation};
/// let summary = "Layer (type)  Output Shape  Param #\nLinear-1  [-1, 10]  1,010\n";
/// let training = Training { batch: 32, ..Training::default() };
/// let model = parse::read(summary.as_bytes(), None, &training).unwrap().model;
/// assert!((utilisation::features(&model, &training).forward_flops - 2.0 * 32.0 * 100.0 * 10.0).abs() < 1.0);
/// ```
pub fn features(model: &Model, training: &Training) -> Features {
    let device = Device::A100;
    let batch = samples(training);
    let layers = work::layers(model, training, batch, &device);
    let rest: Vec<Kernel> = work::loss(model, training, batch).into_iter().chain(work::optimizer(model, training)).collect();
    let sum = |pass: fn(&LayerKernels) -> &Vec<Kernel>| layers.iter().flat_map(pass).map(|kernel| kernel.flops).sum::<f64>();
    let mut features = Features {
        batch: batch as f64,
        inputs: model.inputs.iter().map(|input| input.shape.elements(batch) as f64).sum(),
        parameters: model.layers.iter().map(|layer| training.trained_elements(layer) as f64).sum(),
        forward_flops: sum(|layer| &layer.forward),
        backward_flops: sum(|layer| &layer.backward),
        images: f64::from(u8::from(model.layers.iter().any(|layer| matches!(layer.kind, LayerKind::Convolution { .. })))),
        ..Features::default()
    };
    let unfilled = |kernel: &Kernel| kernel.waves(&device) < 1.0;
    let with_kernels: Vec<_> = layers.iter().filter(|layer| !layer.forward.is_empty()).collect();
    let small = |layer: &&&LayerKernels| layer.forward.iter().chain(&layer.backward).all(unfilled);
    features.unfilled_layers = share(with_kernels.iter().filter(small).count() as f64, with_kernels.len() as f64);
    for kernel in layers.iter().flat_map(|layer| layer.forward.iter().chain(&layer.backward)).chain(&rest) {
        features.add(kernel, &device);
    }
    features.finish(&device);
    features
}

/// Samples on the first GPU.
fn samples(training: &Training) -> u64 {
    match training.parallel {
        Parallel::DataParallel { gpus } => training.batch.div_ceil(gpus.max(1)),
        _ => training.batch,
    }
    .max(1)
}

/// Part over whole; zero if the whole is zero.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

impl Features {
    /// Adds a kernel; shares hold sums until [`Self::finish`].
    fn add(&mut self, kernel: &Kernel, device: &Device) {
        self.kernels += 1.0;
        self.flops += kernel.flops;
        self.bytes += kernel.bytes;
        self.unfilled_kernels += f64::from(u8::from(kernel.waves(device) < 1.0));
        let (seconds, bound) = kernel.roofline(device);
        self.seconds += seconds;
        match bound {
            Bound::Launch => self.launch_bound += seconds,
            Bound::Memory => self.memory_bound += seconds,
            Bound::Compute => self.compute_bound += seconds,
        }
        let seconds = kernel.device_seconds(device);
        self.device_seconds += seconds;
        self.issue_seconds += device.issue;
        self.fill += seconds * kernel.fill(device);
        if kernel.pipe != Pipe::Elementwise {
            self.products += seconds;
        }
        if matches!(kernel.pipe, Pipe::Tensor | Pipe::Half) {
            self.tensor += seconds;
        }
    }

    fn finish(&mut self, device: &Device) {
        self.intensity = share(self.flops, self.bytes);
        self.unfilled_kernels = share(self.unfilled_kernels, self.kernels);
        for part in [&mut self.launch_bound, &mut self.memory_bound, &mut self.compute_bound] {
            *part = share(*part, self.seconds);
        }
        for part in [&mut self.fill, &mut self.products, &mut self.tensor] {
            *part = share(*part, self.device_seconds);
        }
        self.memory_busy = share(self.bytes / device.bandwidth, self.device_seconds).min(1.0);
    }

    /// Share of active multiprocessors if the device waits only for the host's launches.
    pub fn unhindered(&self) -> f64 {
        self.fill * share(self.device_seconds, self.device_seconds.max(self.issue_seconds))
    }

    /// Inputs of the trees: logarithms of sizes, and shares.
    pub fn values(&self) -> Vec<f32> {
        let sizes = [
            self.batch,
            self.inputs,
            self.parameters,
            self.flops,
            self.bytes,
            self.intensity,
            self.kernels,
            self.seconds * 1e6,
            self.device_seconds * 1e6,
            // Relative to the host's time to launch kernels and to load samples.
            1e3 * share(self.device_seconds, self.issue_seconds),
            1e9 * share(self.device_seconds, self.inputs),
            1e6 * share(self.device_seconds, self.batch),
        ];
        let shares = [
            self.unfilled_kernels,
            self.unfilled_layers,
            self.launch_bound,
            self.memory_bound,
            self.compute_bound,
            self.fill,
            self.products,
            self.tensor,
            self.memory_busy,
            self.unhindered(),
            self.images,
            self.unhindered() * (1.0 - self.products),
        ];
        sizes.iter().map(|size| size.ln_1p() as f32).chain(shares.iter().map(|share| *share as f32)).collect()
    }
}
