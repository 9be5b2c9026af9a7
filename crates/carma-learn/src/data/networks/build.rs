//! Builds models layer by layer.

use carma_estimate::model::{ElementType, Layer, LayerKind, Model, Shape, Source, Tensor};

use carma_estimate::learned::ActivationFunction;

/// A model under construction, and the source of the next layer.
#[derive(Debug)]
pub(super) struct Builder {
    model: Model,
    pub(super) last: Source,
}

impl Builder {
    /// Starts with one input of this shape.
    pub(super) fn new(input: &[u64], element: Option<ElementType>) -> Self {
        let input = Tensor { shape: Shape::batched(input), element };
        Self { model: Model { inputs: vec![input], ..Model::default() }, last: Source::Input(0) }
    }

    pub(super) fn finish(self) -> Model {
        self.model
    }

    /// Dimensions of the next layer's input.
    pub(super) fn dimensions(&self) -> Vec<u64> {
        self.shape(self.last).dimensions().to_vec()
    }

    fn shape(&self, source: Source) -> &Shape {
        match source {
            Source::Input(place) => &self.model.inputs[place].shape,
            Source::Layer(place) => &self.model.layers[place].output,
        }
    }

    /// Adds a layer of any kind that reads `inputs`.
    pub(super) fn layer(&mut self, class: &str, kind: LayerKind, inputs: Vec<Source>, output: &[u64], tensors: &[u64]) {
        let place = self.model.layers.len();
        let name = format!("{}_{place}", class.to_ascii_lowercase());
        self.model.layers.push(Layer::new(name, class, kind, inputs, Shape::batched(output)).with_tensors(tensors));
        self.last = Source::Layer(place);
    }

    /// Appends a layer whose class determines its kind.
    pub(super) fn then(&mut self, class: &str, output: &[u64], tensors: &[u64]) {
        self.layer(class, LayerKind::of_class(class), vec![self.last], output, tensors);
    }

    /// The same, with an unchanged shape.
    pub(super) fn same(&mut self, class: &str, tensors: &[u64]) {
        let output = self.dimensions();
        self.then(class, &output, tensors);
    }

    /// A linear layer over the last dimension, with bias.
    pub(super) fn linear(&mut self, features: u64) {
        let mut output = self.dimensions();
        let inputs = output.last().copied().unwrap_or(1);
        if let Some(last) = output.last_mut() {
            *last = features;
        }
        self.then("Linear", &output, &[inputs * features, features]);
    }

    /// A square convolution with bias; stride 1 keeps the size.
    pub(super) fn convolution(&mut self, channels: u64, kernel: u64, stride: u64) {
        let (inputs, size) = match *self.dimensions() {
            [inputs, size, _] => (inputs, size),
            _ => (1, 1),
        };
        let size = size.div_ceil(stride);
        let kind = LayerKind::Convolution { kernel: [kernel; 2], stride: [stride; 2], groups: 1, transposed: false };
        let tensors = [inputs * channels * kernel * kernel, channels];
        self.layer("Conv2d", kind, vec![self.last], &[channels, size, size], &tensors);
    }

    /// Batch normalisation with weight and bias, of the class for the number of dimensions.
    pub(super) fn batch_norm(&mut self, class: &str) {
        let features = self.dimensions().first().copied().unwrap_or(1);
        self.same(class, &[features, features]);
    }

    pub(super) fn activation(&mut self, function: ActivationFunction) {
        // A PReLU has one slope for all elements, which the tables do not count.
        let tensors: &[u64] = if function == ActivationFunction::PReLU { &[1] } else { &[] };
        self.same(function.class(), tensors);
    }

    pub(super) fn dropout(&mut self, probability: f64) {
        let output = self.dimensions();
        self.layer("Dropout", LayerKind::Dropout { probability }, vec![self.last], &output, &[]);
    }

    /// The sum of two tensors of the current shape.
    pub(super) fn add(&mut self, one: Source, other: Source) {
        let output = self.shape(one).dimensions().to_vec();
        self.layer("add", LayerKind::Add, vec![one, other], &output, &[]);
    }
}
