//! The kernels of each layer in the forward and backward pass.

use super::cost::Cost;
use super::{Device, Kernel, Pipe};
use crate::model::{Layer, LayerKind, Model, Normalisation, Reshaping, Source};
use crate::training::{Optimizer, Precision, Training};

/// Kernels of one layer in one iteration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LayerKernels {
    /// Kernels of the forward pass.
    pub forward: Vec<Kernel>,
    /// Kernels of the backward pass; none if nothing is trained.
    pub backward: Vec<Kernel>,
}

impl LayerKernels {
    /// Floating point operations of both passes.
    pub fn flops(&self) -> f64 {
        self.forward.iter().chain(&self.backward).map(|kernel| kernel.flops).sum()
    }
}

/// A model in training on one GPU.
struct Pass<'a> {
    model: &'a Model,
    training: &'a Training,
    device: &'a Device,
    /// Samples per GPU.
    batch: u64,
    /// Bytes of an activation.
    element: f64,
}

/// A layer and the sizes that determine its kernels.
struct Sizes<'a> {
    layer: &'a Layer,
    /// Elements of the first input, of all inputs, and of the output.
    first: f64,
    inputs: f64,
    output: f64,
    /// Elements of the weight.
    weight: f64,
    /// Whether gradients of the input and of the weight are needed.
    to_input: bool,
    to_weight: bool,
}

/// The kernels of each layer, in order, for the samples on one GPU.
pub fn layers(model: &Model, training: &Training, batch: u64, device: &Device) -> Vec<LayerKernels> {
    let element = training.precision.activations().bytes() as f64;
    let pass = Pass { model, training, device, batch, element };
    let trained = training.optimizer != Optimizer::None;
    let mut flows = Vec::with_capacity(model.layers.len());
    let mut all = Vec::with_capacity(model.layers.len());
    for layer in &model.layers {
        let to_input = layer.inputs.iter().any(|source| matches!(source, Source::Layer(place) if flows.get(*place) == Some(&true)));
        let to_weight = trained && training.trained_elements(layer) > 0;
        flows.push(to_input || to_weight);
        let sizes = pass.sizes(layer, to_input, to_weight);
        let mut kernels = pass.kernels(&sizes);
        if !(to_input || to_weight) {
            kernels.backward.clear();
        } else if training.checkpointing && layer.block.is_some() {
            // Recomputed before the backward pass.
            let again = kernels.forward.clone();
            kernels.backward.splice(0..0, again);
        }
        all.push(kernels);
    }
    all
}

impl Pass<'_> {
    fn elements(&self, source: Source) -> f64 {
        let shape = match source {
            Source::Input(place) => self.model.inputs.get(place).map(|input| &input.shape),
            Source::Layer(place) => self.model.layers.get(place).map(|layer| &layer.output),
        };
        shape.map_or(0.0, |shape| shape.elements(self.batch) as f64)
    }

    fn sizes<'a>(&self, layer: &'a Layer, to_input: bool, to_weight: bool) -> Sizes<'a> {
        let inputs: Vec<f64> = layer.inputs.iter().map(|source| self.elements(*source)).collect();
        Sizes {
            layer,
            first: inputs.first().copied().unwrap_or(0.0),
            inputs: inputs.iter().sum(),
            output: layer.output.elements(self.batch) as f64,
            weight: layer.tensors.first().copied().unwrap_or(layer.parameters) as f64,
            to_input,
            to_weight,
        }
    }

    /// Units for products with weights: by default PyTorch uses TF32 for convolutions, but not for linear layers.
    fn pipe(&self, convolution: bool) -> Pipe {
        match self.training.precision {
            Precision::Mixed | Precision::Half => Pipe::Half,
            Precision::Float32 if convolution => Pipe::Tensor,
            Precision::Float32 => Pipe::Plain,
        }
    }

    fn kernels(&self, sizes: &Sizes) -> LayerKernels {
        match sizes.layer.kind {
            LayerKind::Linear => self.linear(sizes),
            LayerKind::Convolution { kernel, groups, transposed, .. } => self.convolution(sizes, kernel, groups, transposed),
            LayerKind::MatrixProduct => self.matrix_product(sizes),
            LayerKind::Attention { heads, .. } => self.attention(sizes, heads),
            LayerKind::Recurrent { gates, hidden, layers } => self.recurrent(sizes, [gates, hidden, layers].map(|size| size as f64)),
            LayerKind::Reshape(Reshaping::View) => LayerKernels::default(),
            _ => self.elementwise(sizes),
        }
    }

    fn linear(&self, sizes: &Sizes) -> LayerKernels {
        let columns = sizes.layer.output.features().max(1) as f64;
        let (rows, depth) = (sizes.output / columns, sizes.weight / columns);
        let bytes = self.element * (rows * depth + depth * columns + rows * columns);
        let product = |sides| Kernel::product(sides, 1.0, bytes, self.pipe(false));
        let mut kernels = LayerKernels { forward: vec![product([rows, depth, columns])], backward: Vec::new() };
        if sizes.to_input {
            kernels.backward.push(product([rows, columns, depth]));
        }
        if sizes.to_weight {
            kernels.backward.push(product([depth, rows, columns]).divided(rows, self.device));
            if sizes.layer.tensors.len() > 1 {
                kernels.backward.push(self.bias(sizes.output, columns));
            }
        }
        kernels
    }

    /// A product of unfolded images and filters; the unfolding need not be in memory.
    fn convolution(&self, sizes: &Sizes, kernel: [u64; 2], groups: u64, transposed: bool) -> LayerKernels {
        let groups = groups.max(1) as f64;
        let channels = sizes.layer.output.image().map_or(1, |[channels, ..]| channels).max(1) as f64;
        // Each weight is used at every position of the smaller image: the output, or the input if transposed.
        let window = (kernel[0].saturating_mul(kernel[1])).max(1) as f64;
        let from =
            if transposed { sizes.weight * groups / (channels * window) } else { sizes.weight / (channels * window) * groups }.max(1.0);
        let (places_out, places_in) = (sizes.output / channels, sizes.first / from);
        let flops = 2.0 * sizes.weight * if transposed { places_in } else { places_out };
        let bytes = self.element * (sizes.first + sizes.weight + sizes.output);
        let product = |sides| {
            if groups > 1.0 && from / groups < 4.0 {
                // Filters over one channel do not use tensor cores: they run like elementwise operators.
                Kernel { flops, ..Kernel::elementwise(sizes.output, 0.0, bytes) }
            } else {
                Kernel { flops, ..Kernel::product(sides, groups, bytes, self.pipe(true)) }
            }
        };
        let (wide, deep) = (channels / groups, from / groups * window);
        let mut kernels = LayerKernels { forward: vec![product([places_out, deep, wide])], backward: Vec::new() };
        if sizes.to_input {
            kernels.backward.push(product([places_in, wide * window, from / groups]));
        }
        if sizes.to_weight {
            kernels.backward.push(product([deep, places_out, wide]).divided(places_out, self.device));
            if sizes.layer.tensors.len() > 1 {
                kernels.backward.push(self.bias(sizes.output, channels));
            }
        }
        kernels
    }

    fn matrix_product(&self, sizes: &Sizes) -> LayerKernels {
        let dimensions = sizes.layer.output.dimensions();
        let columns = sizes.layer.output.features().max(1) as f64;
        let rows = dimensions.len().checked_sub(2).and_then(|place| dimensions.get(place)).copied().unwrap_or(1).max(1) as f64;
        let count = (sizes.output / (rows * columns)).max(1.0);
        let depth = (sizes.first / (count * rows)).max(1.0);
        let bytes = self.element * (sizes.inputs + sizes.output);
        let product = |sides| Kernel::product(sides, count, bytes, self.pipe(false));
        LayerKernels {
            forward: vec![product([rows, depth, columns])],
            backward: vec![product([rows, columns, depth]), product([depth, rows, columns])],
        }
    }

    /// Scores and weighted sum in one kernel; the backward pass recomputes the scores.
    fn attention(&self, sizes: &Sizes, heads: u64) -> LayerKernels {
        let width = sizes.layer.output.features().max(1) as f64;
        let tokens = sizes.layer.output.per_sample() as f64 / width;
        let samples = sizes.output / (tokens * width).max(1.0);
        let heads = heads.max(1) as f64 * samples;
        let flops = 4.0 * samples * tokens * tokens * width;
        let bytes = self.element * (sizes.inputs + sizes.output);
        let fused = |times: f64| Kernel {
            flops: flops * times,
            bytes: bytes * if times > 1.0 { 2.0 } else { 1.0 },
            ..Kernel::product([tokens, 1.0, 1.0], heads, 0.0, self.pipe(false))
        };
        LayerKernels { forward: vec![fused(1.0)], backward: vec![fused(2.5)] }
    }

    /// A sequence of products, one per step.
    fn recurrent(&self, sizes: &Sizes, [gates, hidden, layers]: [f64; 3]) -> LayerKernels {
        let width = sizes.layer.output.features().max(1) as f64;
        let tokens = (sizes.layer.output.per_sample() as f64 / width).clamp(1.0, 1024.0);
        let rows = sizes.output / (tokens * width);
        // Input and hidden state of each layer have about the same width.
        let step = |count: f64| {
            let bytes = self.element * (2.0 * hidden * gates * hidden + rows * (2.0 + gates) * hidden);
            Kernel::product([rows, 2.0 * hidden, gates * hidden], count, bytes * count, self.pipe(false))
        };
        let steps = |each: f64| (0..(tokens * layers.clamp(1.0, 16.0)) as usize).map(|_| step(each)).collect();
        LayerKernels { forward: steps(1.0), backward: steps(2.0) }
    }

    fn elementwise(&self, sizes: &Sizes) -> LayerKernels {
        let (elements, moved) = (sizes.output.max(sizes.first), sizes.inputs + sizes.output);
        let Cost { flops, passes, forward, backward } = Cost::of(&sizes.layer.kind);
        // Fused operators pass values in registers.
        if self.training.fusion
            && passes < 1.5
            && matches!(sizes.layer.kind, LayerKind::Activation(_) | LayerKind::Add | LayerKind::Multiply)
        {
            return LayerKernels::default();
        }
        let kernel = |count: f64| {
            let bytes = self.element * moved * passes / count.max(1.0);
            if sizes.layer.kind == LayerKind::Normalisation(Normalisation::Batch) {
                let channels = sizes.layer.output.image().map_or(sizes.layer.output.features(), |[channels, ..]| channels);
                Kernel::reduction(elements, channels as f64, flops, bytes)
            } else {
                Kernel::elementwise(elements, flops, bytes)
            }
        };
        let times = |count: u8| vec![kernel(f64::from(count)); usize::from(count)];
        let mut kernels = LayerKernels { forward: times(forward), backward: times(backward) };
        if sizes.layer.kind == LayerKind::Embedding && sizes.to_weight {
            // The gradient of an embedding is dense: zeroed, then added to.
            kernels.backward.push(Kernel::elementwise(sizes.weight, 0.0, self.element * sizes.weight));
        }
        kernels
    }

    /// The gradient of a bias: sums over all positions of the output.
    fn bias(&self, elements: f64, results: f64) -> Kernel {
        Kernel::reduction(elements, results / 32.0, 1.0, self.element * (elements + results))
    }
}
