//! Utilisation: work by hand, estimates within bounds.

use carma_core::Fraction;
use carma_estimate::Family;
use carma_estimate::model::{Layer, LayerKind, Model, Shape, Source, Tensor};
use carma_estimate::training::{Optimizer, Parallel, Precision, Training};
use carma_estimate::utilisation::work::{Bound, Device, Kernel, Pipe, layers, optimizer};
use carma_estimate::utilisation::{Estimated, Learned, estimate, features};
use proptest::prelude::*;

use crate::parse_lab;

fn close(left: f64, right: f64) {
    assert!((left - right).abs() <= 1e-9 * right.abs(), "{left} is not {right}");
}

/// Layers one after the other.
fn chain(input: &[u64], layers: &[(LayerKind, &[u64], &[u64])]) -> Model {
    let layer = |(place, (kind, output, tensors)): (usize, &(LayerKind, &[u64], &[u64]))| {
        let source = place.checked_sub(1).map_or(Source::Input(0), Source::Layer);
        Layer::new(format!("{place}"), "", kind.clone(), vec![source], Shape::batched(*output)).with_tensors(*tensors)
    };
    let inputs = vec![Tensor { shape: Shape::batched(input), element: None }];
    Model { inputs, layers: layers.iter().enumerate().map(layer).collect(), ..Model::default() }
}

fn training(batch: u64) -> Training {
    Training { batch, ..Training::default() }
}

fn convolution(kernel: u64, groups: u64, transposed: bool) -> LayerKind {
    LayerKind::Convolution { kernel: [kernel; 2], stride: [1, 1], groups, transposed }
}

#[test]
fn a_linear_layer_by_hand() {
    let model = chain(&[100], &[(LayerKind::Linear, &[50], &[5000, 50]), (LayerKind::Linear, &[10], &[500, 10])]);
    let kernels = layers(&model, &training(32), 32, &Device::A100);
    // 32 x 100 times 100 x 50; the first needs no gradient of its input, both one of the weight and one of the bias.
    close(kernels[0].forward[0].flops, 2.0 * 32.0 * 100.0 * 50.0);
    close(kernels[0].forward[0].bytes, 4.0 * (32.0 * 100.0 + 100.0 * 50.0 + 32.0 * 50.0));
    close(kernels[0].flops(), 2.0 * 2.0 * 32.0 * 5000.0 + 32.0 * 50.0);
    close(kernels[1].flops(), 3.0 * 2.0 * 32.0 * 500.0 + 32.0 * 10.0);
    assert_eq!(kernels[0].forward[0].pipe, Pipe::Plain);
    let features = features(&model, &training(32));
    close(features.forward_flops, 2.0 * 32.0 * 5500.0);
    close(features.inputs, 3200.0);
    close(features.parameters, 5560.0);
    // All of it is far too small for 108 multiprocessors.
    close(features.unfilled_layers, 1.0);
    close(features.launch_bound, 1.0);
    close(features.seconds, 5e-6 * features.kernels);
}

#[test]
fn a_convolution_by_hand() {
    let model =
        chain(&[3, 32, 32], &[(convolution(3, 1, false), &[64, 32, 32], &[1728, 64]), (convolution(1, 1, false), &[128, 32, 32], &[8192])]);
    let kernels = layers(&model, &training(8), 8, &Device::A100);
    let places = 8.0 * 32.0 * 32.0;
    close(kernels[0].forward[0].flops, 2.0 * places * 64.0 * 27.0);
    close(kernels[0].forward[0].bytes, 4.0 * (places * 3.0 + 1728.0 + places * 64.0));
    // 8192 places in tiles of 64, one tile of channels.
    close(kernels[0].forward[0].blocks, 128.0);
    assert_eq!((kernels[0].backward.len(), kernels[1].backward.len()), (2, 2));
    close(kernels[1].flops(), 3.0 * 2.0 * places * 64.0 * 128.0);
    assert_eq!(kernels[1].forward[0].pipe, Pipe::Tensor);
    let depthwise = chain(&[64, 32, 32], &[(convolution(3, 64, false), &[64, 32, 32], &[576])]);
    let kernel = layers(&depthwise, &training(8), 8, &Device::A100)[0].forward[0];
    close(kernel.flops, 2.0 * places * 64.0 * 9.0);
    assert_eq!(kernel.pipe, Pipe::Elementwise);
    let enlarging = chain(&[64, 16, 16], &[(convolution(2, 1, true), &[32, 32, 32], &[8192])]);
    close(layers(&enlarging, &training(8), 8, &Device::A100)[0].forward[0].flops, 2.0 * 8.0 * 256.0 * 8192.0);
}

#[test]
fn attention_and_products_by_hand() {
    let attention = LayerKind::Attention { heads: 4, dropout: 0.0 };
    let model = chain(&[128, 64], &[(LayerKind::Linear, &[128, 192], &[12_288]), (attention, &[128, 64], &[])]);
    let kernels = layers(&model, &training(2), 2, &Device::A100);
    close(kernels[0].forward[0].flops, 2.0 * 2.0 * 128.0 * 64.0 * 192.0);
    // Scores and weighted sum: 2 x 128 x 128 x 64 each, for two samples; the backward pass is two and a half times as much.
    close(kernels[1].forward[0].flops, 2.0 * 4.0 * 128.0 * 128.0 * 64.0);
    close(kernels[1].flops(), 3.5 * kernels[1].forward[0].flops);
    // Two samples, four heads, two tiles of tokens.
    close(kernels[1].forward[0].blocks, 16.0);
}

#[test]
fn a_roofline_by_hand() {
    let device = Device::A100;
    let kernel = |flops, bytes| Kernel { flops, bytes, blocks: 162.0, pipe: Pipe::Plain };
    assert_eq!(kernel(1.0, 1.0).roofline(&device), (device.launch, Bound::Launch));
    assert_eq!(kernel(19.5e12, 1.0).roofline(&device), (1.0, Bound::Compute));
    assert_eq!(kernel(1.0, 1.555e12).roofline(&device), (1.0, Bound::Memory));
    // A round and a half of 108 blocks takes two rounds; a quarter of them is idle.
    close(kernel(1.0, 1.0).waves(&device), 1.5);
    close(kernel(1.0, 1.0).fill(&device), 0.75);
}

#[test]
fn frozen_layers_have_no_backward_pass() {
    let model = chain(&[100], &[(LayerKind::Linear, &[50], &[5000, 50])]);
    let forward_only = Training { optimizer: Optimizer::None, ..training(4) };
    assert!(features(&model, &forward_only).backward_flops < 1e-9);
    assert!(optimizer(&model, &forward_only).is_empty());
    assert_eq!(optimizer(&model, &training(4)).len(), 12);
    let two = Training { parallel: Parallel::DataParallel { gpus: 2 }, ..training(8) };
    close(features(&model, &two).forward_flops, features(&model, &training(4)).forward_flops);
}

#[test]
fn empty_and_huge_models_are_allowed() {
    for answer in [estimate(&Model::default(), &training(0)), estimate(&enormous(), &training(u64::MAX))] {
        within(&answer.smact);
        within(&answer.smocc);
        within(&answer.drama);
        assert!(answer.power.point.0.is_finite() && answer.power.low.0 >= 0.0);
    }
}

fn enormous() -> Model {
    let most: &[u64] = &[u64::MAX, u64::MAX];
    let recurrent = LayerKind::Recurrent { gates: u64::MAX, hidden: u64::MAX, layers: u64::MAX };
    let attention = LayerKind::Attention { heads: u64::MAX, dropout: 0.0 };
    let convolution = LayerKind::Convolution { kernel: [u64::MAX; 2], stride: [0; 2], groups: 0, transposed: true };
    let kinds = [LayerKind::Linear, convolution, attention, LayerKind::MatrixProduct, LayerKind::Embedding, recurrent, LayerKind::Unknown];
    let layers: Vec<(LayerKind, &[u64], &[u64])> = kinds.into_iter().map(|kind| (kind, most, most)).collect();
    let mut model = chain(most, &layers);
    // Edges that lead nowhere.
    model.layers[0].inputs = vec![Source::Input(7), Source::Layer(99)];
    model.layers[1].output = Shape::batched([0]);
    model
}

fn within(estimated: &Estimated<Fraction>) {
    assert!(estimated.low <= estimated.point && estimated.point <= estimated.high, "{estimated:?}");
}

#[test]
fn every_description_has_an_estimate() {
    for (name, path) in parse_lab::all() {
        let file = path.file_name().unwrap().to_str().unwrap();
        let answer = estimate(&parse_lab::model(&name, file), &parse_lab::training(&name));
        within(&answer.smact);
        within(&answer.smocc);
        within(&answer.drama);
        assert!(answer.smocc.point <= answer.smact.point, "{name}/{file}: {answer:?}");
        assert!(answer.power.low.0 <= answer.power.point.0 && answer.power.point.0 <= answer.power.high.0);
        assert!((20.0..450.0).contains(&answer.power.point.0), "{name}/{file}: {answer:?}");
        let stated = carma_core::Utilisation::from(answer);
        assert_eq!(stated[carma_core::Metric::Smact], Some(answer.smact.point));
    }
}

#[test]
fn the_shipped_weights_can_be_read() {
    let learned = Learned::read(include_str!("../../weights/utilisation.json")).unwrap();
    assert_eq!(&learned, Learned::shipped());
    assert_eq!(Learned::read(&learned.write().unwrap()).unwrap(), learned);
    assert!(Learned::read("{}").is_err());
}

proptest! {
    #[test]
    fn a_larger_batch_is_no_less_work(model in 0_usize..4, batch in 1_u64..200, more in 1_u64..200, half in any::<bool>()) {
        let (name, file) = [("resnet50", "repr.txt"), ("bert", "repr.txt"), ("mobilenet_v2", "torchinfo.txt"), ("gpt2", "config.json")][model];
        let model = parse_lab::model(name, file);
        let precision = if half { Precision::Half } else { Precision::Float32 };
        let of = |batch| features(&model, &Training { precision, ..training(batch) });
        let (small, large) = (of(batch), of(batch + more));
        prop_assert!(small.flops <= large.flops && small.bytes <= large.bytes && small.seconds <= large.seconds);
        prop_assert!(small.forward_flops < large.forward_flops && small.backward_flops < large.backward_flops);
        for features in [small, large] {
            let shares = features.launch_bound + features.memory_bound + features.compute_bound;
            prop_assert!((shares - 1.0).abs() < 1e-9 && (0.0..=1.0).contains(&features.fill) && (0.0..=1.0).contains(&features.unhindered()));
        }
    }
}

#[test]
fn without_training_every_value_is_possible() {
    let model = chain(&[100], &[(LayerKind::Linear, &[50], &[5000, 50])]);
    let answer = Learned::default().estimate(&features(&model, &training(1)), Family::Mlp);
    assert_eq!((answer.smact.low, answer.smact.high), (Fraction::ZERO, Fraction::ONE));
}
