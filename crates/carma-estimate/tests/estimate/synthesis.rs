//! The events that the static estimator makes up: hand-worked sums, and what must hold for any model.

use std::collections::HashMap;

use carma_estimate::allocator::AllocatorSettings;
use carma_estimate::model::{Layer, LayerKind, Model, Shape, Source, Tensor};
use carma_estimate::stack::Stack;
use carma_estimate::synthesis::events;
use carma_estimate::trace::{Event, Mark, Purpose, replay};
use carma_estimate::training::{Optimizer, Parallel, Precision, Training};
use proptest::prelude::*;

/// A chain of layers, each reading the one before.
fn chain(layers: &[(&str, u64, &[u64])]) -> Model {
    let mut model = Model { inputs: vec![Tensor { shape: Shape::batched([layers[0].1]), element: None }], ..Model::default() };
    for (position, &(class, features, tensors)) in layers.iter().enumerate() {
        let source = position.checked_sub(1).map_or(Source::Input(0), Source::Layer);
        let layer = Layer::new(format!("{class}-{position}"), class, LayerKind::of_class(class), vec![source], Shape::batched([features]));
        model.layers.push(layer.with_tensors(tensors));
    }
    model
}

fn two_linears() -> Model {
    chain(&[("Linear", 1000, &[1_000_000, 1000]), ("ReLU", 1000, &[]), ("Linear", 10, &[10_000, 10])])
}

fn training(batch: u64) -> Training {
    Training { batch, optimizer: Optimizer::Sgd, ..Training::default() }
}

/// Most bytes alive at once, without rounding.
fn peak(model: &Model, training: &Training) -> u64 {
    let mut alive = HashMap::new();
    let (mut now, mut most) = (0, 0);
    for event in events(model, training) {
        match event {
            Event::Allocate { storage, bytes, .. } => {
                assert!(alive.insert(storage, bytes).is_none(), "storage {storage} is allocated twice");
                now += bytes;
                most = most.max(now);
            }
            Event::Free(storage) => now -= alive.remove(&storage).expect("only what is alive is freed"),
            _ => {}
        }
    }
    most
}

#[test]
fn a_small_network_adds_up_by_hand() {
    // 4 bytes each: weights 1,011,010; batch 1000; hidden layer and its ReLU 1000 each; output, log-softmax 10 each.
    // The most is alive in the backward pass of the first layer: weights, their gradients, the batch, the gradient of its output and
    // what the ReLU keeps, the last output.
    let batch = 100;
    let expected = 4 * (2 * 1_011_010 + batch * (1000 + 1000 + 10));
    let found = peak(&two_linears(), &training(batch));
    assert!(found.abs_diff(expected) < expected / 50, "{found} is not about {expected}");
}

#[test]
fn optimizers_have_their_state_sizes() {
    let bytes = 4 * two_linears().parameters();
    let peaks = |optimizer| peak(&two_linears(), &Training { optimizer, ..training(1) });
    let plain = peaks(Optimizer::Sgd);
    assert_eq!(peaks(Optimizer::Momentum) - plain, bytes);
    assert_eq!(peaks(Optimizer::FusedAdam) - plain, 2 * bytes);
    assert!(peaks(Optimizer::Adam) - plain > 3 * bytes - bytes / 50, "two moments and a temporary");
    assert!(peaks(Optimizer::None) < plain - bytes + bytes / 50, "no gradients without training");
}

#[test]
fn half_precision_halves_and_mixed_keeps_the_weights() {
    let at = |precision| peak(&two_linears(), &Training { precision, ..training(10_000) });
    let full = at(Precision::Float32);
    assert!(at(Precision::Half) < full * 52 / 100);
    assert!(at(Precision::Mixed) < full && at(Precision::Mixed) > at(Precision::Half), "the batch itself stays as it is");
}

#[test]
fn work_is_divided_among_gpus_by_the_parallelism() {
    let at = |parallel| peak(&two_linears(), &Training { parallel, optimizer: Optimizer::FusedAdam, ..training(1) });
    let (single, parameters) = (at(Parallel::Single), 4 * two_linears().parameters());
    assert!(at(Parallel::Distributed { gpus: 2 }).abs_diff(single + parameters) < 5000, "buckets hold the gradients once more");
    let zero = |stage| at(Parallel::Zero { stage, gpus: 4 });
    assert!(single > zero(1) && zero(1) > zero(2) && zero(2) > zero(3));
    assert!(zero(3).abs_diff(single / 4) < single / 20);
}

#[test]
fn checkpointing_trades_activations_for_another_forward_pass() {
    let layer: (&str, u64, &[u64]) = ("Linear", 500, &[250_000]);
    let mut model = chain(&[layer; 12]);
    for (position, layer) in model.layers.iter_mut().enumerate() {
        layer.block = Some(format!("block{}", position / 3));
    }
    let (plain, checkpointed) = (training(4000), Training { checkpointing: true, ..training(4000) });
    assert!(peak(&model, &checkpointed) < peak(&model, &plain) * 3 / 4);
    for layer in &mut model.layers {
        layer.block = None;
    }
    assert_eq!(peak(&model, &checkpointed), peak(&model, &plain), "without blocks there is nothing to recompute");
}

#[test]
fn adapters_leave_the_weights_without_gradients() {
    let full = peak(&two_linears(), &Training { optimizer: Optimizer::Adam, ..training(1) });
    let adapted = peak(&two_linears(), &Training { optimizer: Optimizer::Adam, adapters: Some(8), ..training(1) });
    assert!(adapted < full / 3, "{adapted} of {full}");
}

#[test]
fn a_warm_up_leaves_segments_that_training_cannot_use() {
    let model = chain(&[("Linear", 4000, &[4000]), ("ReLU", 4000, &[]), ("Linear", 4000, &[4000])]);
    let reserved = |rehearsal| {
        let events = events(&model, &Training { rehearsal, ..training(3000) });
        replay(events, AllocatorSettings::default(), &Stack::built_in()[0]).unwrap().peak_reserved
    };
    assert!(reserved(Some(1500)) > reserved(None));
}

/// Models of layers that read any layers before them.
fn models() -> impl Strategy<Value = Model> {
    let classes = prop::sample::select(vec![
        "Linear",
        "ReLU",
        "GELU",
        "Dropout",
        "BatchNorm1d",
        "LayerNorm",
        "add",
        "cat",
        "mul",
        "view",
        "Softmax",
        "Mystery",
    ]);
    let layer = (classes, 1..600u64, any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<bool>(), 0..4u8);
    proptest::collection::vec(layer, 1..25).prop_map(|rows| {
        let mut model = Model { inputs: vec![Tensor { shape: Shape::batched([64]), element: None }], ..Model::default() };
        for (position, (class, features, first, second, in_place, block)) in rows.into_iter().enumerate() {
            let source = |index: prop::sample::Index| index.index(position + 1).checked_sub(1).map_or(Source::Input(0), Source::Layer);
            let kind = LayerKind::of_class(class);
            let joins = matches!(kind, LayerKind::Add | LayerKind::Concatenate | LayerKind::Multiply);
            let inputs = if joins { vec![source(first), source(second)] } else { vec![source(first)] };
            let elementwise = matches!(kind, LayerKind::Activation(_));
            let tensors = if kind == LayerKind::Linear { vec![features * 64, features] } else { Vec::new() };
            let mut layer = Layer::new(format!("{position}"), class, kind, inputs, Shape::batched([features])).with_tensors(tensors);
            layer.in_place = in_place && elementwise;
            layer.block = (block > 0).then(|| format!("block{block}"));
            model.layers.push(layer);
        }
        model
    })
}

fn trainings() -> impl Strategy<Value = Training> {
    let optimizer = prop::sample::select(vec![Optimizer::None, Optimizer::Sgd, Optimizer::Adam, Optimizer::Adafactor]);
    let precision = prop::sample::select(vec![Precision::Float32, Precision::Mixed, Precision::Half]);
    let parallel = prop::sample::select(vec![Parallel::Single, Parallel::DataParallel { gpus: 2 }, Parallel::Zero { stage: 2, gpus: 4 }]);
    (1..300u64, optimizer, precision, parallel, any::<[bool; 2]>(), proptest::option::of(1..5u64), proptest::option::of(1..9u64)).prop_map(
        |(batch, optimizer, precision, parallel, [checkpointing, fusion], rehearsal, adapters)| Training {
            batch,
            optimizer,
            precision,
            parallel,
            checkpointing,
            fusion,
            rehearsal,
            adapters,
            ..Training::default()
        },
    )
}

proptest! {
    #[test]
    fn live_memory_is_equal_after_each_iteration(model in models(), training in trainings()) {
        let mut alive: HashMap<u32, Purpose> = HashMap::new();
        let mut bytes: HashMap<u32, u64> = HashMap::new();
        let mut ends = Vec::new();
        for event in events(&model, &training) {
            match event {
                Event::Allocate { storage, bytes: size, purpose } => {
                    prop_assert!(alive.insert(storage, purpose).is_none());
                    bytes.insert(storage, size);
                }
                Event::Free(storage) => prop_assert!(alive.remove(&storage).is_some(), "storage {} is freed but not alive", storage),
                Event::Mark(Mark::Iteration(2 | 3) | Mark::End) => ends.push(alive.keys().map(|storage| bytes[storage]).sum::<u64>()),
                _ => {}
            }
        }
        prop_assert_eq!(ends.len(), 3);
        prop_assert_eq!(ends[0], ends[1], "something leaks");
        prop_assert_eq!(ends[1], ends[2], "something leaks");
    }

    #[test]
    fn memory_grows_with_the_batch(model in models(), training in trainings()) {
        let larger = Training { batch: training.batch * 3, ..training.clone() };
        prop_assert!(peak(&model, &larger) >= peak(&model, &training));
    }
}
